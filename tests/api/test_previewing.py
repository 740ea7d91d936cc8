"""``entities/{label}/{id}/preview/``: what would come of a change is answered, to whom it concerns, and nothing of it stays."""

from __future__ import annotations

from datetime import timedelta

import pytest
from django.contrib.auth.models import Permission
from django.db import connection
from django.test.utils import CaptureQueriesContext

from tests.api.conftest import Accounting, Seating
from tests.api.test_roles import fingerprint
from tests.api.test_tasks import problem
from timeline import OWNER, Machine, Timeline, after, at, never, task, to
from timeline.api.base import TryingThrottle
from timeline.features.plans import api, what_if
from timeline.policy import TimelinePolicy
from timeline.shortcuts import emit, start
from timeline.testing import only_timelines


class Ending(Timeline):
    """Follows a date of the user, and is left by an event."""

    entity = "accounts.User"
    starts_on = "user.created"
    exits = {"user.left": "left"}

    @task(at("trial_ends_at"))
    def end(self, user): ...

    @task(after(end, days=2))
    def ask(self, user): ...


class Greeting(Timeline):
    """Is begun by hand."""

    entity = "accounts.User"

    @task(after(days=1))
    def greet(self, user): ...


class SignIn(Machine):
    """Asks the account for its code."""

    entity = "accounts.User"
    starts_on = "signing_in"
    initial = "asked"
    table = {"asked": {"code.given": "over", "gave_up": "over"}, "over": {}}
    timers = {"asked": never}
    asks = {"code.given": OWNER}


class Billing(Timeline):
    """About seats, and nobody's but staff's."""

    entity = "testapp.Seat"

    @task(after(days=3))
    def bill(self, seat): ...


@pytest.fixture(autouse=True)
def _these(_only_these, clock):
    with only_timelines(Ending, Greeting, SignIn, Seating, Accounting, Billing):
        yield


@pytest.fixture
def kim(person, clock):
    """Whose trial ends in ten days."""
    made = person("kim")
    type(made).objects.filter(pk=made.pk).update(trial_ends_at=clock.now + timedelta(days=10))
    made.refresh_from_db()
    emit("user.created", made)
    return made


def path_of(entity, label="accounts.user"):
    return f"entities/{label}/{entity.pk}/preview/"


def told(answer):
    assert answer.status_code == 200, answer.content
    return [(row["task"], row["change"], row["foreseen"]) for row in answer.json()["results"]]


class TestPreview:
    def test_tells_what_would_move_from_when_to_when(self, asked_by, kim, clock):
        later = clock.now + timedelta(days=15)

        answer = asked_by(kim).post(path_of(kim), {"anchors": {"trial_ends_at": later.isoformat()}})

        assert told(answer) == [("ending.end", "moved", False), ("ending.ask", "moved", True)]
        assert answer.json()["counts"] == {"new": 0, "moved": 2, "gone": 0, "same": 0}
        assert answer.json()["results"][0] == {
            "task": "ending.end",
            "title": "",
            "change": "moved",
            "foreseen": False,
            "at": (clock.now + timedelta(days=10)).isoformat().replace("+00:00", "Z"),
            "then_at": later.isoformat().replace("+00:00", "Z"),
            "reason_code": "",
            "reason": "",
            "stands": "",
        }

    def test_tells_what_an_event_would_call_off_and_why(self, by_staff, kim):
        answer = by_staff.post(path_of(kim), {"event": {"name": "user.left"}})

        assert told(answer) == [("ending.end", "gone", False), ("ending.ask", "gone", True)]
        assert [(row["reason_code"], row["reason"]) for row in answer.json()["results"]] == [("exit", "left"), ("", "")]

    def test_tells_what_a_run_would_have(self, by_staff, kim, clock):
        since = (clock.now + timedelta(days=2)).isoformat()

        answer = by_staff.post(path_of(kim), {"start": {"timeline": "greeting", "started_at": since}})

        assert told(answer) == [
            ("greeting.greet", "new", False),
            ("ending.end", "same", False),
            ("ending.ask", "same", True),
        ]
        assert answer.json()["results"][0]["then_at"] == (clock.now + timedelta(days=3)).isoformat().replace(
            "+00:00", "Z"
        )

    def test_tries_all_at_once(self, by_staff, kim, clock):
        body = {
            "anchors": {"trial_ends_at": (clock.now + timedelta(days=5)).isoformat()},
            "start": {"timeline": "greeting"},
            "event": {"name": "user.left", "payload": {"why": "price"}},
        }

        answer = by_staff.post(path_of(kim), body)

        assert told(answer) == [
            ("greeting.greet", "new", False),
            ("ending.end", "gone", False),
            ("ending.ask", "gone", True),
        ]

    @pytest.mark.parametrize(
        "body",
        [
            {"anchors": {"trial_ends_at": "2030-01-01T00:00:00Z"}},
            {"start": {"timeline": "greeting"}},
            {"event": {"name": "user.left"}},
        ],
    )
    def test_leaves_nothing_behind(self, by_staff, kim, body):
        before = fingerprint()

        told(by_staff.post(path_of(kim), body))

        kim.refresh_from_db()
        assert fingerprint() == before
        assert kim.trial_ends_at.year != 2030 or kim.trial_ends_at.month != 1

    def test_a_run_that_begins_pushes_none_out_of_sight(self, by_staff, kim):
        for number in range(99):
            start("greeting", kim, key=str(number))

        answer = by_staff.post(path_of(kim), {"start": {"timeline": "greeting"}})

        assert answer.json()["counts"] == {"new": 1, "moved": 0, "gone": 0, "same": 101}

    @pytest.mark.django_db(transaction=True)
    def test_takes_back_each_statement_that_writes(self, by_staff, kim, clock):
        """As the database was told: whatever is written is between a BEGIN and its ROLLBACK, and is never committed."""
        body = {
            "anchors": {"trial_ends_at": (clock.now + timedelta(days=5)).isoformat()},
            "start": {"timeline": "greeting"},
            "event": {"name": "user.left"},
        }

        with CaptureQueriesContext(connection) as queries:
            told(by_staff.post(path_of(kim), body))

        written, undone = parted(query["sql"] for query in queries)
        assert len(undone) > 3
        assert written == []

    def test_takes_as_many_queries_for_a_hundred_rows_as_for_ten(self, by_staff, kim, clock, django_assert_num_queries):
        for number in range(10):
            start("greeting", kim, key=str(number))
        with CaptureQueriesContext(connection) as few:
            by_staff.post(path_of(kim), {"event": {"name": "user.left"}})
        for number in range(10, 100):
            start("greeting", kim, key=str(number))

        with django_assert_num_queries(len(few)):
            answer = by_staff.post(path_of(kim), {"event": {"name": "user.left"}})

        assert len(told(answer)) == 101  # Follow-ups of the latest hundred runs are told.


def parted(statements):
    """Statements that write, apart: those that stay, and those that a ROLLBACK takes back."""
    stays, pending, undone = [], None, []
    for sql in statements:
        word = sql.split()[0].upper()
        if word == "BEGIN":
            pending = []
        elif word == "COMMIT":
            stays, pending = stays + (pending or []), None
        elif word == "ROLLBACK" and "TO SAVEPOINT" not in sql:
            undone, pending = undone + (pending or []), None
        elif writes(sql):
            (stays if pending is None else pending).append(sql)
    return stays + (pending or []), undone


def writes(sql):
    return any(f"{verb} " in sql.upper() for verb in ("INSERT INTO", "DELETE FROM", 'UPDATE "', "UPDATE TIMELINE"))


class TestWhoMay:
    def test_an_owner_tries_dates_of_their_own(self, asked_by, kim):
        assert told(asked_by(kim).post(path_of(kim), {"anchors": {"trial_ends_at": "2031-01-01T00:00:00Z"}}))

    @pytest.mark.parametrize("body", [{"start": {"timeline": "greeting"}}, {"event": {"name": "user.left"}}])
    def test_an_owner_who_may_not_emit_tries_no_start_and_no_event(self, asked_by, kim, body):
        assert problem(asked_by(kim).post(path_of(kim), body), 403)

    def test_an_owner_tries_the_event_that_a_machine_asks_them_for(self, asked_by, kim):
        emit("signing_in", kim)

        assert told(asked_by(kim).post(path_of(kim), {"event": {"name": "code.given"}}))
        assert problem(asked_by(kim).post(path_of(kim), {"event": {"name": "gave_up"}}), 403)

    @pytest.mark.parametrize(
        "body", [{"anchors": {"trial_ends_at": None}}, {"event": {"name": "code.given"}}, {"x": 1}]
    )
    def test_foreign_and_absent_are_answered_alike_after_as_many_queries(self, asked_by, person, kim, body):
        emit("signing_in", kim)
        answers, counts = [], []
        for key in (kim.pk, 999_999):
            asker = asked_by(person(f"other{key}"))
            with CaptureQueriesContext(connection) as queries:
                answers.append(asker.post(f"entities/accounts.user/{key}/preview/", body))
            counts.append(len(queries))

        assert [answer.status_code for answer in answers] == [404, 404]
        assert answers[0].content == answers[1].content
        assert counts[0] == counts[1]

    def test_of_a_timeline_they_do_not_see_they_learn_nothing(self, asked_by, by_staff, kim, seat):
        seat = seat(kim)
        for name in ("seating", "billing"):
            start(name, seat)
        body = {"start": {"timeline": "accounting"}}

        everything = told(by_staff.post(path_of(seat, "testapp.seat"), body))
        owner = person_who_may_emit(kim)
        own = told(asked_by(owner).post(path_of(seat, "testapp.seat"), body))

        assert {task for task, _change, _foreseen in everything} == {
            "seating.free",
            "seating.sweep",
            "billing.bill",
            "accounting.bill",
            "accounting.remind",
        }
        assert {task for task, _change, _foreseen in own} == {"seating.free", "seating.sweep"}

    def test_owners_read_no_text_that_a_person_wrote(self, asked_by, kim):
        owner = person_who_may_emit(kim)

        [ended, _foreseen] = asked_by(owner).post(path_of(kim), {"event": {"name": "user.left"}}).json()["results"]

        assert (ended["reason_code"], ended["reason"]) == ("exit", "left")

    @pytest.mark.parametrize("path", ["entities/nobody.knows/1/preview/", "entities/accounts.user/x/preview/"])
    def test_what_is_no_entity_is_not_there(self, by_staff, path):
        assert problem(by_staff.post(path, {"event": {"name": "user.left"}}), 404)

    def test_a_narrower_policy_of_the_host_counts(self, by_staff, kim, settings):
        settings.TIMELINE = {**settings.TIMELINE, "POLICY": f"{__name__}.Nothing"}

        assert told(by_staff.post(path_of(kim), {"anchors": {"trial_ends_at": "2031-01-01T00:00:00Z"}})) == []


class Nothing(TimelinePolicy):
    """Shows no task, and no run."""

    def visible(self, tasks, user):
        return tasks.none()

    def runs_seen(self, runs, user, most):
        return []


def person_who_may_emit(user):
    user.is_staff = True
    user.save(update_fields=["is_staff"])
    user.user_permissions.set(Permission.objects.filter(codename="add_event"))
    return type(user).objects.get(pk=user.pk)


class TestBounds:
    """Whatever is tried is made and undone, under the lock of its entity: nobody is to make that last."""

    @pytest.fixture
    def many(self, kim, make_task, clock):
        """Give kim so many open rows more."""

        def make(count):
            about = {"task_key": "greeting.greet", "entity_label": "accounts.user", "entity_id": str(kim.pk)}
            for _ in range(count):
                make_task(**about, scheduled_at=clock.now + timedelta(days=1))

        return make

    def test_two_hundred_are_answered_and_all_are_counted(self, by_staff, kim, many, clock, monkeypatch):
        monkeypatch.setattr(api, "MOST_SHOWN", 3)
        many(5)
        later = (clock.now + timedelta(days=20)).isoformat()

        answer = by_staff.post(path_of(kim), {"anchors": {"trial_ends_at": later}}).json()

        assert answer["counts"] == {"new": 0, "moved": 2, "gone": 0, "same": 5}
        assert [row["change"] for row in answer["results"]] == ["same", "moved", "moved"]

    def test_an_entity_with_very_many_rows_is_refused_before_anything_is_written(
        self, by_staff, kim, many, monkeypatch
    ):
        monkeypatch.setattr(what_if, "MOST_OPEN", 3)
        many(2)
        assert by_staff.post(path_of(kim), {"event": {"name": "user.left"}}).status_code == 200
        many(1)

        with CaptureQueriesContext(connection) as asked:
            answer = by_staff.post(path_of(kim), {"event": {"name": "user.left"}})

        assert (answer.status_code, answer.json()["field"]) == (400, "entity")
        assert not [one["sql"] for one in asked if writes(one["sql"])]

    def test_owners_may_ask_ten_times_a_minute_unless_the_site_says_otherwise(
        self, asked_by, by_staff, kim, settings, monkeypatch
    ):
        monkeypatch.setattr(TryingThrottle, "timer", lambda _throttle: 1000.0)  # However long it takes.
        by_kim, body = asked_by(kim), {"anchors": {"trial_ends_at": "2027-01-01T00:00:00Z"}}

        answers = [by_kim.post(path_of(kim), body).status_code for _ in range(11)]

        assert answers == [200] * 10 + [429]
        assert {by_staff.post(path_of(kim), body).status_code for _ in range(11)} == {200}
        settings.REST_FRAMEWORK = settings.REST_FRAMEWORK | {"DEFAULT_THROTTLE_RATES": {"timeline.trying": None}}
        assert by_kim.post(path_of(kim), body).status_code == 200


class TestMistakes:
    @pytest.mark.parametrize(
        ("body", "field"),
        [
            ({}, ""),
            ({"anchors": {}}, "anchors"),
            ({"anchors": {"trial_ends_at": 5}}, "anchors.trial_ends_at"),
            ({"anchors": {"email": "x"}}, "email"),
            ({"anchors": {"trial_ends_at": "soon"}}, "trial_ends_at"),
            ({"anchors": {"trial_ends_at": "2030-01-01T00:00:00"}}, "trial_ends_at"),
            ({"anchors": {"trial_ends_at": "9999-01-01T00:00:00Z"}}, "trial_ends_at"),
            ({"anchors": {"trial_ends_at": None}}, "trial_ends_at"),
            ({"start": {"timeline": "nothing"}}, "timeline"),
            ({"start": {"timeline": "billing"}}, "entity"),
            ({"event": {"name": ""}}, "event.name"),
            ({"event": {"name": "user.left", "payload": []}}, "event.payload"),
            ({"event": {"name": "user.lft"}}, "name"),
            ({"event": {"name": "user.left"}, "what": 1}, "what"),
        ],
    )
    def test_are_named_with_their_field(self, by_staff, kim, body, field):
        before = fingerprint()

        said = problem(by_staff.post(path_of(kim), body), 400)

        assert said["field"] == field
        assert fingerprint() == before

    def test_what_an_event_would_be_refused_for_is_a_conflict(self, by_staff, kim):
        emit("signing_in", kim)
        emit("gave_up", kim)

        assert problem(by_staff.post(path_of(kim), {"event": {"name": "code.given"}}), 409)


def lacks_stock(order):
    raise LookupError("no stock")


class TestWhatRaises:
    """A condition or an effect of the event raises: what is known without the event is told, and what raised what."""

    @pytest.fixture(params=["when", "do"])
    def word(self, request):
        return request.param

    @pytest.fixture
    def ordering(self, word):
        named = {"when": {"when": lacks_stock}, "do": {"do": lacks_stock}}[word]

        class Ordering(Machine):
            entity = "accounts.User"
            starts_on = "ordering"
            initial = "open"
            table = {"open": {"order.paid": to("paid", **named)}, "paid": {}}
            asks = {"order.paid": OWNER}
            timers = {"open": never}

        with only_timelines(Ending, Ordering):
            yield Ordering

    def test_it_is_named_with_its_error_beside_what_is_known(self, by_staff, kim, ordering, word, clock, caplog):
        emit("ordering", kim)
        before = fingerprint()
        later = (clock.now + timedelta(days=15)).isoformat()

        answer = by_staff.post(path_of(kim), {"anchors": {"trial_ends_at": later}, "event": {"name": "order.paid"}})

        assert told(answer) == [("ending.end", "moved", False), ("ending.ask", "moved", True)]
        what = {"when": "condition", "do": "effect"}[word]
        assert answer.json()["problem"] == (
            f"The {what} “lacks stock” raised LookupError: no stock. So this is told without the event."
        )
        assert fingerprint() == before
        assert "Traceback" in caplog.text

    def test_an_owner_learns_which_and_not_what_it_said(self, asked_by, kim, ordering):
        emit("ordering", kim)

        answer = asked_by(kim).post(path_of(kim), {"event": {"name": "order.paid"}})

        assert told(answer) == [("ending.end", "same", False), ("ending.ask", "same", True)]
        assert "“lacks stock” raised LookupError. So" in answer.json()["problem"]

    def test_without_one_there_is_no_problem(self, by_staff, kim):
        answer = by_staff.post(path_of(kim), {"event": {"name": "user.left"}})

        assert answer.json()["problem"] == ""

    @pytest.mark.django_db(transaction=True)
    def test_a_statement_that_fails_is_told_like_another_error(self, by_staff, kim):
        def asks_wrongly(user):
            with connection.cursor() as cursor:
                cursor.execute("SELECT 1 / 0")

        class Dividing(Machine):
            entity = "accounts.User"
            starts_on = "ordering"
            initial = "open"
            table = {"open": {"order.paid": to("paid", when=asks_wrongly)}, "paid": {}}

        with only_timelines(Ending, Dividing):
            emit("ordering", kim)
            answer = by_staff.post(path_of(kim), {"event": {"name": "order.paid"}})

        assert answer.status_code == 200, answer.content
        assert "The condition “asks wrongly” raised DataError: division by zero" in answer.json()["problem"]

"""``POST events/`` by those whom a machine asks, and nothing else of theirs."""

from __future__ import annotations

from datetime import timedelta

import pytest
from django.core.cache import cache
from django.db import connection
from django.test.utils import CaptureQueriesContext
from django.utils.dateparse import parse_datetime

from tests.api.test_tasks import problem
from timeline import OWNER, STAY, Machine, never, on, task
from timeline.models import Event, ScheduledTask, TimelineRun
from timeline.shortcuts import emit, explain, move, reconcile
from timeline.testing import only_timelines


class SignIn(Machine):
    """Asks the account for its code, and a clerk to help."""

    entity = "accounts.User"
    starts_on = "signing_in"
    initial = "asked"
    table = {
        "asked": {
            "code.given": "over",
            "helped": "over",
            "gave_up": "over",
            "code.wanted": STAY,
            "code.lost": "lost",
            "code.wanted_anew": "asked",
            "signing_in.more": STAY,
        },
        "lost": {"code.found": "asked", "code.wanted": STAY},
        "over": {},
    }
    timers = {"gave_up": on("asked", minutes=10), "lost": never}
    asks = {
        "code.given": OWNER,
        "helped": "timeline.cancel_scheduledtask",
        "code.wanted": OWNER,
        "code.wanted_anew": OWNER,
    }

    @task(on("asked"))
    def send(self, user): ...


def deadlines(run):
    return list(ScheduledTask.objects.open().filter(run=run, task_key="sign_in.timer:gave_up"))


def sent(run):
    return ScheduledTask.objects.filter(run=run, task_key="sign_in.send", state="completed").count()


@pytest.fixture(autouse=True)
def _known(clock):
    cache.clear()  # How often was asked.
    with only_timelines(SignIn):
        yield
    cache.clear()


@pytest.fixture
def by_ada(ada, asked_by):
    return asked_by(ada)


@pytest.fixture
def run(ada, _known):
    emit("signing_in", ada)
    return TimelineRun.objects.get()


@pytest.fixture
def body(ada):
    about = {"label": "accounts.user", "id": str(ada.pk)}
    return {"name": "code.given", "machine": "sign_in", "entity": about, "payload": {"code_ref": 7}}


class TestWhoIsAsked:
    def test_may_say_it(self, by_ada, ada, run, body):
        answer = by_ada.post("events/", body)

        assert answer.status_code == 201
        assert Event.objects.get(name="code.given").actor == ada.email
        run.refresh_from_db()
        assert run.state == "over"

    def test_is_told_so(self, by_ada, run):
        [machine] = by_ada.get("me/tasks/").json()["machines"]

        assert (machine["takes"], machine["asked"]) == (
            ["code.given", "code.lost", "code.wanted", "code.wanted_anew", "gave_up", "helped", "signing_in.more"],
            ["code.given", "code.wanted", "code.wanted_anew"],
        )

    @pytest.mark.parametrize(
        "change",
        [
            {"name": "helped"},
            {"name": "gave_up"},
            {"name": "signing_in"},
            {"machine": ""},
            {"machine": "other"},
            {"entity": None},
            {"occurred_at": "2026-01-01T00:00:00Z"},
            {"name": ""},
            {"payload": 7},
        ],
        ids=str,
    )
    def test_may_say_nothing_else(self, by_ada, run, body, change):
        problem(by_ada.post("events/", body | change), 403)

        assert Event.objects.count() == 1

    def test_learns_nothing_of_others(self, by_ada, person, run, body):
        bob = person("bob")
        emit("signing_in", bob)
        answers, counts = [], []
        for key in (bob.pk, 987654321):
            with CaptureQueriesContext(connection) as queries:
                answers.append(by_ada.post("events/", body | {"entity": {"label": "accounts.user", "id": str(key)}}))
            counts.append(len(queries))

        assert [answer.status_code for answer in answers] == [403, 403]
        assert answers[0].json() == answers[1].json()
        assert counts[0] == counts[1]

    def test_may_say_it_while_it_is_asked_only(self, by_ada, ada, run, body):
        emit("gave_up", ada)

        problem(by_ada.post("events/", body), 403)


class TestKeysOfWhoIsAsked:
    def test_take_none_of_the_sites(self, by_ada, ada, run, body):
        """The site says it for the first time, though they have said it with its key."""
        by_ada.post("events/", body | {"name": "code.wanted", "key": "crm-17"})

        emission = emit("code.wanted", ada, key="crm-17")

        assert emission.recorded
        assert Event.objects.filter(name="code.wanted").count() == 2

    @pytest.mark.parametrize("key", ["k", "k" * 200])
    def test_are_theirs_to_send_it_again(self, by_ada, ada, run, body, key):
        body |= {"name": "code.wanted", "key": key}

        assert [by_ada.post("events/", body).status_code for _ in range(2)] == [201, 200]
        assert by_ada.post("events/", body | {"key": key[1:] + "x"}).status_code == 201
        problem(by_ada.post("events/", body | {"payload": {}}), 409)

    def test_are_not_those_of_others_who_are_asked(self, by_ada, person, asked_by, run, body):
        clerk = asked_by(person("clerk", "cancel_scheduledtask"))
        with only_timelines(Both):
            emit("signing_in", run.entity_ref)
            both = body | {"machine": "both", "name": "said", "key": "k"}

            assert [who.post("events/", both).status_code for who in (by_ada, clerk)] == [201, 201]


class Both(Machine):
    """Asks the account or a clerk."""

    entity = "accounts.User"
    starts_on = "signing_in"
    initial = "asked"
    table = {"asked": {"said": STAY, "gave_up": "over"}, "over": {}}
    timers = {"asked": never}
    asks = {"said": (OWNER, "timeline.cancel_scheduledtask")}


class TestDeadlines:
    def ask(self, by_ada, body, name="code.wanted"):
        answer = by_ada.post("events/", body | {"name": name})
        assert answer.status_code == 201, answer.content

    def test_are_not_put_off_by_who_is_asked(self, by_ada, run, body, clock):
        """The move is one: what the state does is done again."""
        for minutes in (4, 4):
            clock.advance(minutes=minutes)
            self.ask(by_ada, body)
        clock.advance(minutes=1)

        run.refresh_from_db()
        assert (run.state, run.moves) == ("asked", 2)
        assert sent(run) == 3
        clock.advance(minutes=1)
        run.refresh_from_db()
        assert run.state == "over"

    def test_are_due_as_before_also_after_the_entity_is_looked_at(self, by_ada, ada, run, body, clock):
        [before] = deadlines(run)
        clock.advance(minutes=4)
        self.ask(by_ada, body)

        reconcile(ada)

        [after] = deadlines(run)
        assert (after.scheduled_at, after.reason_code) == (before.scheduled_at, "moved")
        assert "due as before" in explain(after)

    def test_that_a_person_moved_stay_where_they_are(self, by_ada, run, body, clock):
        [before] = deadlines(run)
        move(before, at=before.scheduled_at + timedelta(hours=1), reason="she is abroad")

        self.ask(by_ada, body)

        assert [row.scheduled_at for row in deadlines(run)] == [before.scheduled_at + timedelta(hours=1)]

    def test_that_are_overdue_come_at_once(self, by_ada, run, body, clock):
        [before] = deadlines(run)
        ScheduledTask.objects.filter(pk=before.pk).update(scheduled_at=clock.now - timedelta(minutes=1))

        self.ask(by_ada, body)
        clock.run_due()

        run.refresh_from_db()
        assert run.state == "over"

    def test_begin_anew_where_the_table_says_so(self, by_ada, run, body, clock):
        clock.advance(minutes=4)
        self.ask(by_ada, body, "code.wanted_anew")

        assert [row.scheduled_at for row in deadlines(run)] == [clock.now + timedelta(minutes=10)]

    @pytest.mark.parametrize("said", ["emitted", "by who may emit"])
    def test_begin_anew_by_all_others(self, by_staff, ada, run, body, clock, said):
        clock.advance(minutes=4)
        if said == "emitted":
            emit("code.wanted", ada)
        else:
            about = {"label": "accounts.user", "id": str(ada.pk)}
            assert by_staff.post("events/", {"name": "signing_in.more", "entity": about}).status_code == 201

        assert [row.scheduled_at for row in deadlines(run)] == [clock.now + timedelta(minutes=10)]

    def test_of_an_event_that_is_sent_again_are_as_they_were(self, by_ada, run, body, clock):
        self.ask(by_ada, body | {"key": "k"})
        [before] = deadlines(run)
        clock.advance(minutes=4)

        assert by_ada.post("events/", body | {"name": "code.wanted", "key": "k"}).status_code == 200

        assert [(row.pk, row.scheduled_at) for row in deadlines(run)] == [(before.pk, before.scheduled_at)]

    def test_are_told_by_what_if_as_they_would_be(self, by_ada, ada, run, body, clock):
        clock.advance(minutes=4)
        [before] = deadlines(run)

        answer = by_ada.post(f"entities/accounts.user/{ada.pk}/preview/", {"event": {"name": "code.wanted"}}).json()

        times = {row["then_at"] for row in answer["results"] if "gave_up" in row["task"] and row["then_at"]}
        assert [parse_datetime(at) for at in times] == [before.scheduled_at]


class TestHowOften:
    def test_is_bounded_unless_the_host_says_otherwise(self, by_ada, run, body):
        body |= {"name": "code.wanted", "key": "k"}

        codes = [by_ada.post("events/", body).status_code for _ in range(31)]

        assert (codes[:30], codes[30]) == ([201] + [200] * 29, 429)

    @pytest.mark.parametrize(("rate", "last"), [("2/min", 429), (None, 200)])
    def test_is_as_the_host_says(self, by_ada, run, body, settings, rate, last):
        rates = {"DEFAULT_THROTTLE_RATES": {"timeline.asked": rate}}
        settings.REST_FRAMEWORK = settings.REST_FRAMEWORK | rates
        body |= {"name": "code.wanted", "key": "k"}

        assert [by_ada.post("events/", body).status_code for _ in range(3)] == [201, 200, last]

    def test_is_not_bounded_for_who_may_emit(self, by_staff, ada, run, body):
        body |= {"name": "signing_in", "machine": "", "key": "k"}

        assert {by_staff.post("events/", body).status_code for _ in range(32)} <= {200, 201}

    def test_puts_off_no_deadline_for_ever(self, by_ada, ada, run, body, clock):
        """Where the table names the state itself, it is entered anew each time, and its timer begins again."""
        body |= {"name": "code.wanted_anew"}
        for _ in range(10):
            clock.advance(minutes=9)
            cache.clear()
            assert by_ada.post("events/", body).status_code == 201

        clock.advance(minutes=9)
        problem(by_ada.post("events/", body), 429)
        clock.advance(minutes=2)

        run.refresh_from_db()
        assert run.state == "over"

    def test_is_counted_anew_in_another_state(self, by_ada, ada, run, body):
        body |= {"name": "code.wanted"}
        for name in ("code.lost", "code.found"):
            assert {by_ada.post("events/", body).status_code for _ in range(10)} == {201}
            problem(by_ada.post("events/", body), 429)
            cache.clear()
            emit(name, ada)

        assert by_ada.post("events/", body).status_code == 201

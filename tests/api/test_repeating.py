"""Requests with an ``Idempotency-Key``: sent again, they are answered as the first time, and nothing is done twice."""

from __future__ import annotations

import threading
from concurrent.futures import ThreadPoolExecutor
from datetime import timedelta
from itertools import count
from types import SimpleNamespace

import pytest
from django.contrib.auth.models import AnonymousUser, Permission
from django.db import DatabaseError, connection, connections
from django.test.utils import CaptureQueriesContext

from tests.api.conftest import EVERYTHING, ROOT, Asker
from tests.api.test_tasks import problem
from tests.resting import resting
from timeline.api.preconditions import RequestOutcome, answer_once
from timeline.api.serializers import TaskSerializer
from timeline.clocks import MachineTime
from timeline.lifecycle import State
from timeline.models import Answer, Event, LogEntry, ScheduledTask

ACTIONS = {"cancel": State.SCHEDULED, "move": State.AVAILABLE, "run-now": State.SCHEDULED, "redrive": State.DISCARDED}
DECISIONS = ["step-happened", "forget-step", "go-on"]
EVERY = [*ACTIONS, *DECISIONS, "event"]
AGAIN = {**dict.fromkeys([*ACTIONS, *DECISIONS], 409), "event": 201}  # What doing it once more is answered.
DAY = timedelta(hours=24)
KEY = "8e03978e-40d5-43dd-bc93-6894a57f9324"


@pytest.fixture
def request_of(ada, about, clock):
    """A path and a body that do something: ``request_of("cancel")``."""

    def make(kind):
        if kind == "event":
            return "events/", {"name": "user.created", "entity": {"label": "accounts.user", "id": str(ada.pk)}}
        if kind in DECISIONS:
            row = resting(about, "account.call", ada, in_doubt=kind != "go-on")
            step = {} if kind == "go-on" else {"step": "transfer"}
            return f"tasks/{row.pk}/{kind}/", {"reason": "x", **step}
        row = about("account.call", ada, state=ACTIONS[kind], scheduled_at=clock.now + timedelta(hours=1))
        body = {"reason": "x"} | ({"at": "2031-01-01T00:00:00Z"} if kind == "move" else {})
        return f"tasks/{row.pk}/{kind}/", body

    return make


def send(asker, path, body, key=KEY, **headers):
    given = {"Idempotency-Key": key, **{name.replace("_", "-"): value for name, value in headers.items()}}
    return asker.client.post(f"{ROOT}/{path}", body, content_type="application/json", headers=given)


def rows():
    """All that actions write."""
    return [list(model.objects.order_by("pk").values()) for model in (ScheduledTask, LogEntry, Event)]


@pytest.mark.parametrize("kind", EVERY)
class TestTheSameAgain:
    def test_is_answered_alike_and_does_nothing(self, by_staff, request_of, kind):
        path, body = request_of(kind)
        first = send(by_staff, path, body)
        before = rows()

        again = send(by_staff, path, body)

        assert first.status_code in (200, 201), first.content
        assert (again.status_code, again.content) == (first.status_code, first.content)
        assert again.headers["Idempotency-Replayed"] == "true"
        assert "Idempotency-Replayed" not in first.headers
        told = {name: value for name, value in again.headers.items() if name != "Idempotency-Replayed"}
        assert told == dict(first.headers.items())
        assert rows() == before

    def test_comes_before_if_match(self, by_staff, request_of, kind):
        path, body = request_of(kind)
        first = send(by_staff, path, body, If_Match='"0"')

        again = send(by_staff, path, body, If_Match='"0"')

        assert first.status_code in (200, 201), first.content
        assert again.content == first.content

    def test_with_another_body_is_refused(self, by_staff, request_of, kind):
        path, body = request_of(kind)
        send(by_staff, path, body)
        before = rows()
        other = {"occurred_at": "2026-01-01T00:00:00Z"} if kind == "event" else {"reason": "y"}

        told = problem(send(by_staff, path, body | other), 422)

        assert (told["field"], told["type"]) == ("Idempotency-Key", "urn:timeline:key-reused")
        assert told["remedy"]
        assert rows() == before

    def test_is_done_again_without_a_key_or_with_another(self, by_staff, request_of, kind):
        path, body = request_of(kind)
        send(by_staff, path, body)

        for key in ("other", None):
            answer = send(by_staff, path, body, key) if key else by_staff.post(path, body)
            assert "Idempotency-Replayed" not in answer.headers
            assert answer.status_code == AGAIN[kind]

    def test_after_the_permission_was_lost_is_refused(self, by_staff, staff, request_of, kind):
        path, body = request_of(kind)
        send(by_staff, path, body)
        name = (
            "add_event"
            if kind == "event"
            else f"{'decide' if kind in DECISIONS else kind.replace('-', '_')}_scheduledtask"
        )
        staff.user_permissions.remove(Permission.objects.get(codename=name))

        problem(send(by_staff, path, body), 403)

    def test_of_somebody_else_is_theirs(self, by_staff, asked_by, person, request_of, kind):
        path, body = request_of(kind)
        send(by_staff, path, body)

        answer = send(asked_by(person("other", *EVERYTHING)), path, body)

        assert "Idempotency-Replayed" not in answer.headers
        assert answer.status_code == AGAIN[kind]

    def test_is_done_when_the_answer_is_no_longer_kept(self, by_staff, request_of, kind):
        path, body = request_of(kind)
        send(by_staff, path, body)
        Answer.objects.update(made_at=MachineTime(-DAY - timedelta(seconds=1)))

        answer = send(by_staff, path, body)

        assert "Idempotency-Replayed" not in answer.headers
        assert answer.status_code == AGAIN[kind]

    def test_costs_two_queries_more_than_without_a_key(self, by_staff, request_of, kind):
        asked = []
        for key in (False, True):
            path, body = request_of(kind)
            with CaptureQueriesContext(connection) as queries:
                answer = send(by_staff, path, body) if key else by_staff.post(path, body)
            assert answer.status_code in (200, 201)
            asked.append([query["sql"] for query in queries if "SAVEPOINT" not in query["sql"]])

        without, with_key = asked
        assert [sql for sql in without if "timeline_answer" in sql] == []
        assert len(with_key) == len(without) + 2


class TestTheSameKey:
    def test_for_another_path_is_refused(self, by_staff, request_of):
        path, body = request_of("cancel")
        send(by_staff, path, body)
        other, body = request_of("cancel")

        assert problem(send(by_staff, other, body), 422)["field"] == "Idempotency-Key"
        assert ScheduledTask.objects.filter(state=State.CANCELLED).count() == 1

    def test_in_another_order_of_fields_is_the_same_request(self, by_staff, request_of):
        path, body = request_of("move")
        first = send(by_staff, path, body)

        assert send(by_staff, path, dict(reversed(body.items()))).content == first.content

    def test_is_free_after_a_refusal(self, by_staff, request_of, clock):
        path, body = request_of("redrive")
        refused = [
            send(by_staff, path.replace("redrive", "run-now"), body),
            send(by_staff, path, body | {"reason": ""}),
            send(by_staff, path, body, If_Match='"7"'),
        ]

        assert [answer.status_code for answer in refused] == [409, 400, 412]
        assert not Answer.objects.exists()
        assert send(by_staff, path, body).status_code == 200

    def test_of_what_is_no_longer_seen_is_not_answered(self, by_staff, staff, request_of):
        path, body = request_of("cancel")
        send(by_staff, path, body)
        staff.user_permissions.remove(Permission.objects.get(codename="view_scheduledtask"))

        assert send(by_staff, path, body).status_code == 404

    def test_of_an_event_whose_entity_has_gone_is_answered(self, by_staff, request_of, ada):
        path, body = request_of("event")
        first = send(by_staff, path, body)
        ada.delete()

        assert send(by_staff, path, body).content == first.content
        assert problem(send(by_staff, path, body, "other"), 400)["field"] == "entity"

    @pytest.mark.parametrize("kind", EVERY)
    @pytest.mark.parametrize("key", ["", "a b", "ä", "\x7f", "x" * 256])
    def test_that_is_none_is_refused(self, by_staff, request_of, kind, key):
        path, body = request_of(kind)
        before = rows()

        assert problem(send(by_staff, path, body, key), 400)["field"] == "Idempotency-Key"
        assert rows() == before

    @pytest.mark.parametrize("key", ["!", "~" * 255, '"quoted"', "a,b"])
    def test_may_be_any_visible_ascii(self, by_staff, request_of, key):
        path, body = request_of("cancel")
        first = send(by_staff, path, body, key)

        assert send(by_staff, path, body, key).content == first.content

    def test_is_not_kept_itself(self, by_staff, staff, request_of):
        path, body = request_of("cancel")
        send(by_staff, path, body)

        [kept] = Answer.objects.values()
        assert KEY not in str(kept)
        assert staff.email in kept["body"]  # What was answered.

    def test_of_a_user_without_a_primary_key_is_not_used(self):
        """It would be that of all such users."""
        asked = SimpleNamespace(headers={"Idempotency-Key": KEY}, user=AnonymousUser())
        acts = count()

        answers = [
            answer_once(asked, lambda: RequestOutcome(next(acts)), lambda said, _again: said, using="default")
            for _ in range(2)
        ]

        assert [answer.data for answer in answers] == [0, 1]

    def test_says_nothing_to_who_may_not(self, asked_by, ada, person, request_of):
        path, body = request_of("cancel")

        assert send(asked_by(ada), path, body, "a b").status_code == 403
        assert send(asked_by(person("ben")), path, body, "a b").status_code == 404
        assert send(asked_by(), path, body, "a b").status_code == 403

    @pytest.mark.parametrize("depth", [65, 400, *range(880, 960, 10)])
    def test_with_a_body_however_deep_is_no_fault(self, by_staff, depth):
        text = '{"name": "x", "payload": {"a": ' + "[" * depth + "]" * depth + "}}"

        answer = by_staff.client.post(
            f"{ROOT}/events/", text, content_type="application/json", headers={"Idempotency-Key": KEY}
        )

        assert answer.status_code == 400


class TestAnActionAndItsAnswer:
    @pytest.mark.parametrize("kind", EVERY)
    def test_are_written_together_or_not_at_all(self, by_staff, request_of, kind):
        """As if the process died after the action."""
        path, body = request_of(kind)
        before = rows()
        by_staff.client.raise_request_exception = False

        def dies(execute, sql, *rest):
            if sql.startswith('UPDATE "timeline_answer"'):
                raise DatabaseError("gone")
            return execute(sql, *rest)

        with connection.execute_wrapper(dies):
            assert send(by_staff, path, body).status_code == 500

        assert rows() == before
        assert not Answer.objects.exists()
        assert send(by_staff, path, body).status_code in (200, 201)

    def test_go_if_the_answer_cannot_be_made(self, by_staff, request_of, monkeypatch):
        path, body = request_of("cancel")
        before = rows()
        by_staff.client.raise_request_exception = False
        with monkeypatch.context() as broken:
            broken.setattr(TaskSerializer, "get_reason", lambda *_: 1 / 0)
            assert send(by_staff, path, body).status_code == 500

        assert rows() == before
        assert send(by_staff, path, body).status_code == 200


@pytest.mark.django_db(transaction=True)
class TestAtOnce:
    @pytest.mark.parametrize("kind", EVERY)
    def test_is_done_once(self, staff, request_of, kind):
        path, body = request_of(kind)
        askers = [Asker(staff) for _ in range(4)]
        gate = threading.Barrier(len(askers))

        def ask(asker):
            try:
                gate.wait(120)
                return send(asker, path, body)
            finally:
                connections.close_all()

        with ThreadPoolExecutor(len(askers)) as threads:
            answers = list(threads.map(ask, askers))

        assert {answer.status_code for answer in answers} <= {200, 201}
        assert len({answer.content for answer in answers}) == 1
        assert sum("Idempotency-Replayed" in answer.headers for answer in answers) == len(askers) - 1
        assert Event.objects.count() == (kind == "event")
        assert ScheduledTask.objects.count() == (2 if kind in ("move", "redrive") else 1)

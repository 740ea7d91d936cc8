"""``POST events/`` by those whom a machine asks, and nothing else of theirs."""

from __future__ import annotations

import pytest
from django.db import connection
from django.test.utils import CaptureQueriesContext

from tests.api.test_tasks import problem
from timeline import OWNER, Machine, never
from timeline.models import Event, TimelineRun
from timeline.shortcuts import emit
from timeline.testing import only_timelines


class SignIn(Machine):
    """Asks the account for its code, and a clerk to help."""

    entity = "accounts.User"
    starts_on = "signing_in"
    initial = "asked"
    table = {"asked": {"code.given": "over", "helped": "over", "gave_up": "over"}, "over": {}}
    timers = {"asked": never}
    asks = {"code.given": OWNER, "helped": "timeline.cancel_scheduledtask"}


@pytest.fixture(autouse=True)
def _known(clock):
    with only_timelines(SignIn):
        yield


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

        assert (machine["takes"], machine["asked"]) == (["code.given", "gave_up", "helped"], ["code.given"])

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

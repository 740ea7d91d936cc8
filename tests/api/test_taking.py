"""Whoever may answer what waits for people takes it, and hands it over."""

from __future__ import annotations

from datetime import timedelta

import pytest

from tests.api.test_tasks import problem
from timeline import OWNER, Machine, Timeline, approval, ask, never, task
from timeline.models import ScheduledTask, Taking, TimelineRun
from timeline.shortcuts import emit
from timeline.testing import only_timelines

PERMISSION = "cancel_scheduledtask"


class Identity(Machine):
    entity = "accounts.User"
    starts_on = "identity.sent"
    initial = "unclear"
    table = {"unclear": {"identity.kept": "over", "identity.shown": "over"}, "over": {}}
    timers = {"unclear": never}
    asks = {"identity.kept": ask("It is fine", by=f"timeline.{PERMISSION}"), "identity.shown": OWNER}


class Closing(Timeline):
    entity = "accounts.User"
    starts_on = "closing.asked"

    @task(approval("closing", by=f"timeline.{PERMISSION}", within=timedelta(days=1)))
    def close(self, user): ...


@pytest.fixture(autouse=True)
def _known(clock):
    with only_timelines(Identity, Closing):
        yield


@pytest.fixture
def clerk(person, asked_by):
    return asked_by(person("clerk", PERMISSION, "view_scheduledtask", is_staff=True))


@pytest.fixture(params=["identity.sent", "closing.asked"])
def item(request, ada):
    emit(request.param, ada)
    return (TimelineRun if request.param == "identity.sent" else ScheduledTask).objects.get().pk


class TestTake:
    def test_says_who_has_it(self, clerk, item):
        answer = clerk.post(f"waiting/{item}/take/", {})

        assert answer.status_code == 200
        given = answer.json()
        assert (given["item"], given["holder"], given["actor"]) == (str(item), *["clerk@example.com"] * 2)
        assert given["at"]

    def test_is_refused_to_the_next_who_can_answer_all_the_same(self, clerk, person, asked_by, ada, item):
        other = asked_by(person("other", PERMISSION, "view_scheduledtask", "add_event", is_staff=True))
        clerk.post(f"waiting/{item}/take/", {})

        said = problem(other.post(f"waiting/{item}/take/", {}), 409)

        assert "clerk@example.com has it since" in said["detail"]
        if TimelineRun.objects.get().state:
            about = {"label": "accounts.user", "id": str(ada.pk)}
            assert other.post("events/", {"name": "identity.kept", "entity": about}).status_code == 201

    def test_is_not_for_who_may_only_look_nor_for_who_sees_nothing(self, person, asked_by, item):
        looking, bob = asked_by(person("vera", "view_scheduledtask", is_staff=True)), asked_by(person("bob"))

        problem(looking.post(f"waiting/{item}/take/", {}), 403)
        problem(bob.post(f"waiting/{item}/take/", {}), 404)
        problem(looking.post("waiting/01900000-0000-7000-8000-000000000000/take/", {}), 404)
        assert not Taking.objects.exists()


class TestHandOver:
    def test_names_both(self, clerk, person, item):
        person("other", PERMISSION, "view_scheduledtask", is_staff=True)

        given = clerk.post(f"waiting/{item}/hand-over/", {"to": "other@example.com"}).json()

        assert (given["holder"], given["actor"]) == ("other@example.com", "clerk@example.com")

    @pytest.mark.parametrize("to", ["nobody@example.com", "vera@example.com"])
    def test_is_refused_to_who_may_not_answer(self, clerk, person, item, to):
        person("vera", "view_scheduledtask", is_staff=True)

        said = problem(clerk.post(f"waiting/{item}/hand-over/", {"to": to}), 400)

        assert f"{to} is nobody who may answer this." in str(said)
        assert not Taking.objects.exists()


class TestTitles:
    def test_are_there_for_what_is_asked(self, clerk, ada):
        emit("identity.sent", ada)
        [machine] = clerk.get(f"entities/accounts.user/{ada.pk}/tasks/").json()["machines"]

        assert (machine["asked"], machine["buttons"]) == (["identity.kept"], {"identity.kept": "It is fine"})

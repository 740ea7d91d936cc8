"""Machines by the API: an event moves them or is refused, and an entity's timeline says where they are."""

from __future__ import annotations

import pytest
from django.utils.translation import gettext_lazy

from tests.api.test_tasks import problem
from timeline import Machine, Timeline, after, task
from timeline.models import Event, ref_of
from timeline.shortcuts import emit
from timeline.testing import only_timelines


class Door(Machine):
    """About accounts: a door of their own."""

    entity = "accounts.User"
    starts_on = "door.made"
    initial = "shut"
    table = {"shut": {"door.opened": "open"}, "open": {"door.shut": "shut", "door.broken": "broken"}, "broken": {}}
    titles = {"open": "wide open", "door.shut": gettext_lazy("Yes"), "broken": "beyond repair"}

    @task(after(days=5))
    def oil(self, user): ...


class Plain(Timeline):
    entity = "accounts.User"

    @task(after(days=5))
    def oil(self, user): ...


@pytest.fixture(autouse=True)
def _door(clock):
    with only_timelines(Door):
        yield


@pytest.fixture
def emitter(asked_by, person):
    return asked_by(person("emil", "add_event"))


@pytest.fixture
def made(ada):
    emit("door.made", ada, actor="bob")
    return ada


def body(user, name, **more):
    return {"name": name, "entity": ref_of(user)._asdict(), **more}


def post(client, data):
    return client.post("events/", data)


class TestEvents:
    def test_move_a_machine_and_say_so(self, emitter, made):
        answer = post(emitter, body(made, "door.opened", expect="shut", machine="door"))

        assert answer.status_code == 201, answer.content
        assert answer.json()["moved"] == ["door"]

    def test_are_refused_by_a_state_that_does_not_take_them(self, emitter, made):
        answer = post(emitter, body(made, "door.broken"))

        said = problem(answer, 409)
        assert said["type"] == "urn:timeline:move-not-allowed"
        assert said["remedy"] == "It takes door.opened."
        assert Event.objects.count() == 1

    def test_are_refused_where_another_state_was_expected(self, emitter, made):
        answer = post(emitter, body(made, "door.opened", expect="open"))

        assert "not open as expected" in problem(answer, 409)["detail"]

    @pytest.mark.parametrize(
        ("more", "field"),
        [({"expect": "ajar"}, "expect"), ({"machine": "dor"}, "timeline"), ({"expect": "x" * 51}, "expect")],
    )
    def test_with_a_wish_that_cannot_be_are_refused(self, emitter, made, more, field):
        answer = post(emitter, body(made, "door.opened", **more))

        assert (answer.status_code, answer.json()["field"]) == (400, field)

    def test_that_the_machine_does_not_know_are_refused_if_it_is_named(self, emitter, made):
        answer = post(emitter, body(made, "door.opend", machine="door"))

        assert "door.opened" in problem(answer, 400)["remedy"]


class TestEntity:
    def test_says_where_its_machines_are(self, asked_by, person, made, clock):
        emit("door.opened", made, actor="bob")
        staff = asked_by(person("sam", "view_scheduledtask"))

        [machine] = staff.get(f"entities/accounts.user/{made.pk}/tasks/").json()["machines"]

        at = clock.now.isoformat().replace("+00:00", "Z")
        assert (machine["timeline"], machine["state"], machine["state_at"], machine["ended_at"]) == (
            "door",
            "open",
            at,
            None,
        )
        assert machine["takes"] == ["door.broken", "door.shut"]
        assert machine["titles"] == {"open": "wide open", "door.shut": "Yes"}
        assert machine["entity"] == {"label": "accounts.user", "id": str(made.pk)}
        assert [(move["seq"], move["to_state"], move["actor"]) for move in machine["moves"]] == [
            (0, "shut", "bob"),
            (1, "open", "bob"),
        ]

    def test_says_it_to_its_owner_without_who_moved_it(self, asked_by, made):
        [machine] = asked_by(made).get("me/tasks/").json()["machines"]

        assert machine["state"] == "shut"
        assert [move["actor"] for move in machine["moves"]] == [""]

    def test_says_it_to_nobody_else(self, asked_by, person, made):
        assert asked_by(person("ben")).get(f"entities/accounts.user/{made.pk}/tasks/").status_code == 404

    def test_says_of_one_that_has_ended_that_it_takes_nothing(self, asked_by, made):
        emit("door.opened", made)
        emit("door.broken", made)

        [machine] = asked_by(made).get("me/tasks/").json()["machines"]

        assert (machine["state"], machine["takes"]) == ("broken", [])
        assert machine["ended_at"]

    def test_says_it_not_with_a_part(self, asked_by, made):
        assert "machines" not in asked_by(made).get("me/tasks/?part=past").json()

    def test_says_nothing_of_machines_where_there_are_none(self, asked_by, ada):
        with only_timelines(Plain):
            assert "machines" not in asked_by(ada).get("me/tasks/").json()

"""``holds/``."""

from __future__ import annotations

from datetime import timedelta
from uuid import uuid4

import pytest

from tests.api import conftest as api
from tests.api.test_tasks import problem
from timeline.features.holds.verbs import park
from timeline.lifecycle import State
from timeline.models import Hold
from timeline.shortcuts import hold, release

_asks_for_the_first_time = api._asks_for_the_first_time  # Fixtures.
_only_these = api._only_these
about = api.about
ada = api.ada
asked_by = api.asked_by
by_staff = api.by_staff
person = api.person
staff = api.staff


@pytest.fixture
def body():
    return {"scope": "timeline", "target": "account", "reason": "their mail is down"}


class TestMake:
    def test_puts_on_hold_what_is_named(self, by_staff, staff, ada, clock):
        entity = {"label": "accounts.user", "id": str(ada.pk)}
        until = (clock.now + timedelta(hours=1)).isoformat().replace("+00:00", "Z")

        answer = by_staff.post(
            "holds/", {"scope": "entity", "entity": entity, "until": until, "then": "shift", "reason": "a dispute"}
        )

        made = Hold.objects.get()
        assert answer.status_code == 201
        assert answer.json() == {
            "id": str(made.pk),
            "scope": "entity",
            "target": "",
            "entity": entity,
            "then": "shift",
            "until": until,
            "reason": "a dispute",
            "actor": staff.email,
            "created_at": clock.now.isoformat().replace("+00:00", "Z"),
            "lifted_at": None,
            "released_by": "",
            "release_reason": "",
            "park_above": None,
            "park_within_seconds": None,
            "settled": 0,
            "released_at": None,
        }
        assert made.names == [["accounts.user", str(ada.pk)]]

    @pytest.mark.parametrize(
        ("wrong", "field"),
        [
            ({"scope": "row"}, "scope"),
            ({"target": ""}, "target"),
            ({"target": "nothing"}, "timeline"),
            ({"scope": "queue", "target": "nothing"}, "queue"),
            ({"scope": "tag", "target": "nothing"}, "tag"),
            ({"scope": "everything"}, "target"),
            ({"scope": "entity", "target": ""}, "entity"),
            ({"entity": {"label": "accounts.user", "id": "1"}}, "entity"),
            ({"scope": "entity", "target": "", "entity": {"label": "accounts.user", "id": "4711"}}, "entity"),
            ({"scope": "entity", "target": "", "entity": {"label": "auth.group", "id": "1"}}, "entity"),
            ({"until": "2020-01-01T00:00:00Z"}, "until"),
            ({"then": "wait"}, "then"),
            ({"reason": " "}, "reason"),
        ],
    )
    def test_refuses_what_cannot_be_held(self, by_staff, clock, body, wrong, field):
        said = problem(by_staff.post("holds/", body | wrong), 400)

        assert said["field"] == field
        assert not Hold.objects.exists()

    def test_is_done_once_for_each_idempotency_key(self, by_staff, clock, body):
        asked = {"content_type": "application/json", "headers": {"Idempotency-Key": "k"}}

        answers = [by_staff.client.post("/api/v1/holds/", body, **asked) for _ in range(2)]

        assert answers[0].json() == answers[1].json()
        assert Hold.objects.count() == 1


class TestList:
    def test_shows_what_holds_in_pages(self, by_staff, clock):
        held = [hold(task="account.call", reason=str(number)) for number in range(3)]
        release(held[0])

        first = by_staff.get("holds/", limit=1).json()
        second = by_staff.client.get(first["next"]).json()

        assert [row["id"] for row in first["results"] + second["results"]] == [str(row.pk) for row in held[1:]]
        assert second["next"] is None
        assert [row["id"] for row in by_staff.get("holds/", released="true").json()["results"]] == [str(held[0].pk)]

    @pytest.mark.parametrize("query", [{"released": "yes"}, {"cursor": "x"}, {"limit": "0"}, {"what": "x"}])
    def test_refuses_queries_that_mean_nothing(self, by_staff, query):
        problem(by_staff.get("holds/", **query), 400)

    def test_shows_nothing_to_who_may_not_see_it(self, asked_by, person, clock):
        hold(task="account.call", reason="x")

        assert asked_by(person("bob", "view_scheduledtask")).get("holds/").json()["results"] == []


class TestRelease:
    def test_ends_it(self, by_staff, staff, clock):
        held = hold(task="account.call", reason="x")

        answer = by_staff.post(f"holds/{held.pk}/release/")

        assert (answer.status_code, answer.json()["released_by"]) == (200, staff.email)
        assert answer.json()["released_at"] is not None

    def test_takes_a_reason_where_a_brake_has_made_it(self, by_staff, staff, clock):
        held = park("account.call", most=3, within=timedelta(hours=1), now=clock.now, using="default")

        refused = by_staff.post(f"holds/{held.pk}/release/")
        answer = by_staff.post(f"holds/{held.pk}/release/", {"reason": "they left"})

        assert (refused.status_code, refused.json()["field"]) == (400, "reason")
        assert answer.status_code == 200
        told = answer.json()
        assert (told["release_reason"], told["released_by"]) == ("they left", staff.email)
        assert (told["park_above"], told["park_within_seconds"], told["actor"]) == (3, 3600, "")

    def test_is_refused_if_it_was_released(self, by_staff, clock):
        held = hold(task="account.call", reason="x")
        release(held)

        assert problem(by_staff.post(f"holds/{held.pk}/release/"), 409)["type"] == "urn:timeline:already-released"

    def test_tells_nobody_of_one_that_they_do_not_see(self, asked_by, by_staff, person, clock):
        held = hold(task="account.call", reason="x")

        problem(asked_by(person("bob", "view_scheduledtask")).post(f"holds/{held.pk}/release/"), 404)
        problem(asked_by(person("cy", "view_hold")).post(f"holds/{held.pk}/release/"), 403)
        problem(by_staff.post(f"holds/{uuid4()}/release/"), 404)


class TestStory:
    def test_tells_staff_why_a_task_does_not_run_and_owners_only_that(self, asked_by, by_staff, about, ada, clock):
        row = about("account.call", ada, state=State.AVAILABLE)
        hold(task="account.call", reason="they owe us money", actor="bob")

        assert "by bob: they owe us money" in by_staff.get(f"tasks/{row.pk}/").content.decode()
        theirs = asked_by(ada).get(f"tasks/{row.pk}/").content.decode()
        assert "On hold since" in theirs
        assert "money" not in theirs
        assert "bob" not in theirs

"""``me/tasks/``, ``users/{id}/tasks/`` and ``entities/{label}/{id}/tasks/``."""

from __future__ import annotations

import re
from datetime import timedelta
from urllib.parse import quote, unquote
from uuid import uuid4

import pytest
from django.db import connection
from django.test.utils import CaptureQueriesContext
from django.urls import resolve, reverse

from tests.api.conftest import ROOT
from tests.api.test_tasks import problem
from tests.testapp.models import Country, Order
from timeline import Timeline, after, task
from timeline.lifecycle import State
from timeline.models import ref_of
from timeline.policy import TimelinePolicy
from timeline.shortcuts import emit, start
from timeline.testing import only_timelines

HOUR = timedelta(hours=1)


def shown(answer):
    """Keys of the rows and of what is foreseen, part by part."""
    assert answer.status_code == 200, answer.content
    return {name: [row["task"] for row in part["results"]] for name, part in answer.json().items()}


def path_of(entity):
    """Address of an entity's tasks."""
    ref = ref_of(entity)
    return f"entities/{ref.label}/{ref.id}/tasks/"


def tables_read(asker, path):
    """The tables that each statement of a request reads first."""
    with CaptureQueriesContext(connection) as asked:
        asker.get(path)
    return [found[1] for one in asked if (found := re.search(r'FROM "(\w+)"', one["sql"]))]


class NobodysPolicy(TimelinePolicy):
    """Shows rows, and foresees nothing."""

    def sees_timeline(self, user, timeline, ref, *, using):
        return False


class BlindPolicy(TimelinePolicy):
    """Shows nobody anything."""

    def visible(self, tasks, user):
        return tasks.none()


class TestMine:
    def test_has_what_is_ahead_what_is_foreseen_and_what_is_past(self, asked_by, ada, about, seat, clock):
        emit("user.created", ada)
        start("seating", seat(ada))
        about("account.call", ada, state=State.COMPLETED, scheduled_at=clock.now - HOUR)
        about("account.call", ada, state=State.AVAILABLE, scheduled_at=clock.now - HOUR)

        answer = asked_by(ada).get("me/tasks/")

        assert shown(answer) == {
            "upcoming": ["account.call", "account.greet", "seating.free"],
            "foreseen": ["seating.sweep", "account.ask"],
            "past": ["account.call"],
        }
        [sweep, ask] = answer.json()["foreseen"]["results"]
        assert ask["entity"] == {"label": "accounts.user", "id": str(ada.pk)}
        assert ask["why"] == "2 days after greet completes"
        assert ask["expected_at"] == (clock.now + timedelta(days=3)).isoformat().replace("+00:00", "Z")
        assert sweep["entity"]["label"] == "testapp.seat"

    def test_has_nothing_of_others(self, asked_by, ada, person, about, seat, clock):
        ben = person("ben")
        emit("user.created", ben)
        start("seating", seat(ben))
        start("accounting", seat(ada))

        assert shown(asked_by(ada).get("me/tasks/")) == {"upcoming": [], "foreseen": [], "past": []}

    def test_is_kept_by_part(self, asked_by, ada, about, clock):
        for number in range(5):
            about("account.call", ada, state=State.COMPLETED, scheduled_at=clock.now + HOUR * number)
        by_ada = asked_by(ada)

        first = by_ada.get("me/tasks/", limit=2)
        found = [row["scheduled_at"] for row in first.json()["past"]["results"]]
        link = first.json()["past"]["next"]
        while link is not None:
            assert "part=past" in link
            [(_name, part)] = by_ada.client.get(link).json().items()
            found += [row["scheduled_at"] for row in part["results"]]
            link = part["next"]

        assert len(found) == 5
        assert found == sorted(found, reverse=True)
        assert list(shown(by_ada.get("me/tasks/", part="foreseen"))) == ["foreseen"]

    @pytest.mark.parametrize(
        ("query", "field"),
        [
            ({"part": "now"}, "part"),
            ({"cursor": "x"}, "cursor"),
            ({"cursor": "x", "part": "past"}, "cursor"),
            ({"limit": "0"}, "limit"),
            ({"limit": "many", "part": "foreseen"}, "limit"),
            ({"state": "scheduled"}, "state"),
        ],
    )
    def test_refuses_a_question_it_does_not_understand(self, asked_by, ada, query, field):
        assert problem(asked_by(ada).get("me/tasks/", **query), 400)["field"] == field

    def test_takes_as_many_queries_for_a_hundred_rows_as_for_ten(
        self, asked_by, ada, seat, clock, django_assert_num_queries, django_assert_max_num_queries
    ):
        by_ada = asked_by(ada)
        for _ in range(10):
            start("seating", seat(ada))
        with django_assert_max_num_queries(12) as few:
            assert len(shown(by_ada.get("me/tasks/", limit=100))["foreseen"]) == 10
        for _ in range(90):
            start("seating", seat(ada))

        with django_assert_num_queries(len(few)):
            assert len(shown(by_ada.get("me/tasks/", limit=100))["foreseen"]) == 100

    @pytest.mark.parametrize("query", [{}, {"part": "upcoming"}, {"part": "foreseen"}, {"part": "past"}])
    def test_is_empty_where_no_timeline_is_about_users(self, asked_by, ada, query):
        with only_timelines():
            answer = asked_by(ada).get("me/tasks/", **query)

        assert shown(answer) == {part: [] for part in ([query["part"]] if query else ["upcoming", "foreseen", "past"])}

    def test_needs_somebody_logged_in(self, asked_by):
        problem(asked_by().get("me/tasks/"), 403)


class TestNothingVisible:
    def test_is_an_empty_page(self, asked_by, ada, about, settings):
        about("account.call", ada)
        settings.TIMELINE = {"POLICY": f"{__name__}.BlindPolicy"}

        assert shown(asked_by(ada).get("me/tasks/"))["upcoming"] == []
        assert asked_by(ada).get("tasks/").json() == {"next": None, "results": []}


class TestUsers:
    def test_is_the_same_as_ones_own(self, asked_by, ada, seat, clock):
        emit("user.created", ada)
        start("seating", seat(ada))

        theirs, own = asked_by(ada).get(f"users/{ada.pk}/tasks/"), asked_by(ada).get("me/tasks/")

        assert theirs.json() == own.json()

    def test_is_shown_to_staff_without_what_is_nobodys(self, by_staff, ada, person, seat, clock):
        emit("user.created", ada)
        mine = seat(ada)
        start("seating", mine)
        start("accounting", mine)
        emit("user.created", person("ben"))

        assert shown(by_staff.get(f"users/{ada.pk}/tasks/")) == {
            "upcoming": ["account.greet", "seating.free"],
            "foreseen": ["seating.sweep", "account.ask"],
            "past": [],
        }

    def test_is_empty_for_one_who_has_nothing_yet(self, asked_by, by_staff, ada):
        nothing = {"upcoming": [], "foreseen": [], "past": []}

        assert shown(by_staff.get(f"users/{ada.pk}/tasks/")) == nothing
        assert shown(asked_by(ada).get(f"users/{ada.pk}/tasks/")) == nothing

    def test_of_another_is_as_of_one_who_is_not_there(self, asked_by, ada, person, clock):
        ben = person("ben")
        emit("user.created", ben)
        by_ada = asked_by(ada)

        theirs = by_ada.get(f"users/{ben.pk}/tasks/")

        problem(theirs, 404)
        for none in ["987654", "9" * 50, "none", f"0{ben.pk}", "%00", "%F0%9F%92%A9"]:
            answer = by_ada.get(f"users/{none}/tasks/")
            assert (answer.content, dict(answer.headers)) == (theirs.content, dict(theirs.headers)), none

    def test_of_one_who_is_not_there_is_not_there_for_staff_either(self, by_staff):
        problem(by_staff.get("users/987654/tasks/"), 404)
        problem(by_staff.get(f"users/{'9' * 50}/tasks/"), 404)


class TestEntities:
    def test_has_the_three_parts(self, by_staff, ada, clock):
        emit("user.created", ada)

        assert shown(by_staff.get(path_of(ada))) == {
            "upcoming": ["account.greet"],
            "foreseen": ["account.ask"],
            "past": [],
        }

    def test_leaves_out_timelines_that_are_not_theirs(self, asked_by, by_staff, ada, seat, clock):
        mine = seat(ada)
        start("seating", mine)
        start("accounting", mine)

        assert shown(asked_by(ada).get(path_of(mine))) == {
            "upcoming": ["seating.free"],
            "foreseen": ["seating.sweep"],
            "past": [],
        }
        assert len(shown(by_staff.get(path_of(mine)))["foreseen"]) == 2

    def test_foresees_only_where_the_policy_lets(self, asked_by, ada, clock, settings):
        emit("user.created", ada)
        settings.TIMELINE = {"POLICY": f"{__name__}.NobodysPolicy"}

        assert shown(asked_by(ada).get(path_of(ada))) == {"upcoming": ["account.greet"], "foreseen": [], "past": []}

    def test_is_there_as_long_as_its_rows_are(self, by_staff, ada, clock):
        emit("user.created", ada)
        path = path_of(ada)
        ada.delete()

        answer = shown(by_staff.get(path))

        assert answer["past"] == ["account.greet"]
        assert shown(by_staff.get(path, part="upcoming")) == {"upcoming": []}

    def test_of_another_is_as_of_one_that_is_not_there(self, asked_by, ada, person, seat, clock):
        bens = seat(person("ben"))
        start("seating", bens)
        by_ada = asked_by(ada)

        theirs = by_ada.get(path_of(bens))

        problem(theirs, 404)
        for none in [
            "testapp.seat/none",
            "testapp.nothing/1",
            "nothing/1",
            "testapp.seat/%00",
            "%00/1",
            "Testapp.Seat/1",
        ]:
            answer = by_ada.get(f"entities/{none}/tasks/")
            assert (answer.content, dict(answer.headers)) == (theirs.content, dict(theirs.headers)), none

    def test_of_another_is_refused_before_its_rows_are_read(self, asked_by, ada, person, seat, clock):
        """How long it takes to find none of one's own among them would tell how many there are."""
        ben = person("ben")
        bens = seat(ben)
        start("seating", bens)
        seat(ada)
        by_ada = asked_by(ada)
        by_ada.get(path_of(ada))

        paths = [path_of(bens), f"entities/testapp.seat/{uuid4()}/tasks/"]
        paths += [f"users/{key}/tasks/" for key in (ben.pk, 987654)]

        of_entity, of_no_entity, of_user, of_no_user = [tables_read(by_ada, path) for path in paths]

        assert of_entity == of_no_entity
        assert of_user == of_no_user
        assert not {"timeline_scheduledtask", "timeline_run"} & {*of_entity, *of_user}
        assert "timeline_scheduledtask" in tables_read(by_ada, path_of(ada))

    def test_of_a_kind_that_no_timeline_is_about_is_not_there(self, by_staff, db):
        Country.objects.create(code="fr")

        problem(by_staff.get("entities/testapp.country/fr/tasks/"), 404)
        problem(by_staff.get(f"entities/testapp.order/{Order.objects.create().pk}/tasks/"), 404)
        problem(by_staff.get("entities/auth.permission/1/tasks/"), 404)


class Joining(Timeline):
    """About what has a key of text."""

    entity = "testapp.Country"

    @task(after(days=1))
    def greet(self, country) -> None: ...


KEYS = ["INV/2026/001", "/", "a/", "/a", "a//b", "a/tasks", "a/tasks/", "x/preview/", "..", "%2F", "a b", "a\nb", "ä?#"]


class TestAnyKey:
    """Whatever a row can be about has an address."""

    @pytest.fixture(autouse=True)
    def _joining(self):
        with only_timelines(Joining):
            yield

    @pytest.mark.parametrize("key", KEYS)
    def test_has_its_tasks(self, by_staff, key, clock):
        start("joining", Country.objects.create(code=key))
        path = reverse("timeline_api:entity-tasks", args=["testapp.country", key])

        for address in (path, f"{ROOT}/entities/testapp.country/{quote(key, safe='')}/tasks/"):
            answer = by_staff.client.get(address)

            [row] = answer.json()["upcoming"]["results"]
            assert row["entity"] == {"label": "testapp.country", "id": key}

    @pytest.mark.parametrize("key", KEYS)
    def test_has_its_preview(self, by_staff, key, clock):
        start("joining", Country.objects.create(code=key))
        path = reverse("timeline_api:entity-preview", args=["testapp.country", key])

        answer = by_staff.client.post(path, {"start": {"timeline": "joining"}}, content_type="application/json")

        assert answer.status_code in (200, 409), answer.content

    @pytest.mark.parametrize("key", KEYS)
    def test_is_that_of_a_user_as_well(self, key):
        found = resolve(unquote(reverse("timeline_api:user-tasks", args=[key])))

        assert (found.url_name, found.kwargs) == ("user-tasks", {"id": key})

    @pytest.mark.parametrize("key", KEYS)
    def test_can_be_held_and_told_an_event(self, by_staff, key, clock, settings):
        settings.TIMELINE = {**settings.TIMELINE, "RECORDED_EVENTS": ["joined"]}
        Country.objects.create(code=key)
        entity = {"label": "testapp.country", "id": key}

        held = by_staff.post("holds/", {"scope": "entity", "entity": entity, "reason": "x"})
        said = by_staff.post("events/", {"name": "joined", "entity": entity})

        assert (held.status_code, said.status_code) == (201, 201)
        assert said.json()["event"]["entity"] == held.json()["entity"] == entity

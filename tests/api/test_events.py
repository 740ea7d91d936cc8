"""``events/``."""

from __future__ import annotations

import pytest

from tests.api.test_repeating import send
from tests.api.test_tasks import problem
from tests.testapp.models import Country
from timeline.models import Event, ScheduledTask


@pytest.fixture
def named(ada):
    """An event about Ada, as a body."""
    return {"name": "user.created", "entity": {"label": "accounts.user", "id": str(ada.pk)}}


class TestEmit:
    def test_records_what_happened_and_who_said_so(self, by_staff, staff, ada, named, clock):
        answer = by_staff.post("events/", {**named, "key": "k", "payload": {"a": 1}})

        event = Event.objects.get()
        assert answer.status_code == 201
        assert answer.json() == {
            "created": True,
            "event": {
                "id": str(event.pk),
                "name": "user.created",
                "entity": named["entity"],
                "key": "k",
                "actor": staff.email,
                "occurred_at": clock.now.isoformat().replace("+00:00", "Z"),
                "recorded_at": clock.now.isoformat().replace("+00:00", "Z"),
            },
            "started": ["account"],
            "ended": [],
            "moved": [],
        }
        assert (event.payload, event.actor) == ({"a": 1}, staff.email)
        assert ScheduledTask.objects.for_entity(ada).count() == 1

    def test_ends_what_it_is_an_exit_of(self, by_staff, named, clock):
        by_staff.post("events/", named)

        assert by_staff.post("events/", {**named, "name": "user.left"}).json()["ended"] == ["account"]

    def test_may_be_about_the_system_and_earlier(self, by_staff, clock, settings):
        settings.TIMELINE = {**settings.TIMELINE, "RECORDED_EVENTS": ["night"]}

        answer = by_staff.post("events/", {"name": "night", "entity": None, "occurred_at": "2026-01-01T00:00:00+01:00"})

        assert answer.json()["event"]["entity"] is None
        assert answer.json()["event"]["occurred_at"] == "2025-12-31T23:00:00Z"

    def test_happens_once_for_each_key(self, by_staff, named, clock):
        body = {**named, "key": "k", "payload": {"a": [1, {"b": None}]}}
        first = by_staff.post("events/", body)

        again = by_staff.post("events/", body)

        assert again.status_code == 200
        assert again.json() == {
            "created": False,
            "event": first.json()["event"],
            "started": [],
            "ended": [],
            "moved": [],
        }
        assert Event.objects.count() == 1

    def test_of_the_same_key_with_another_payload_is_a_conflict(self, by_staff, named, clock):
        by_staff.post("events/", {**named, "key": "k"})

        told = problem(by_staff.post("events/", {**named, "key": "k", "payload": {"a": 1}}), 409)

        assert told["type"] == "urn:timeline:key-conflict"
        assert (told["field"], told["remedy"]) == ("key", "Use another key.")

    @pytest.mark.parametrize(
        ("change", "field"),
        [
            ({"name": ""}, "name"),
            ({"name": "has blanks"}, "name"),
            ({"name": "timeline.erased"}, "name"),
            ({"name": 5}, "name"),
            ({"name": "x" * 101}, "name"),
            ({"key": "x" * 201}, "key"),
            ({"key": "\ud800"}, "key"),
            ({"payload": []}, "payload"),
            ({"payload": {"a": "\x00"}}, "payload"),
            ({"payload": {"a": "x" * 70_000}}, "payload"),
            ({"occurred_at": "2026-01-01T00:00:00"}, "occurred_at"),
            ({"occurred_at": "1969-01-01T00:00:00Z"}, "occurred_at"),
            ({"actor": "ben"}, "actor"),
            ({"entity": "accounts.user"}, "entity"),
            ({"entity": {"label": "accounts.user"}}, "entity.id"),
            ({"entity": {"label": "accounts.user", "id": "1", "name": "x"}}, "entity.name"),
            ({"entity": {"label": "accounts.user", "id": "none"}}, "entity"),
            ({"entity": {"label": "accounts.user", "id": "9" * 50}}, "entity"),
            ({"entity": {"label": "nothing", "id": "1"}}, "entity"),
        ],
    )
    def test_refuses_what_does_not_do_and_records_nothing(self, by_staff, named, clock, change, field):
        told = problem(by_staff.post("events/", {**named, **change}), 400)

        assert told["field"] == field
        assert not Event.objects.exists()

    def test_says_nothing_of_rows_that_no_timeline_is_about(self, by_staff, clock):
        """Whoever may emit does not get to know which rows there are."""
        Country.objects.create(code="fr")

        there, none = (
            problem(by_staff.post("events/", {"name": "x", "entity": {"label": "testapp.country", "id": code}}), 400)
            for code in ("fr", "de")
        )

        assert there == none

    def test_is_not_for_everybody(self, asked_by, ada, person, named, clock):
        for user in (ada, person("viewer", "view_scheduledtask"), person("former", "add_event", is_staff=False)):
            problem(asked_by(user).post("events/", named), 403)
        problem(asked_by().post("events/", named), 403)
        assert not Event.objects.exists()


class TestEventsThatNoTimelineKnows:
    def test_are_refused_with_what_is_meant(self, by_staff, named, clock):
        told = problem(by_staff.post("events/", {**named, "name": "user.creatd"}), 400)

        assert (told["field"], told["type"]) == ("name", "urn:timeline:unknown-event")
        assert told["remedy"].startswith("Did you mean 'user.created'?")
        assert not Event.objects.exists()

    def test_are_refused_of_the_system(self, by_staff, clock):
        problem(by_staff.post("events/", {"name": "night.fell"}), 400)

    def test_are_taken_where_they_are_recorded_on_purpose(self, by_staff, named, clock, settings):
        settings.TIMELINE = {**settings.TIMELINE, "RECORDED_EVENTS": ["user.seen"]}

        assert by_staff.post("events/", {**named, "name": "user.seen"}).status_code == 201

    def test_are_taken_where_the_setting_is_off(self, by_staff, named, clock, settings):
        settings.TIMELINE = {**settings.TIMELINE, "STRICT_EVENTS": False}

        assert by_staff.post("events/", {**named, "name": "user.creatd"}).status_code == 201

    def test_are_answered_as_before_where_the_request_is_sent_again(self, by_staff, named, clock, settings):
        """The code knew it when it came first."""
        settings.TIMELINE = {**settings.TIMELINE, "RECORDED_EVENTS": ["user.seen"]}
        body = {**named, "name": "user.seen"}
        first = send(by_staff, "events/", body)
        settings.TIMELINE = {**settings.TIMELINE, "RECORDED_EVENTS": []}

        again = send(by_staff, "events/", body)

        assert (first.status_code, again.status_code) == (201, 201)

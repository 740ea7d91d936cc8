"""``tasks/`` and what is below it."""

from __future__ import annotations

from datetime import timedelta
from uuid import UUID

import pytest
from django.test import Client

from tests.api.conftest import ROOT, ids
from timeline import Timeline, after, daily, task
from timeline.api.problems import NOT_THERE
from timeline.features.recurring.verbs import NextBeginnings, recur
from timeline.lifecycle import State
from timeline.models import LogEntry, ScheduledTask
from timeline.shortcuts import emit, move
from timeline.testing import only_timelines

HOUR = timedelta(hours=1)
NOWHERE = UUID(int=1)


class Nightly(Timeline):
    """Starts by the clock."""

    starts_on = daily("02:00", zone="Europe/Berlin")

    @task(after())
    def settle(self): ...


def problem(answer, status):
    """The problem that was answered, and nothing else was."""
    assert answer.status_code == status, answer.content
    assert answer.headers["Content-Type"] == "application/problem+json"
    told = answer.json()
    assert told["status"] == status
    assert told["title"]
    assert told["type"]
    return told


class TestList:
    def test_shows_what_the_user_may_see_by_due_time(self, asked_by, ada, person, about, seat, now):
        second = about("account.greet", ada, scheduled_at=now + HOUR)
        first = about("seating.free", seat(ada), scheduled_at=now)
        about("accounting.bill", seat(ada))
        about("account.greet", person("ben"))
        about("account.greet", None)

        answer = asked_by(ada).get("tasks/")

        assert ids(answer) == [str(first.pk), str(second.pk)]
        assert answer.json()["next"] is None

    def test_names_each_field_and_no_payload(self, by_staff, ada, about):
        row = about("account.greet", ada, payload={"secret": "s"}, error="secret", result="secret")

        [shown] = by_staff.get("tasks/").json()["results"]

        assert shown["task"] == "account.greet"
        assert shown["timeline"] == "account"
        assert shown["entity"] == {"label": "accounts.user", "id": str(ada.pk)}
        assert shown["scheduled_at"] == "2026-03-01T09:00:00Z"
        assert shown["actions"] == ["cancel", "move", "run_now"]
        assert shown["id"] == str(row.pk)
        assert "secret" not in str(shown)

    @pytest.mark.parametrize(
        ("query", "wanted"),
        [
            ({"state": "available"}, {2}),
            ({"state": ["available", "completed"]}, {2, 3}),
            ({"state": ["available", "available"]}, {2}),
            ({"state": ["pending", "active"]}, set()),
            ({"state": ["available", "scheduled"], "task": "account.greet"}, {0, 1}),
            ({"task": "account.greet"}, {0, 1}),
            ({"timeline": "account"}, {0, 1, 2}),
            ({"timeline": "seating"}, set()),
            ({"due_after": "2026-03-01T10:00:00Z"}, {1, 2, 3}),
            ({"due_after": "2026-03-01T11:00:00+01:00"}, {1, 2, 3}),
            ({"due_before": "2026-03-01T10:00:00Z"}, {0}),
            ({"due_after": "2026-03-01T10:00:00Z", "due_before": "2026-03-01T10:00:01Z"}, {1}),
            ({"due_after": "0001-01-01T00:00:00+14:00"}, {0, 1, 2, 3}),
            ({"due_before": "9999-12-31T23:59:59-14:00"}, {0, 1, 2, 3}),
        ],
    )
    def test_can_be_narrowed(self, by_staff, ada, about, now, query, wanted):
        rows = [
            about("account.greet", ada, scheduled_at=now),
            about("account.greet", ada, scheduled_at=now + HOUR),
            about("account.ask", ada, scheduled_at=now + 2 * HOUR, state=State.AVAILABLE),
            about("accounting.bill", ada, scheduled_at=now + 3 * HOUR, state=State.COMPLETED),
        ]

        answer = by_staff.get("tasks/", **query)

        assert sorted(ids(answer)) == sorted(str(rows[number].pk) for number in wanted)

    @pytest.mark.parametrize("ordering", ["scheduled_at", "-scheduled_at"])
    def test_comes_in_pages_that_hold_each_row_once(self, by_staff, ada, about, now, ordering):
        """Also where many are due at the same moment, and while rows come and go."""
        rows = [about("account.greet", ada, scheduled_at=now + HOUR * (number // 4)) for number in range(10)]
        expected = sorted(rows, key=lambda row: (row.scheduled_at, row.pk), reverse=ordering.startswith("-"))

        answer = by_staff.get("tasks/", ordering=ordering, limit=3, state="scheduled")
        found = ids(answer)
        while (link := answer.json()["next"]) is not None:
            answer = by_staff.client.get(link)
            found += ids(answer)

        assert found == [str(row.pk) for row in expected]

    def test_is_a_hundred_rows_at_most_and_fifty_unless_asked(self, by_staff, ada, about):
        for _ in range(101):
            about("account.greet", ada)

        assert len(ids(by_staff.get("tasks/"))) == 50
        assert len(ids(by_staff.get("tasks/", limit=100))) == 100
        assert problem(by_staff.get("tasks/", limit=101), 400)["field"] == "limit"

    @pytest.mark.parametrize(
        ("query", "field"),
        [
            ({"stat": "scheduled"}, "stat"),
            ({"state": "gone"}, "state"),
            ({"timeline": "acc"}, "timeline"),
            ({"state": ["scheduled", "gone"]}, "state"),
            ({"state": ["scheduled", ""]}, "state"),
            ({"state": "scheduled,retryable"}, "state"),
            ({"timeline": ["account", "seating"]}, "timeline"),
            ({"limit": ["1", "2"]}, "limit"),
            ({"state": ""}, "state"),
            ({"task": "a\x00b"}, "task"),
            ({"due_after": "2026-03-01T09:00:00"}, "due_after"),
            ({"due_before": "yesterday"}, "due_before"),
            ({"ordering": "payload"}, "ordering"),
            ({"limit": "0"}, "limit"),
            ({"limit": "²"}, "limit"),
            ({"cursor": "x"}, "cursor"),
            ({"cursor": "MjAyNg"}, "cursor"),
            ({"format": "xml"}, "format"),
        ],
    )
    def test_refuses_a_question_it_does_not_understand(self, by_staff, query, field):
        told = problem(by_staff.get("tasks/", **query), 400)

        assert told["field"] == field
        assert told["detail"]

    def test_of_several_states_comes_in_pages_that_follow_each_other(self, by_staff, ada, about, now):
        """The link has all states that were asked for, and no others."""
        for number, state in enumerate([State.SCHEDULED, State.RETRYABLE, State.COMPLETED] * 3):
            about("account.greet", ada, scheduled_at=now + HOUR * number, state=state)

        answer = by_staff.get("tasks/", state=["scheduled", "retryable"], limit=2)
        found = answer.json()["results"]
        while (link := answer.json()["next"]) is not None:
            answer = by_staff.client.get(link)
            found += answer.json()["results"]

        assert [row["state"] for row in found] == ["scheduled", "retryable"] * 3
        assert sorted(row["scheduled_at"] for row in found) == [row["scheduled_at"] for row in found]

    def test_names_the_states_there_are(self, by_staff):
        told = problem(by_staff.get("tasks/", state=["scheduled", "<b>"]), 400)

        assert "no state “<b>”" in told["detail"]
        assert all(state in told["detail"] for state in State)

    def test_names_the_parameters_it_knows(self, by_staff):
        told = problem(by_staff.get("tasks/", stat="x"), 400)

        assert "cursor, due_after, due_before, limit, ordering, state, task, timeline" in told["detail"]

    def test_takes_as_many_queries_for_a_hundred_rows_as_for_ten(
        self, asked_by, ada, about, seat, django_assert_num_queries, django_assert_max_num_queries
    ):
        by_ada = asked_by(ada)
        for _ in range(10):
            about("seating.free", seat(ada))
        with django_assert_max_num_queries(12) as few:
            assert len(ids(by_ada.get("tasks/", limit=100))) == 10
        for _ in range(90):
            about("seating.free", seat(ada))

        with django_assert_num_queries(len(few)):
            assert len(ids(by_ada.get("tasks/", limit=100))) == 100

    def test_needs_somebody_logged_in(self, asked_by):
        problem(asked_by().get("tasks/"), 403)


class TestDetail:
    def test_tells_the_story(self, by_staff, ada, clock):
        emit("user.created", ada)
        [greet] = ScheduledTask.objects.all()
        move(greet, at=clock.now + HOUR, reason="sooner", actor="ben")

        shown = by_staff.get(f"tasks/{greet.pk}/").json()

        assert [entry["reason"] for entry in shown["log"]] == ["sooner"]
        assert "it was moved" in shown["explanation"]
        assert shown["masked"] is False
        assert shown["payload"] == {}

    def test_keeps_payload_result_and_errors_from_those_who_may_not_read_them(self, asked_by, ada, about, now):
        row = about(
            "account.greet",
            ada,
            state=State.DISCARDED,
            seq=1,
            attempt=1,
            payload={"a": "secret"},
            result="secret",
            error="secret",
            reason_code="error",
            reason="secret",
        )
        LogEntry.objects.create(
            task=row,
            seq=1,
            at=now,
            from_state="active",
            to_state="discarded",
            attempt=1,
            reason_code="error",
            reason="secret",
            detail={"error": {"class": "ValueError", "message": "secret", "traceback": "secret"}},
        )

        answer = asked_by(ada).get(f"tasks/{row.pk}/")

        shown = answer.json()
        assert shown["masked"] is True
        assert [shown[name] for name in ("payload", "result", "error")] == [None, None, None]
        assert [entry["detail"] for entry in shown["log"]] == [None]
        assert shown["reason_code"] == "error"
        assert b"secret" not in answer.content
        assert b"secret" not in asked_by(ada).get("tasks/").content

    def test_has_the_latest_of_a_long_log_and_the_rest_in_parts(self, by_staff, ada, about, now):
        row = about("account.greet", ada, state=State.RETRYABLE, seq=500)
        LogEntry.objects.bulk_create(
            LogEntry(task=row, seq=seq, at=now, from_state="scheduled", to_state="scheduled", attempt=0)
            for seq in range(1, 501)
        )

        shown = by_staff.get(f"tasks/{row.pk}/").json()
        earlier = by_staff.get(f"tasks/{row.pk}/?before=301").json()

        assert ([entry["seq"] for entry in shown["log"]], shown["log_left_out"]) == ([*range(301, 501)], 300)
        assert ([entry["seq"] for entry in earlier["log"]], earlier["log_left_out"]) == ([*range(101, 301)], 100)
        assert "300 entries of its log are left out here" in shown["explanation"]
        problem(by_staff.get(f"tasks/{row.pk}/?before=x"), 400)

    def test_shows_them_to_those_who_may(self, by_staff, ada, about):
        row = about("account.greet", ada, state=State.COMPLETED, payload={"a": 1}, result=[2], error="three")

        shown = by_staff.get(f"tasks/{row.pk}/").json()

        assert (shown["payload"], shown["result"], shown["error"]) == ({"a": 1}, [2], "three")

    def test_of_what_one_may_not_see_is_as_of_what_is_not_there(self, asked_by, ada, person, about):
        row = about("account.greet", person("ben"))

        theirs, none = asked_by(ada).get(f"tasks/{row.pk}/"), asked_by(ada).get(f"tasks/{NOWHERE}/")

        assert problem(theirs, 404)["detail"] == NOT_THERE
        assert theirs.content == none.content
        assert dict(theirs.headers) == dict(none.headers)
        assert asked_by(ada).get("tasks/no-key/").content == none.content

    def test_is_text_whatever_it_says(self, by_staff, ada, about):
        row = about("account.greet", ada, reason="<script>alert(1)</script>", payload={"<b>": "<img onerror=x>"})

        answer = by_staff.get(f"tasks/{row.pk}/")

        assert answer.headers["Content-Type"] == "application/json"
        assert answer.headers["X-Content-Type-Options"] == "nosniff"
        assert answer.json()["reason"] == "<script>alert(1)</script>"
        assert answer.json()["payload"] == {"<b>": "<img onerror=x>"}


class TestCancel:
    def test_ends_the_task_and_keeps_who_and_why(self, by_staff, staff, ada, about, clock):
        row = about("account.greet", ada)

        answer = by_staff.post(f"tasks/{row.pk}/cancel/", {"reason": "  spoke to them  "})

        row.refresh_from_db()
        assert answer.json()["state"] == row.state == "cancelled"
        assert answer.json()["actions"] == ["redrive"]
        assert (row.reason, row.actor) == ("spoke to them", staff.email)

    def test_of_what_has_ended_is_a_conflict_that_says_what_to_do(self, by_staff, ada, about, clock):
        row = about("account.greet", ada, state=State.COMPLETED)

        told = problem(by_staff.post(f"tasks/{row.pk}/cancel/", {"reason": "x"}), 409)

        assert told["type"] == "urn:timeline:transition-not-allowed"
        assert told["remedy"] == "It has ended; redrive it to make a new revision."

    @pytest.mark.parametrize(
        ("body", "field"),
        [
            ({}, "reason"),
            ({"reason": "   "}, "reason"),
            ({"reason": "x" * 201}, "reason"),
            ({"reason": 1}, "reason"),
            ({"reason": "a\x00b"}, "reason"),
            ({"reason": "x", "state": "completed"}, "state"),
            ([], ""),
        ],
    )
    def test_refuses_a_body_that_does_not_do(self, by_staff, ada, about, body, field):
        row = about("account.greet", ada)

        told = problem(by_staff.post(f"tasks/{row.pk}/cancel/", body), 400)

        assert told.get("field", "") == field
        row.refresh_from_db()
        assert row.state == "scheduled"

    @pytest.mark.parametrize(
        ("body", "status"),
        [
            (b"{", 400),
            (b"\xff", 400),
            (b'{"reason": NaN}', 400),
            (b"[" * 100_000, 400),
            (b'"' + b"x" * 3_000_000 + b'"', 413),
        ],
    )
    def test_refuses_what_is_no_json_that_it_can_read(self, by_staff, ada, about, body, status):
        row = about("account.greet", ada)
        path = f"{ROOT}/tasks/{row.pk}/cancel/"

        problem(by_staff.client.post(path, body, content_type="application/json"), status)
        refused = problem(by_staff.client.post(path, {"reason": "x"}), 415)
        assert refused["remedy"] == "Send JSON, with the header Content-Type: application/json."

    def test_takes_no_query_parameters(self, by_staff, ada, about):
        row = about("account.greet", ada)

        told = problem(by_staff.post(f"tasks/{row.pk}/cancel/?force=1", {"reason": "x"}), 400)

        assert told["field"] == "force"

    def test_of_an_own_task_is_not_the_owners_to_do(self, asked_by, ada, about):
        row = about("account.greet", ada)

        problem(asked_by(ada).post(f"tasks/{row.pk}/cancel/", {"reason": "x"}), 403)
        row.refresh_from_db()
        assert row.state == "scheduled"

    def test_of_what_one_does_not_see_is_as_of_what_is_not_there(self, asked_by, ada, person, about):
        row = about("account.greet", person("ben"))

        theirs = asked_by(ada).post(f"tasks/{row.pk}/cancel/", {"reason": ""})

        none = asked_by(ada).post(f"tasks/{NOWHERE}/cancel/", {"reason": ""})
        problem(theirs, 404)
        assert (theirs.content, dict(theirs.headers)) == (none.content, dict(none.headers))

    def test_is_refused_without_the_forms_token(self, staff, ada, about):
        row = about("account.greet", ada)
        client = Client(enforce_csrf_checks=True)
        client.force_login(staff)

        answer = client.post(f"{ROOT}/tasks/{row.pk}/cancel/", {"reason": "x"}, content_type="application/json")

        assert "CSRF" in problem(answer, 403)["detail"]

    def test_is_no_get(self, by_staff, ada, about):
        row = about("account.greet", ada)

        problem(by_staff.get(f"tasks/{row.pk}/cancel/"), 405)


class TestMove:
    def test_gives_a_waiting_task_another_time(self, by_staff, ada, about, clock):
        row = about("account.greet", ada)

        answer = by_staff.post(f"tasks/{row.pk}/move/", {"at": "2027-01-01T01:00:00+01:00", "reason": "x"})

        assert answer.json()["id"] == str(row.pk)
        assert answer.json()["scheduled_at"] == "2027-01-01T00:00:00Z"

    def test_answers_the_next_revision_of_one_that_is_due(self, by_staff, ada, about, clock):
        row = about("account.greet", ada, state=State.AVAILABLE)

        answer = by_staff.post(f"tasks/{row.pk}/move/", {"at": "2027-01-01T00:00:00Z", "reason": "x"})

        assert answer.json()["previous"] == str(row.pk)
        assert answer.json()["revision"] == 2

    def test_moves_one_from_its_own_time(self, by_staff, ada, about, clock):
        row = about("account.greet", ada, scheduled_at=clock.now + HOUR)
        asked = timedelta(days=2, minutes=-1) + row.scheduled_at

        answer = by_staff.post(f"tasks/{row.pk}/move/", {"by_days": 2, "by_seconds": -60, "reason": "x"})

        row.refresh_from_db()
        assert (answer.status_code, answer.json()["id"]) == (200, str(row.pk))
        assert row.scheduled_at == asked

    @pytest.mark.parametrize(
        ("asked", "field"),
        [
            ({"at": "2027-01-01T00:00:00Z", "by_days": 1}, "at"),
            ({"by_days": 0, "by_seconds": 0}, "at"),
            ({}, "at"),
            ({"by_days": 40_000}, "by_days"),
            ({"by_seconds": "soon"}, "by_seconds"),
        ],
    )
    def test_refuses_a_way_that_does_not_do(self, by_staff, ada, about, asked, field):
        row = about("account.greet", ada)

        assert problem(by_staff.post(f"tasks/{row.pk}/move/", {**asked, "reason": "x"}), 400)["field"] == field

    def test_refuses_to_leave_what_times_there_are(self, by_staff, ada, about):
        row = about("account.greet", ada)

        answer = by_staff.post(f"tasks/{row.pk}/move/", {"by_days": -36_525, "reason": "x"})

        assert answer.status_code in (400, 409, 422)
        assert ScheduledTask.objects.get().scheduled_at == row.scheduled_at

    @pytest.mark.parametrize("at", ["2027-01-01T00:00:00", "2027-01-01", "tomorrow", "9001-01-01T00:00:00Z", 5, None])
    def test_refuses_a_time_that_does_not_do(self, by_staff, ada, about, at):
        row = about("account.greet", ada)

        assert problem(by_staff.post(f"tasks/{row.pk}/move/", {"at": at, "reason": "x"}), 400)["field"] == "at"


class TestRunNow:
    def test_makes_a_waiting_task_due(self, by_staff, ada, about, clock):
        row = about("account.greet", ada, scheduled_at=clock.now + HOUR)

        answer = by_staff.post(f"tasks/{row.pk}/run-now/", {"reason": "x"})

        assert answer.json()["state"] == "available"

    def test_of_one_that_is_due_is_a_conflict(self, by_staff, ada, about, clock):
        row = about("account.greet", ada, state=State.AVAILABLE)

        assert "due already" in problem(by_staff.post(f"tasks/{row.pk}/run-now/", {"reason": "x"}), 409)["remedy"]


class TestRedrive:
    def test_makes_the_next_revision(self, by_staff, ada, about, clock):
        row = about("account.greet", ada, state=State.DISCARDED)

        answer = by_staff.post(f"tasks/{row.pk}/redrive/", {"reason": "mended"})

        assert answer.json()["previous"] == str(row.pk)
        assert answer.json()["state"] == "available"

    def test_twice_is_a_conflict(self, by_staff, ada, about, clock):
        row = about("account.greet", ada, state=State.DISCARDED)
        by_staff.post(f"tasks/{row.pk}/redrive/", {"reason": "mended"})

        told = problem(by_staff.post(f"tasks/{row.pk}/redrive/", {"reason": "mended"}), 409)

        assert told["type"] == "urn:timeline:already-open"
        assert told["remedy"]

    def test_of_a_run_that_an_exit_ended_is_a_conflict(self, by_staff, ada, clock):
        emit("user.created", ada)
        emit("user.left", ada)
        [greet] = ScheduledTask.objects.all()

        told = problem(by_staff.post(f"tasks/{greet.pk}/redrive/", {"reason": "x"}), 409)

        assert told["type"] == "urn:timeline:run-ended"
        assert told["remedy"] == "Start a new run instead."


class TestSchedule:
    def test_is_told_in_words(self, by_staff, clock):
        with only_timelines(Nightly):
            recur(NextBeginnings(), now=clock.now, using="default")
            row = ScheduledTask.objects.get()
            shown = by_staff.get(f"tasks/{row.pk}/").json()

        assert shown["schedule"].startswith("every day at 02:00 in Europe/Berlin, next ")
        assert shown["schedule"] in shown["explanation"]

    def test_is_empty_for_what_does_not_start_by_the_clock(self, by_staff, about, ada):
        assert by_staff.get(f"tasks/{about('account.call', ada).pk}/").json()["schedule"] == ""

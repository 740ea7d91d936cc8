"""What is left of a task and its log for those who may not read payloads."""

from __future__ import annotations

from timeline.lifecycle import State
from timeline.models import LogEntry
from timeline.reading.explanation import explain, why
from timeline.reading.masks import masked, masked_entry

ERROR = {"class": "ValueError", "message": "IBAN DE89 is closed", "traceback": "…"}


class TestMasked:
    def test_hides_payload_result_and_errors_and_leaves_the_row_as_it_is(self, make_task):
        row = make_task(
            state=State.RETRYABLE,
            payload={"iban": "DE89"},
            result="DE89",
            error="DE89",
            reason_code="error",
            reason="DE89",
        )

        shown = masked(row)

        assert (shown.payload, shown.result, shown.error, shown.reason) == ({}, None, "", "")
        assert (row.payload, row.error, row.reason) == ({"iban": "DE89"}, "DE89", "DE89")
        assert "DE89" not in why(shown)

    def test_keeps_what_people_decided(self, make_task):
        row = make_task(state=State.CANCELLED, reason="they asked", actor="eva")

        assert why(masked(row)) == "they asked, by eva"


class TestMaskedEntry:
    def test_hides_the_error_and_keeps_the_times(self):
        detail = {"error": ERROR, "scheduled_at": "2026-03-01T09:00:00+00:00"}
        entry = LogEntry(reason_code="error", reason="DE89", detail=detail)

        shown = masked_entry(entry)

        assert (shown.reason, shown.detail) == ("", {"scheduled_at": "2026-03-01T09:00:00+00:00"})
        assert entry.detail == detail


class TestExplain:
    def test_tells_the_story_without_them(self, make_task, now):
        row = make_task(state=State.DISCARDED, result="DE89", error="DE89", reason_code="error", reason="DE89")
        LogEntry.objects.create(
            task=row,
            seq=1,
            at=now,
            from_state="active",
            to_state="discarded",
            attempt=1,
            reason_code="error",
            reason="DE89",
            detail={"error": ERROR},
        )

        story = explain(row, now=now, using="default", payload=False)

        assert "It was discarded on" in story
        assert "DE89" not in story
        assert "DE89" in explain(row, now=now, using="default")

"""What the package says on rows, told in the present language by its name and its values."""

from __future__ import annotations

import pytest
from django.utils import translation

from timeline import reasons
from timeline.lifecycle import State
from timeline.models import LogEntry
from timeline.reading.masks import masked_entry
from timeline.reading.reason_texts import is_of_the_system, retold


def entry_of(reason, **changed):
    """A log entry as it is written for a reason; perhaps with another text."""
    detail = {"said": dict(reason.said)} if reason.said else {}
    return LogEntry(reason_code=reason.code, reason=changed.get("text", reason.text), detail=detail)


class TestRetold:
    def test_tells_a_sentence_without_values_by_its_text(self):
        with translation.override("de"):
            assert retold(entry_of(reasons.IN_SHADOW())) == "sie wäre gelaufen"

    def test_keeps_what_stands_in_the_gaps(self):
        with translation.override("de"):
            assert retold(entry_of(reasons.MOVED(anchor="ends at"))) == (
                "ihr Anker (ends at) oder ihre Planung hat sich geändert"
            )

    @pytest.mark.parametrize("state", [State.DISCARDED, State.CANCELLED])
    def test_calls_states_what_they_are_called_elsewhere(self, state):
        entry = entry_of(reasons.PREDECESSOR_ENDED(task="start", state=state, code="error"))

        with translation.override("de"):
            assert retold(entry) == f"start endete im Zustand „{state.label}“ (error)"

    def test_reads_nothing_out_of_the_text(self):
        """So that it may be worded otherwise, and was perhaps cut."""
        entry = entry_of(reasons.WORKER_SILENT(worker="host-1"), text="worker host-1 was not heard of …")

        with translation.override("de"):
            assert retold(entry) == "vom Worker host-1 war nichts zu hören, bis seine Frist ablief"

    def test_tells_it_to_those_who_may_read_no_payloads(self):
        with translation.override("de"):
            assert (
                retold(masked_entry(entry_of(reasons.ANCHOR_CHANGED(anchor="ends_at")))) == "ends_at hat sich geändert"
            )

    def test_tells_nothing_of_what_was_blanked(self):
        assert retold(entry_of(reasons.ANCHOR_CHANGED(anchor="ends_at"), text="")) == ""

    @pytest.mark.parametrize(
        "said",
        [
            {"sentence": "of a later version", "anchor": "ends_at"},
            {"sentence": "anchor_changed"},
            {"sentence": "moved", "anchor": "ends_at"},
            {"anchor": "ends_at"},
        ],
    )
    def test_tells_the_text_where_the_sentence_is_not_known(self, said):
        entry = LogEntry(reason_code="superseded", reason="as it is", detail={"said": said})

        with translation.override("de"):
            assert retold(entry) == "as it is"

    @pytest.mark.parametrize(
        ("code", "text"),
        [
            ("", ""),
            ("exit", "paid"),
            ("operator", "the entity was deleted"),
            ("handler", "would have run"),
            ("error", "finished"),
        ],
    )
    def test_leaves_the_words_of_others(self, code, text):
        with translation.override("de"):
            assert retold(LogEntry(reason_code=code, reason=text)) == text


class TestIsOfTheSystem:
    def test_is_so_of_what_has_a_name(self):
        assert is_of_the_system(entry_of(reasons.MOVED(anchor="she is never there")))

    @pytest.mark.parametrize("text", ["they asked", "its anchor (she is never there) or its schedule changed", ""])
    def test_is_not_so_of_what_somebody_typed(self, text):
        assert not is_of_the_system(LogEntry(reason_code="moved", reason=text))

"""What earlier versions wrote as text alone."""

from __future__ import annotations

import pytest
from django.utils import translation

from timeline.lifecycle import ReasonCode, State
from timeline.models import LogEntry, ScheduledTask
from timeline.reading.earlier import read_back
from timeline.reading.retelling import retold

# As rows of version 0.1.0 have it, and how it is told.
TEXTS = [
    ("superseded", "its anchor (ends_at) or its schedule changed", "ihr Anker (ends_at) oder ihre Planung hat sich geändert"),
    ("superseded", "remind is to run again first", "zuerst soll remind noch einmal laufen"),
    ("superseded", "ends_at is not set any more", "ends_at ist nicht mehr gesetzt"),
    ("superseded", "run:start changed", "run:start hat sich geändert"),
    ("moved", "its anchor (field:at) or its schedule changed", "ihr Anker (field:at) oder ihre Planung hat sich geändert"),
    ("definition", "remind is no longer planned by this timeline", "diese Zeitlinie plant remind nicht mehr"),
    ("predecessor", "start ended discarded (error)", "start endete im Zustand „aufgegeben“ (error)"),
    ("predecessor", "start ended cancelled (exit)", "start endete im Zustand „abgesagt“ (exit)"),
    ("predecessor", "start was cancelled by an operator", "start wurde von Hand abgesagt"),
    ("predecessor", "start has no schedule", "start hat keine Planung"),
    ("expired", "too late: it was to run before 2026-01-05 10:30 UTC", "zu spät: Sie sollte vor 2026-01-05 10:30 UTC laufen"),
    (
        "worker_lost",
        "worker host 1 was not heard of until its lease ran out",
        "vom Worker host 1 war nichts zu hören, bis seine Frist ablief",
    ),
    ("timeout", "it took longer than 1 day, 0:00:30", "es dauerte länger als 1 day, 0:00:30"),
    ("retry_after", "asked to be retried in 0:07:00", "bat um Wiederholung in 0:07:00"),
]  # fmt: skip

ROWS = [LogEntry, ScheduledTask]


@pytest.mark.parametrize("model", ROWS)
class TestRetold:
    @pytest.mark.parametrize(("code", "text", "told"), TEXTS)
    def test_tells_it_in_the_readers_language(self, model, code, text, told):
        row = model(reason_code=code, reason=text)

        assert retold(row) == text
        with translation.override("de"):
            assert retold(row) == told

    @pytest.mark.parametrize(
        ("code", "text"),
        [
            ("", ""),
            ("exit", "paid"),
            ("operator", "the entity was deleted"),
            ("handler", "would have run"),
            ("moved", "the customer asked; its anchor changed"),
            ("moved", "its anchor (she is never there) or its schedule changed"),
            ("predecessor", "start ended long ago (I think)"),
            ("error", "finished"),
            ("superseded", ""),
        ],
    )
    def test_leaves_the_words_of_others(self, model, code, text):
        with translation.override("de"):
            assert retold(model(reason_code=code, reason=text)) == text

    def test_leaves_what_has_an_author(self, model):
        """The package signs nothing: whoever typed its very words is not the package."""
        code, text, _told = TEXTS[4]

        with translation.override("de"):
            assert retold(model(reason_code=code, reason=text, actor="eva")) == text


class TestReadBack:
    @pytest.mark.parametrize("state", State)
    def test_finds_the_values(self, state):
        _sentence, values = read_back("predecessor", f"start ended {state} (error)")

        assert values == {"task": "start", "state": state, "code": "error"}

    @pytest.mark.parametrize("code", set(ReasonCode) - {code for code, _text, _told in TEXTS})
    def test_finds_nothing_beside_other_codes(self, code):
        assert [text for _code, text, _told in TEXTS if read_back(code, text)] == []

"""What the package itself says of a reason: written in English, kept with its values, told in any language."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from importlib import import_module
from pkgutil import walk_packages

import pytest
from django.utils import translation

from timeline import RetryAfter, features, reasons
from timeline.hooks import hooks
from timeline.lifecycle import ReasonCode, State
from timeline.reasons import SENTENCES, Sentence

# Those of the core, and of features.
ALL = [*SENTENCES.values(), *hooks().sentences]
NAMES = [sentence.name for sentence in ALL]

# Values for placeholders that are no text. Any other has its own name.
VALUES = {
    "at": datetime(2026, 1, 5, 10, 30, tzinfo=UTC),
    "delay": timedelta(minutes=5),
    "first": datetime(2026, 1, 5, 2, 0, tzinfo=UTC),
    "last": datetime(2026, 1, 7, 2, 0, tzinfo=UTC),
    "state": State.DISCARDED,
    "timeout": timedelta(seconds=1.5),
}

# Beside these stand only texts of people, of handlers and of errors.
FREE = {ReasonCode.OPERATOR, ReasonCode.HANDLER, ReasonCode.GUARD, ReasonCode.UNTIL, ReasonCode.ERROR, ReasonCode.DONE}


def said(sentence):
    return sentence(**{name: VALUES.get(name, f"<{name}>") for name in sentence.gaps})


class TestSentences:
    def test_are_there_for_every_code_that_is_not_others_to_explain(self):
        assert {sentence.code for sentence in ALL} - FREE == set(ReasonCode) - FREE

    def test_have_a_name_each(self):
        made = [value for value in vars(reasons).values() if isinstance(value, reasons.Sentence)]

        assert len(made) == len(SENTENCES) > 20
        assert len(set(NAMES)) == len(ALL)

    def test_of_features_are_all_told(self):
        """A sentence that no ``HOOKS`` names would be told in English only."""
        modules = [import_module(found.name) for found in walk_packages(features.__path__, "timeline.features.")]
        made = {value.name for module in modules for value in vars(module).values() if isinstance(value, Sentence)}

        assert made <= set(NAMES)

    @pytest.mark.parametrize("sentence", ALL, ids=NAMES)
    def test_can_be_told_in_german_with_every_value(self, sentence):
        reason = said(sentence)

        with translation.override("de"):
            told = sentence.told(reason.said or {})
        assert told != reason.text
        assert "%(" not in told
        for name in sentence.gaps - VALUES.keys():
            assert f"<{name}>" in told

    @pytest.mark.parametrize("sentence", ALL, ids=NAMES)
    def test_are_told_in_english_as_they_are_written(self, sentence):
        reason = said(sentence)

        assert reason.code is sentence.code
        assert sentence.told(reason.said or {}) == reason.text

    @pytest.mark.parametrize("sentence", ALL, ids=NAMES)
    def test_are_written_in_english_whatever_the_language(self, sentence):
        with translation.override("de"):
            in_german = said(sentence)

        assert in_german.text == said(sentence).text


class TestSaid:
    def test_has_the_name_and_the_values_as_plain_data(self):
        reason = reasons.PREDECESSOR_ENDED(task="remind", state=State.DISCARDED, code="error")

        assert reason.text == "remind ended discarded (error)"
        assert reason.said == {
            "sentence": "predecessor_ended",
            "task": "remind",
            "state": "discarded",
            "code": "error",
        }

    def test_has_moments_in_iso_8601_and_lengths_in_seconds(self):
        assert reasons.TOO_LATE(at=VALUES["at"]).said == {"sentence": "too_late", "at": "2026-01-05T10:30:00+00:00"}
        assert reasons.TOO_LONG(timeout=VALUES["timeout"]).said == {"sentence": "too_long", "timeout": 1.5}

    def test_is_nothing_where_the_text_says_it_all(self):
        assert reasons.IN_SHADOW().said is None

    def test_is_what_an_error_says_that_was_not_told_why(self):
        assert reasons.RETRY_ASKED_FOR(delay=VALUES["delay"]).text == str(RetryAfter(VALUES["delay"]))

    def test_lacks_no_value(self):
        with pytest.raises(KeyError):
            reasons.ANCHOR_CHANGED()

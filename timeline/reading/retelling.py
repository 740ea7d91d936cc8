"""Retelling: the package's own reasons in the present language. Texts of others stay as they are."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from timeline.lifecycle import Reason, ReasonCode, RunEnd
from timeline.models import LogEntry, ScheduledTask, TimelineRun
from timeline.reading.earlier import read_back
from timeline.reading.recalling import said_of
from timeline.reasons import SENTENCES, Sentence

# Sentences without values, by code and text.
_WHOLE: Final = {(known.code.value, known.english): known for known in SENTENCES.values() if not known.gaps}


def retold(row: ScheduledTask | LogEntry) -> str:
    """
    Tell the text of a reason in the present language, if the package wrote it.

    Args:
        row: A row, or a masked copy of it. For several rows, call ``recall`` first.

    Returns:
        The same text, if somebody else wrote it; empty if it was blanked.
    """
    found = _sentence(row)
    return row.reason if found is None else found[0].told(found[1])


def retold_reason(reason: Reason) -> str:
    """Tell the text of a reason that is in no row yet, as ``retold`` does."""
    if reason.said:
        return SENTENCES[reason.said["sentence"]].told(reason.said)
    known = _WHOLE.get((reason.code.value, reason.text))
    return reason.text if known is None else known.told({})


def is_of_the_system(row: ScheduledTask | LogEntry) -> bool:
    """Whether the package wrote the text of a reason, and nobody else."""
    return _sentence(row) is not None


def _sentence(row: ScheduledTask | LogEntry) -> tuple[Sentence, Mapping[str, Any]] | None:
    """The sentence of the package that is the text of a reason, with its values."""
    code, text = row.reason_code, row.reason
    if not code or not text:
        return None
    if whole := _WHOLE.get((code, text)):
        return whole, {}
    said = said_of(row)
    if said is None:
        return None if row.actor else read_back(code, text)
    known = SENTENCES.get(said.get("sentence", ""))
    return (known, said) if known and known.code == code and known.gaps <= said.keys() else None


def is_said_of_runs(text: str) -> bool:
    """Whether this is the package's own text for the end of a run."""
    return (ReasonCode.EXIT.value, text) in _WHOLE


def retold_end(run: TimelineRun) -> str:
    """Tell in the present language how a run ended; empty: it has not ended. The name of an exit stays as it is."""
    known = _WHOLE.get((ReasonCode.EXIT.value, run.end_reason))
    by_name = run.end_code in (RunEnd.EXIT, RunEnd.LEFT)
    return run.end_reason if known is None or by_name else known.told({})

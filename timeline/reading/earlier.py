"""
Earlier: read reasons that earlier versions wrote as text only. This is frozen: no version writes these texts any more.

A sentence without values is equal to its text, and needs no line here until its words in ``timeline.reasons`` change.
"""

from __future__ import annotations

import re
from typing import Any, Final

from timeline import reasons
from timeline.lifecycle import ReasonCode
from timeline.reasons import Sentence

_TEXTS: Final = [
    (reasons.REPLACED, r"its anchor \((?P<anchor>\S+)\) or its schedule changed"),
    (reasons.RUNS_AGAIN_FIRST, r"(?P<task>\w+) is to run again first"),
    (reasons.ANCHOR_NOT_SET, r"(?P<anchor>\S+) is not set any more"),
    (reasons.ANCHOR_CHANGED, r"(?P<anchor>\S+) changed"),
    (reasons.MOVED, r"its anchor \((?P<anchor>\S+)\) or its schedule changed"),
    (reasons.NO_LONGER_PLANNED, r"(?P<task>\w+) is no longer planned by this timeline"),
    (reasons.PREDECESSOR_ENDED, r"(?P<task>\w+) ended (?P<state>\w+) \((?P<code>\w*)\)"),
    (reasons.PREDECESSOR_CALLED_OFF, r"(?P<task>\w+) was cancelled by an operator"),
    (reasons.PREDECESSOR_UNPLANNED, r"(?P<task>\w+) has no schedule"),
    (reasons.TOO_LATE, r"too late: it was to run before (?P<at>\d{4}-\d\d-\d\d \d\d:\d\d) UTC"),
    (reasons.WORKER_SILENT, r"worker (?P<worker>.+) was not heard of until its lease ran out"),
    (reasons.TOO_LONG, r"it took longer than (?P<timeout>.+)"),
    (reasons.RETRY_ASKED_FOR, r"asked to be retried in (?P<delay>.+)"),
]
_PATTERNS: Final = [(sentence, re.compile(pattern)) for sentence, pattern in _TEXTS]


def read_back(code: str, text: str) -> tuple[Sentence, dict[str, Any]] | None:
    """
    Find the sentence and its values in the text of a reason.

    Args:
        code: Code of the reason.
        text: The text in the row.

    Returns:
        None if the text is of no known sentence, or was cut.
    """
    for sentence, pattern in _PATTERNS:
        if sentence.code == ReasonCode(code) and (found := pattern.fullmatch(text)):
            values = found.groupdict()
            return sentence, values | ({"at": f"{values['at']}+00:00"} if "at" in values else {})
    return None

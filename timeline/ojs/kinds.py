"""
The timeline of jobs. Each type of jobs is a kind of task by its own key, ``ojs.email__send``, made of its name: nothing is
imported, and no process has to know it. No worker of ours takes such a task; workers outside fetch it.
"""

from __future__ import annotations

import hashlib
import re
from datetime import datetime
from typing import Any, Final

from timeline.definition import Definition, Timeline
from timeline.definition.names import MAX_NAME

NAME: Final = "ojs"
BEGINNING: Final = f"{NAME}."
_DIGITS: Final = 8
_MADE: Final = re.compile(rf"_[0-9a-f]{{{_DIGITS}}}$")  # The end of a key that does not say the type.
_PLAIN: Final = re.compile(r"[a-z][a-z0-9]*(_[a-z0-9]+)*(\.[a-z][a-z0-9]*(_[a-z0-9]+)*)*", re.ASCII)


class Jobs(Timeline, abstract=True):
    """Jobs of the Open Job Specification. Workers outside fetch and run them."""

    name = NAME
    _elsewhere = True

    @classmethod
    def _title_of(cls, name: str) -> str:
        return "" if _MADE.search(name) else name.replace("__", ".")

    @classmethod
    def _when_lost(cls, write: Any, *, now: datetime) -> Any:
        from timeline.ojs.outcomes import lost

        return lost(write.task, now)


Jobs.definition = Definition(cls=Jobs, name=NAME, label="", starts_on=(), exits={}, tasks={}, steps={}, shadow=False)


def key_of(job_type: str) -> str:
    """
    The key of a type: with ``__`` for each dot. If that is too long, or might be the key of another: the beginning of it, and
    digits made of the whole.
    """
    name = job_type.replace(".", "__")
    if len(name) > MAX_NAME or not _PLAIN.fullmatch(job_type):
        digits = hashlib.sha256(job_type.encode()).hexdigest()[:_DIGITS]
        name = f"{re.sub(r'[^a-z0-9_]', '_', name)[: MAX_NAME - _DIGITS - 1]}_{digits}"
    return f"{BEGINNING}{name}"

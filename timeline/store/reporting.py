"""Log attempts that failed, in the log of the process: a warning if the task is tried again, an error if it is not."""

from __future__ import annotations

import logging
from collections import defaultdict
from collections.abc import Sequence
from typing import Any, Final

from timeline.lifecycle import FINAL, ReasonCode
from timeline.signals import Ending
from timeline.store.changes import Write

logger = logging.getLogger("timeline.endings")

MAX_WHY: Final = 200

# With these reasons, an attempt has not failed: one of its steps waits for a decision of a person, or for code that fits.
_OF_REST: Final = frozenset({ReasonCode.IN_DOUBT, ReasonCode.DEFINITION})

_AGAIN: Final = "%s of %s failed at attempt %d and is tried again at %s: %s (task %s)"
_RESTS: Final = "%s of %s rests after attempt %d, and looks again at %s: %s (task %s)"
_LAST: Final = "%s of %s is discarded after attempt %d: %s (task %s)"
_SEVERAL_AGAIN: Final = "%d tasks failed together and are tried again: %s (the first is task %s, %s)"
_SEVERAL_LAST: Final = "%d tasks are discarded together: %s (the first is task %s, %s)"


class Failure:
    """
    An attempt that failed. It is made when the outcome is written, since the task may change before the commit.

    Args:
        ending: How the attempt ended.
        write: The write of the outcome.
    """

    def __init__(self, ending: Ending, write: Write) -> None:
        self.ending = ending
        self.due_at = write.task.scheduled_at
        self.why = _in_a_line(ending.error, write.reason.text if write.reason else "")
        self.is_last = ending.state in FINAL

    @property
    def level(self) -> int:
        """The level for the log. It is only INFO if a handler asks to be called later."""
        if self.is_last:
            return logging.ERROR
        return logging.INFO if self.ending.reason_code == ReasonCode.RETRY_AFTER else logging.WARNING

    @property
    def cause(self) -> tuple[int, object]:
        """Failures with the same cause are logged in one line: those of one call for many, or of a lost worker."""
        return self.level, self.why if self.ending.error is None else id(self.ending.error)


def log_failures(failures: Sequence[Failure]) -> None:
    """Write one line for each cause; with the traceback, if the task is not tried again."""
    together: dict[tuple[int, object], list[Failure]] = defaultdict(list)
    for failure in failures:
        together[failure.cause].append(failure)
    for (level, _cause), several in together.items():
        first, ending = several[0], several[0].ending
        raised = ending.error if first.is_last else None
        logger.log(
            level, *(_line(first) if len(several) == 1 else _line_of(several)), exc_info=raised, extra=_ids(several)
        )


def _line(failure: Failure) -> tuple[Any, ...]:
    ending = failure.ending
    which = f"#{ending.occurrence}" if ending.run_id and ending.occurrence else ""
    head = (f"{ending.task_key}{which}", _entity(ending) or "the system", ending.attempt)
    if failure.is_last:
        return _LAST, *head, failure.why, ending.task_id
    said = _RESTS if ending.reason_code in _OF_REST else _AGAIN
    return said, *head, f"{failure.due_at:%Y-%m-%d %H:%M:%S %Z}", failure.why, ending.task_id


def _line_of(failures: Sequence[Failure]) -> tuple[Any, ...]:
    first = failures[0]
    said = _SEVERAL_LAST if first.is_last else _SEVERAL_AGAIN
    return said, len(failures), first.why, first.ending.task_id, first.ending.task_key


def _ids(failures: Sequence[Failure]) -> dict[str, object]:
    """Values attached to the line: ids of the first failure, and of all if there are several."""
    ending = failures[0].ending
    bound: dict[str, object] = {
        "task_id": str(ending.task_id),
        "task_key": ending.task_key,
        "attempt": ending.attempt,
        "entity": _entity(ending),
        "run_id": str(ending.run_id or ""),
        "reason_code": ending.reason_code,
    }
    if len(failures) > 1:
        bound["task_ids"] = [str(failure.ending.task_id) for failure in failures]
    return bound


def _entity(ending: Ending) -> str:
    return f"{ending.entity_label} {ending.entity_id}".strip()


def _in_a_line(error: Exception | None, reason: str) -> str:
    line = " ".join((f"{type(error).__name__}: {reason}" if error is not None else reason).split())
    return line if len(line) <= MAX_WHY else f"{line[: MAX_WHY - 1]}…"

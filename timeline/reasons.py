"""
What the package itself says about why a task came to where it is: each sentence once, with its code and its values.

A row keeps it in English. One with values is kept in the ``detail`` of its log entry, too: ``{"said": {"sentence":
"anchor_changed", "anchor": "ends_at"}}``. One without is known by its text: to word it otherwise, add a new name and leave the
old one.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from functools import lru_cache
from typing import Any, Final

from django.utils.translation import gettext, pgettext

from timeline.lifecycle import Reason, ReasonCode
from timeline.timing import in_utc, told_time


def gettext_noop(text: str) -> str:
    """Mark a sentence for translators. Django's own would read the settings, which a class can be declared without."""
    return text


_ = gettext_noop


_MOMENTS: Final = frozenset({"at", "first", "last"})


@dataclass(frozen=True, slots=True)
class Sentence:
    """One sentence. Its ``name`` is stored and never changes; ``english`` has a named placeholder for each value."""

    name: str
    code: ReasonCode
    english: str

    @property
    def gaps(self) -> frozenset[str]:
        """Names of its values."""
        return frozenset(re.findall(r"%\((\w+)\)s", self.english))

    def __call__(self, **values: object) -> Reason:
        """Say it, in English whatever the present language; with what is stored beside it."""
        return _said(self, tuple([(name, _plain(value)) for name, value in values.items()]))

    def told(self, values: Mapping[str, Any]) -> str:
        """Tell it in the present language, with values as they are stored."""
        told = {name: _shown(name, values[name], told_time) for name in self.gaps}
        if "state" in told:  # Called in English what it is called in code.
            told["state"] = pgettext("timeline", told["state"])
        return gettext(self.english) % told


@lru_cache(maxsize=4096)  # Of many rows that move alike, each would be told anew.
def _said(sentence: Sentence, plain: tuple[tuple[str, str | float], ...]) -> Reason:
    values = dict(plain)
    text = sentence.english % {name: _shown(name, value, in_utc) for name, value in plain}
    return Reason(sentence.code, text, said={"sentence": sentence.name, **values} if values else None)


def _plain(value: object) -> str | float:
    """A value as JSON has it: a moment in ISO 8601, a length in seconds, anything else as its text."""
    if type(value) is str:
        return value
    if isinstance(value, datetime):
        return value.astimezone(UTC).isoformat()
    return value.total_seconds() if isinstance(value, timedelta) else str(value)


def _shown(name: str, value: str | float, moment: Callable[[datetime], str]) -> str:
    """A stored value as people read it; ``moment`` writes a time."""
    if isinstance(value, str):
        return moment(datetime.fromisoformat(value)) if name in _MOMENTS else value
    return str(timedelta(seconds=value))


# What a run says of its end is also the reason of a task that meets it.
RUN_FINISHED: Final = Sentence("run_finished", ReasonCode.EXIT, _("finished"))
RUN_OF_DELETED: Final = Sentence("run_of_deleted", ReasonCode.EXIT, _("the entity was deleted"))

DELETED: Final = Sentence("deleted", ReasonCode.ENTITY_GONE, _("the entity was deleted"))
NOT_THERE: Final = Sentence("not_there", ReasonCode.ENTITY_GONE, _("the entity is not there any more"))
NOT_SEEN: Final = Sentence(
    "not_seen",
    ReasonCode.DEFINITION,
    _("the entity is not to be seen from here, and it cannot be told whether it was deleted"),
)
RUN_NOT_THERE: Final = Sentence("run_not_there", ReasonCode.ENTITY_GONE, _("its run is not there any more"))

PLANNED_OTHERWISE: Final = Sentence(
    "planned_otherwise", ReasonCode.SUPERSEDED, _("the timeline plans it otherwise now")
)
NOT_YET: Final = Sentence("not_yet", ReasonCode.SUPERSEDED, _("its schedule was changed to a later one"))
REPLACED: Final = Sentence("replaced", ReasonCode.SUPERSEDED, _("its anchor (%(anchor)s) or its schedule changed"))
RUNS_AGAIN_FIRST: Final = Sentence("runs_again_first", ReasonCode.SUPERSEDED, _("%(task)s is to run again first"))
ANCHOR_NOT_SET: Final = Sentence("anchor_not_set", ReasonCode.SUPERSEDED, _("%(anchor)s is not set any more"))
ANCHOR_CHANGED: Final = Sentence("anchor_changed", ReasonCode.SUPERSEDED, _("%(anchor)s changed"))
OUT_OF_RANGE: Final = Sentence(
    "out_of_range",
    ReasonCode.SUPERSEDED,
    _("%(anchor)s: %(value)s is outside the years 1970 to 9000. Give a date within them."),
)
WITHOUT_ZONE: Final = Sentence(
    "without_zone",
    ReasonCode.SUPERSEDED,
    _("%(anchor)s: has no time zone. Give an aware datetime, e.g. timezone.make_aware(value)."),
)

# Of a task of a state that only other code has.
STATE_UNKNOWN: Final = Sentence(
    "state_unknown", ReasonCode.DEFINITION, _("its run is in %(state)s, which the table of this code does not have")
)

# Of a task whose model was renamed, until its rows are.
LABEL_UNKNOWN: Final = Sentence(
    "label_unknown",
    ReasonCode.DEFINITION,
    _("it is about %(label)s, and its timeline about %(wanted)s: timeline_relabel gives rows the new name of a model"),
)

MOVED: Final = Sentence("moved", ReasonCode.MOVED, _("its anchor (%(anchor)s) or its schedule changed"))

HOURS_CHANGED: Final = Sentence("hours_changed", ReasonCode.MOVED, _("its window or its spread changed"))

NO_LONGER_PLANNED: Final = Sentence(
    "no_longer_planned", ReasonCode.DEFINITION, _("%(task)s is no longer planned by this timeline")
)

NOT_DEFINED: Final = Sentence("not_defined", ReasonCode.DEFINITION, _("%(name)s has no definition any more"))

PREDECESSOR_ENDED: Final = Sentence(
    "predecessor_ended", ReasonCode.PREDECESSOR, _("%(task)s ended %(state)s (%(code)s)")
)
PREDECESSOR_CALLED_OFF: Final = Sentence(
    "predecessor_called_off", ReasonCode.PREDECESSOR, _("%(task)s was cancelled by an operator")
)
OCCURRENCE_ENDED: Final = Sentence(
    "occurrence_ended", ReasonCode.PREDECESSOR, _("%(task)s “%(occurrence)s” ended %(state)s (%(code)s)")
)
PREDECESSOR_UNPLANNED: Final = Sentence("predecessor_unplanned", ReasonCode.PREDECESSOR, _("%(task)s has no schedule"))

# Of a task that keeps no run open.
RUN_HAS_ENDED: Final = Sentence("run_has_ended", ReasonCode.RUN_ENDED, _("nothing else was left of its run"))

# Of a task whose time had passed before its run was begun for what was there already.
PASSED: Final = Sentence("passed", ReasonCode.EXPIRED, _("its time had passed before the run began"))

OUTSIDE: Final = Sentence("outside", ReasonCode.GUARD, _("its time is outside of %(hours)s"))
TOO_LATE: Final = Sentence("too_late", ReasonCode.EXPIRED, _("too late: it was to run before %(at)s"))

# Of what waits for an event of another entity than the task's own.
AWAITS_ANOTHER: Final = Sentence("awaits_another", ReasonCode.EVENT, _("its %(whose)s is another one now"))

WORKER_SILENT: Final = Sentence(
    "worker_silent", ReasonCode.WORKER_LOST, _("worker %(worker)s was not heard of until its lease ran out")
)
SOME_WORKER_SILENT: Final = Sentence(
    "some_worker_silent", ReasonCode.WORKER_LOST, _("worker was not heard of until its lease ran out")
)

WORKER_STOPPED: Final = Sentence("worker_stopped", ReasonCode.RELEASED, _("the worker stopped before it got to it"))
HELD_UP: Final = Sentence("held_up", ReasonCode.RELEASED, _("another task held up the worker before it got to it"))
TURN_ENDED: Final = Sentence(
    "turn_ended", ReasonCode.RELEASED, _("an error ended the worker's turn before it got to it")
)

TOO_LONG: Final = Sentence("too_long", ReasonCode.TIMEOUT, _("it took longer than %(timeout)s"))
# As the error says it.
RETRY_ASKED_FOR: Final = Sentence("retry_asked_for", ReasonCode.RETRY_AFTER, _("asked to be retried in %(delay)s"))
IN_SHADOW: Final = Sentence("in_shadow", ReasonCode.SHADOW, _("would have run"))

# A task with steps rests until somebody decides.
STEP_IN_DOUBT: Final = Sentence(
    "step_in_doubt", ReasonCode.IN_DOUBT, _("step %(step)s was begun and may have happened; somebody has to decide")
)

# Name → sentence: all of the above. Features have others: ``Hooks.sentences``.
SENTENCES: Final[Mapping[str, Sentence]] = {
    known.name: known for known in list(globals().values()) if isinstance(known, Sentence)
}

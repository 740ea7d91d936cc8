"""Retelling: what the system wrote beside a reason's code, in the present language. Rows keep it in English."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Final

from django.utils.translation import gettext, pgettext
from django.utils.translation import gettext_noop as _

from timeline.lifecycle import ReasonCode, RunEnd
from timeline.models import TimelineRun

# Texts of people and handlers stay as they are: their codes are not here, or say none of this.
_WRITTEN: Final[Mapping[ReasonCode, tuple[str, ...]]] = {
    ReasonCode.EXIT: (_("finished"), _("the entity was deleted")),  # What a run says of its end.
    ReasonCode.ENTITY_GONE: (
        _("the entity was deleted"),
        _("the entity is not there any more"),
        _("its run is not there any more"),
    ),
    ReasonCode.SUPERSEDED: (
        _("the timeline plans it otherwise now"),
        _("its schedule was changed to a later one"),
        _("its anchor (%(anchor)s) or its schedule changed"),
        _("%(task)s is to run again first"),
        _("%(anchor)s is not set any more"),
        _("%(anchor)s changed"),
    ),
    ReasonCode.MOVED: (_("its anchor (%(anchor)s) or its schedule changed"),),
    ReasonCode.DEFINITION: (_("%(task)s is no longer planned by this timeline"),),
    ReasonCode.PREDECESSOR: (
        _("%(task)s ended %(state)s (%(code)s)"),
        _("%(task)s was cancelled by an operator"),
        _("%(task)s has no schedule"),
    ),
    ReasonCode.EXPIRED: (_("too late: it was to run before %(at)s"),),
    ReasonCode.WORKER_LOST: (
        _("worker %(worker)s was not heard of until its lease ran out"),
        _("worker was not heard of until its lease ran out"),
    ),
    ReasonCode.RELEASED: (
        _("the worker stopped before it got to it"),
        _("another task held up the worker before it got to it"),
        _("an error ended the worker's turn before it got to it"),
    ),
    ReasonCode.TIMEOUT: (_("it took longer than %(timeout)s"),),
    ReasonCode.RETRY_AFTER: (_("asked to be retried in %(delay)s"),),
    ReasonCode.SHADOW: (_("would have run"),),
}


def _pattern(template: str) -> re.Pattern[str]:
    return re.compile(re.sub(r"%\\\((\w+)\\\)s", r"(?P<\1>.+)", re.escape(template)))


_PATTERNS: Final = {
    code: [(_pattern(template), template) for template in templates] for code, templates in _WRITTEN.items()
}


def is_of_the_system(code: str, text: str) -> bool:
    """Whether the system wrote the text of a reason, and nobody else."""
    return any(pattern.fullmatch(text) for pattern, _template in _PATTERNS.get(ReasonCode(code), ())) if code else False


def retold(code: str, text: str) -> str:
    """
    Tell the text of a reason in the present language, if the system wrote it.

    Args:
        code: Of the reason; of a run's end, ``exit``.
        text: As rows keep it.

    Returns:
        The text as it is, if somebody else wrote it, or if it was too long to be kept whole.
    """
    for pattern, template in _PATTERNS.get(ReasonCode(code), ()) if code else ():
        if found := pattern.fullmatch(text):
            values = found.groupdict()
            if "state" in values:
                values["state"] = pgettext("timeline", values["state"])  # Called in English what it is called in code.
            return gettext(template) % values
    return text


def retold_end(run: TimelineRun) -> str:
    """Tell in the present language how a run ended; empty: it has not. The name of an exit stays as it is."""
    if run.end_code in (RunEnd.EXIT, RunEnd.LEFT):
        return run.end_reason
    return retold(ReasonCode.EXIT, run.end_reason)

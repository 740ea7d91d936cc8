"""Events that no timeline knows: refused, or warned of once."""

from __future__ import annotations

import logging
import sys
import warnings
from collections.abc import Iterable, Iterator

from django.conf import settings
from django.core import mail
from django.utils.translation import override

from timeline.conf import get_settings
from timeline.exceptions import UnknownEvent, UnknownEventWarning
from timeline.models.entities import kinds_of
from timeline.registry import registry
from timeline.suggestions import near

logger = logging.getLogger("timeline")
_told: set[tuple[str, str]] = set()  # (name, label) of events that this process has warned of.


def refuse_unknown_event(event: str, labels: Iterable[str]) -> None:
    """Raise ``UnknownEvent`` if no timeline about these entities knows it, unless ``TIMELINE["STRICT_EVENTS"]`` is off."""
    if get_settings().STRICT_EVENTS is not False:
        for unknown in _unknown(event, labels):
            raise unknown


def mind_unknown(event: str, labels: Iterable[str]) -> None:
    """
    Warn once of an event that no timeline about these labels knows (empty: the system): in the log if ``DEBUG`` is on, in
    tests with a warning. With ``TIMELINE["STRICT_EVENTS"]``, ``UnknownEvent`` is raised each time.
    """
    strict = get_settings().STRICT_EVENTS is True
    if strict or settings.DEBUG or _is_tested():
        for unknown in _unknown(event, labels):
            if strict:
                raise unknown
            _tell(unknown)


def _unknown(event: str, labels: Iterable[str]) -> Iterator[UnknownEvent]:
    """For each kind of entity for which the event is not known, an error that says so."""
    if event in get_settings().RECORDED_EVENTS:
        return
    events = registry.events()
    for label in sorted(set(labels)):
        known = {name for kin in kinds_of(label) & events.keys() for name in events[kin]}
        if event not in known:
            elsewhere = sorted(other for other, names in events.items() if event in names)
            yield UnknownEvent(event, label, near(event, known), elsewhere)


def _is_tested() -> bool:
    """Whether a test runs: Django's runner, and pytest-django, put an outbox there."""
    return hasattr(mail, "outbox")


def _tell(unknown: UnknownEvent) -> None:
    with override("en"):
        said = f"{unknown.problem.removesuffix('.')}: it is recorded, and nothing else happens. {unknown.remedy}"
    if not settings.DEBUG:
        warnings.warn(said, UnknownEventWarning, stacklevel=_caller())
    elif (unknown.name, unknown.label) not in _told:
        _told.add((unknown.name, unknown.label))
        logger.warning("%s", said)


def _caller() -> int:
    """How far up the stack the code is that has called this package: a warning names its line."""
    frame, level = sys._getframe(1), 1
    while frame.f_back is not None and frame.f_globals.get("__name__", "").partition(".")[0] == "timeline":
        frame, level = frame.f_back, level + 1
    return level

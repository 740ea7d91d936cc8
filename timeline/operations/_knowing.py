"""Check that some timeline knows an event. An unknown event is recorded all the same, but its name is probably misspelt."""

from __future__ import annotations

import logging
from collections.abc import Iterable
from difflib import get_close_matches
from typing import Final

from django.conf import settings
from django.utils.translation import override

from timeline.conf import get_settings
from timeline.exceptions import UnknownEvent
from timeline.models.families import kinds_of
from timeline.registry import registry

logger = logging.getLogger("timeline")

NEAR: Final = 0.75  # A high value, since names that begin with the same word are similar already.
_told: set[tuple[str, str]] = set()  # (name, label) of events that this process has warned of.


def mind_unknown(event: str, labels: Iterable[str]) -> None:
    """
    Warn of an event that no timeline about these kinds of entities knows. This is done if ``DEBUG`` is on, once in a process.

    Args:
        event: The name of the event.
        labels: The labels of its entities; an empty label is the system. An event that any model of a family knows is known.

    Raises:
        UnknownEvent: if ``TIMELINE["STRICT_EVENTS"]`` is on: each time, and no warning is given.
    """
    ours = get_settings()
    if not (ours.STRICT_EVENTS or settings.DEBUG) or event in ours.RECORDED_EVENTS:
        return
    events = registry.events()
    for label in sorted(set(labels)):
        known = {name for kin in kinds_of(label) & events.keys() for name in events[kin]}
        if event not in known and (ours.STRICT_EVENTS or (event, label) not in _told):
            elsewhere = sorted(other for other, names in events.items() if event in names)
            unknown = UnknownEvent(event, label, get_close_matches(event, sorted(known), cutoff=NEAR), elsewhere)
            _tell(unknown, strict=ours.STRICT_EVENTS)


def _tell(unknown: UnknownEvent, *, strict: bool) -> None:
    if strict:
        raise unknown
    _told.add((unknown.name, unknown.label))
    with override("en"):
        problem = unknown.problem.removesuffix(".")
        logger.warning("%s: it is recorded, and nothing else happens. %s", problem, unknown.remedy)

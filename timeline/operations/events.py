"""What an event says (``EventFields``), whose it is under all names (``Subject``), and which events no timeline knows."""

from __future__ import annotations

import logging
import sys
import warnings
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any, Final, NamedTuple

from django.conf import settings
from django.core import mail
from django.db.models import Model
from django.utils.translation import gettext_lazy as _
from django.utils.translation import override

from timeline.clocks import story_now
from timeline.conf import get_settings
from timeline.definition.names import ERASED
from timeline.exceptions import InvalidInput, UnknownEvent, UnknownEventWarning
from timeline.models import EntityRef, ScheduledTask, TimelineRun
from timeline.models.entities import kinds_of
from timeline.models.kin import Names, kin_of
from timeline.registry import registry
from timeline.store.locks import lock_batch, lock_entity_now, missing
from timeline.suggestions import near

_NOBODY: Final[Mapping[EntityRef, Model | None]] = {}
logger = logging.getLogger("timeline")
_told: set[tuple[str, str]] = set()  # (name, label) of events that this process has warned of.


class EventFields(NamedTuple):
    """The contents of an event, without its entity; the fields are columns."""

    name: str
    key: str
    payload: dict[str, Any]
    actor: str
    occurred_at: datetime
    recorded_at: datetime


def refuse_ours(name: str, *, field: str) -> None:
    """
    Raise ``InvalidInput`` for an event name that only this package may write: such events are kept when an entity is erased.
    """
    if name == ERASED:
        raise InvalidInput(field, _("%(name)r is written where something is erased."), _("Call erase."), name=name)


@dataclass(slots=True, kw_only=True)
class Subject:
    """
    An entity, with all its names; it has to exist under ``given``.

    Args:
        sought: The names under which its rows are locked. It may not exist under some of them.
        there: The names under which it exists → the entity, or None if not read. Filled by locking.
        ahead: The runs that an event moves, with the tasks to plan from, if they were locked with the entity.
    """

    given: EntityRef
    names: Names
    sought: Names
    there: Mapping[EntityRef, Model | None] = field(default_factory=lambda: _NOBODY)
    ahead: list[tuple[TimelineRun, list[ScheduledTask]]] | None = None

    @property
    def ref(self) -> EntityRef:
        """The name under which its events are recorded."""
        return self.names[0]


def subjects_of(refs: Iterable[EntityRef], *, started: Collection[str], using: str) -> dict[EntityRef, Subject]:
    """
    Find the names of entities. ``started``: labels of models whose timelines may start; entities are locked under these, too.
    """
    return {
        ref: Subject(given=ref, names=names, sought=_sought(ref, names, started))
        for ref, names in kin_of(refs, using=using).items()
    }


def _sought(ref: EntityRef, names: Names, started: Collection[str]) -> Names:
    if names == (ref,):
        return names
    return tuple(name for name in names if name == ref or name.label in started) or (ref,)


def lock_subject_now(subject: Subject, *, read: bool, now: datetime | None, using: str) -> datetime:
    """Lock one subject, and tell story time as it is then. Errors as of ``lock_entity_now``."""
    if subject.sought == (subject.given,):
        subject.there, now = lock_entity_now(subject.given, read=read, now=now, using=using)
        return now
    lock_subjects([subject], read=read, using=using)
    return now or story_now(using)


def lock_subjects(
    subjects: Sequence[Subject], *, gone: bool = False, read: bool, using: str
) -> dict[EntityRef, Subject]:
    """
    Lock subjects as ``lock_batch`` does. Gives those that exist, in order, by the name under which their events are recorded.
    """
    refs = list(dict.fromkeys(name for subject in subjects for name in subject.sought))
    entities = lock_batch(refs, gone=True, read=read, using=using)
    found = {}
    for subject in subjects:
        if subject.given in entities:
            if subject.sought == (subject.given,):
                subject.there = {subject.given: entities[subject.given]}
            else:
                subject.there = {name: entities[name] for name in subject.sought if name in entities}
            found[subject.ref] = subject
        elif not gone:
            raise missing(subject.given, using)
    return found


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

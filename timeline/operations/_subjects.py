"""Subjects: whom something happens to, as each model of its family that has to do with it."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import Final

from django.db.models import Model

from timeline.clocks import story_now
from timeline.models import EntityRef, ScheduledTask, TimelineRun
from timeline.models.kin import Names, kin_of
from timeline.store.locking import lock_batch, lock_entity_now, missing

_NOBODY: Final[Mapping[EntityRef, Model | None]] = {}


@dataclass(slots=True, kw_only=True)
class Subject:
    """
    An entity, by whichever of its names it was given.

    Args:
        given: The name it was given by; it has to be there by this one.
        names: All it is called, the same by whichever it was given.
        sought: The names under which its rows are locked: what is not there, it is not.
        there: Those of them under which it is there, and what was read; filled when it is locked.
        ahead: Runs that an event moves, each with the rows that it is planned from, where they were locked with it.
    """

    given: EntityRef
    names: Names
    sought: Names
    there: Mapping[EntityRef, Model | None] = field(default_factory=lambda: _NOBODY)
    ahead: list[tuple[TimelineRun, list[ScheduledTask]]] | None = None

    @property
    def ref(self) -> EntityRef:
        """What its events are recorded under."""
        return self.names[0]


def subjects_of(refs: Iterable[EntityRef], *, started: Collection[str], using: str) -> dict[EntityRef, Subject]:
    """
    Find out what some entities are called.

    Args:
        refs: As they were given.
        started: Labels of the models whose timelines may start: by these, too, they are locked.
        using: Database alias.
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
    """
    Lock one subject, and tell story time as it is then; see ``lock_entity_now``.

    Raises:
        WrongEntity, UnreadableEntity, WrongIsolation: as that.
    """
    if subject.sought == (subject.given,):
        subject.there, now = lock_entity_now(subject.given, read=read, now=now, using=using)
        return now
    lock_subjects([subject], read=read, using=using)
    return now or story_now(using)


def lock_subjects(
    subjects: Sequence[Subject], *, gone: bool = False, read: bool, using: str
) -> dict[EntityRef, Subject]:
    """
    Lock any number of subjects; see ``lock_batch``.

    Returns:
        Those that are there, by what their events are recorded under, in the order given.

    Raises:
        WrongEntity, UnreadableEntity, WrongIsolation: as that.
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

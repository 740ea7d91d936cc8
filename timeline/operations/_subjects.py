"""Subjects: entities of events, with all the names that they have in a family of models."""

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
    An entity, with all its names.

    Args:
        given: The name that the caller gave. The entity has to exist under this name.
        names: All its names; the same, whichever of them was given.
        sought: The names under which its rows are locked. It may not exist under some of them.
        there: The names under which it exists, each with the entity, or None if that was not read. Filled by locking.
        ahead: The runs that an event moves, each with the tasks that it is planned from, if they were locked together with
            the entity.
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
    Find the names of entities.

    Args:
        refs: The names that the caller gave.
        started: Labels of models whose timelines may start. Entities are locked under these names, too.
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
        The entities that exist, in the order given, by the name under which their events are recorded.

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

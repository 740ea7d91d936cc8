"""What would come of failed tasks if all of them were run again now, counted before somebody confirms that."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from copy import copy
from datetime import datetime
from time import monotonic
from typing import TYPE_CHECKING, Final, NamedTuple
from uuid import UUID

from django.utils.translation import gettext as _

from timeline.admin.guard_answers import is_true, shared
from timeline.admin.references import Named, load_to_name, named
from timeline.engine.attempts import Attempt, guard_reason
from timeline.engine.precheck import guarded, refusal
from timeline.lifecycle import Reason, ReasonCode
from timeline.models.task_records import origins_of, recorded_among
from timeline.operations.leave import exits_since
from timeline.operations.redrive import made_again
from timeline.policy import Action
from timeline.reading.in_the_way import in_the_way
from timeline.reading.reason_texts import retold_reason
from timeline.registry import registry
from timeline.store.returned_rows import read_entities

if TYPE_CHECKING:
    from timeline.admin.subject import Reader
    from timeline.models import EntityRef, ScheduledTask
    from timeline.models.entities import Entities

LOOKED_AT: Final = 200  # Tasks of which it is asked what would come of them; the page says so where there are more.
NAMED: Final = 3  # Of whom they are, so many are named.
_GUARDS: Final = 1.0  # Seconds for guards that are functions of the host: they may ask the database.


class Whom(NamedTuple):
    """Whom tasks are about: the first by name, and how many others; None: there are others, and nobody has counted them."""

    first: list[Named]
    others: int | None = 0


class Fate(NamedTuple):
    """What comes of some of the tasks: what is said, how many they are, and whom they are about."""

    said: str
    number: int
    whom: Whom


class Fates(NamedTuple):
    """What comes of all that were ``looked`` at: those that run now, and ``others``, the most first."""

    run: Fate
    others: list[Fate]
    looked: int


def first_of(refs: Iterable[EntityRef]) -> list[EntityRef]:
    """The first of those that are about something: they have to be named for ``whom``."""
    return list(dict.fromkeys(ref for ref in refs if ref.label))[:NAMED]


def whom(refs: Sequence[EntityRef], names: Mapping[EntityRef, Named], *, is_all: bool = True) -> Whom:
    """Name the first. ``is_all``: these are all there are."""
    others = len({ref for ref in refs if ref.label}) - NAMED
    return Whom([names[ref] for ref in first_of(refs)], max(others, 0) if is_all else None)


def fates_of(tasks: Sequence[ScheduledTask], reader: Reader, *, now: datetime, site: str, using: str) -> Fates:
    """
    Say what the precheck of a worker would say of them now. The tasks have their runs. The number of statements is fixed, but
    for what guards ask that are functions; nothing that these write stays.
    """
    said: dict[UUID, str] = dict(_kept_back(tasks, reader, using))
    again = {task.pk: _again(task, now) for task in tasks if task.pk not in said}
    entities = read_entities((row.entity_ref for row in again.values()), using=using)
    attempts = [
        Attempt(row, *registry.task(row.task_key), now, lost=False, idempotency_key=row.pk) for row in again.values()
    ]
    refused = _refused(attempts, entities, now, using)
    if half_done := _half_done([task for task in tasks if task.pk in again and again[task.pk].pk in refused], using):
        for attempt in attempts:
            attempt.has_records = attempt.task.previous_id in half_done
        refused = _refused(attempts, entities, now, using)
    held = in_the_way([row for row in again.values() if row.pk not in refused], using=using)
    for task_id, row in again.items():
        if row.pk in refused:
            said[task_id] = _in_words(refused[row.pk])
        elif row.pk in held:
            said[task_id] = held[row.pk]
    groups: dict[str, list[EntityRef]] = defaultdict(list)
    for task in tasks:
        groups[said.get(task.pk, "")].append(task.entity_ref)
    refs = {ref: None for some in groups.values() for ref in first_of(some)}
    there = load_to_name(refs, using=using) if refs.keys() - entities.keys() else entities
    names = {ref: named(ref, there.get(ref), site) for ref in refs}
    running = groups.pop("", [])
    others = [Fate(words, len(some), whom(some, names)) for words, some in groups.items()]
    run = Fate(_("they run now"), len(running), whom(running, names))
    return Fates(run, sorted(others, key=lambda each: -each.number), len(tasks))


def _kept_back(tasks: Sequence[ScheduledTask], reader: Reader, using: str) -> Iterator[tuple[UUID, str]]:
    """Those that stay as they are, because they cannot be run again, or no code runs them."""
    known = set(registry.task_keys())
    there = [(task.run, registry.task(task.task_key)[0]) for task in tasks if task.task_key in known]
    exits = exits_since([(run, definition) for run, definition in there if run is not None], using=using)
    for task in tasks:
        run = task.run
        if run is not None and ((not run.is_open and not run.is_finished) or run.pk in exits):
            yield task.pk, _("they stay as they are: their run has ended otherwise")
        elif Action.REDRIVE not in reader.policy.actions(reader.user, task):
            yield task.pk, _("they stay as they are: you may not run them again")
        elif task.task_key not in known:
            yield task.pk, _("they wait until the code has this task again")


def _again(task: ScheduledTask, now: datetime) -> ScheduledTask:
    """The row that a redrive makes; its run is open then."""
    again = made_again(task, now, now=now)
    if task.run is not None and not task.run.is_open:
        again.run = copy(task.run)
        again.run.ended_at = None
    return again


def _refused(attempts: Sequence[Attempt], entities: Entities, now: datetime, using: str) -> dict[UUID, object]:
    """What refuses new rows, by their ids."""
    found = {attempt.task.pk: refusal(attempt, entities, {}, now) for attempt in attempts}
    refused: dict[UUID, object] = {task_id: why for task_id, why in found.items() if why is not None}
    rest = [attempt for attempt in attempts if attempt.task.pk not in refused]
    refused |= guarded(rest, using=using)
    return refused | _guarded_by_functions([attempt for attempt in rest if attempt.task.pk not in refused], using)


def _half_done(tasks: Sequence[ScheduledTask], using: str) -> set[UUID]:
    """Those of failed tasks that have done steps: guards are not asked again, and it is never too late."""
    keys = origins_of({task.pk: task.previous_id for task in tasks}, using=using) if tasks else {}
    recorded = recorded_among(keys.values(), using=using) if keys else set()
    return {task_id for task_id, key in keys.items() if key in recorded}


def _guarded_by_functions(attempts: Iterable[Attempt], using: str) -> dict[UUID, object]:
    """What guards that are functions refuse. Where their time is over, or one fails, nobody can say: None."""
    refused: dict[UUID, object] = {}
    until = monotonic() + _GUARDS
    with shared(using) as sandbox:
        for attempt in attempts:
            for option, guard in () if attempt.has_records else attempt.declared.function_guards:
                said = is_true(guard, attempt.task, attempt.entity, sandbox) if monotonic() < until else None
                if said is None:
                    refused[attempt.task.pk] = None
                elif said is not (option == "only_if"):
                    refused[attempt.task.pk] = guard_reason(option, guard)
                    break
    return refused


def _in_words(why: object) -> str:
    """What is said of tasks that are refused alike: without the time of one of them."""
    if not isinstance(why, Reason):
        return _("nobody can say whether they run")
    if why.code == ReasonCode.EXPIRED:
        return _("they are dropped at once: it is too late for them")
    told = {"why": retold_reason(why)}
    if why.code == ReasonCode.SUPERSEDED:
        return _("they do not run now: %(why)s; they come again at the time that is planned for them, if any") % told
    return _("they are dropped at once: %(why)s") % told

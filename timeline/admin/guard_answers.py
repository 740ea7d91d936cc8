"""What the guards of tasks that are ahead say now: whether they would run as things stand."""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager, suppress
from copy import copy
from typing import TYPE_CHECKING, Any, Final
from uuid import UUID

from django.conf import settings
from django.db import connections, transaction
from django.db.models import Exists, Model, Q
from django.utils import timezone, translation
from django.utils.translation import gettext as _

from timeline.dialects import dialect_of
from timeline.exceptions import UnknownTask
from timeline.models import EntityRef, model_of
from timeline.models.entities import load_entities
from timeline.models.facts import language_of, zone_of
from timeline.reading.guard_words import guard_in_words
from timeline.registry import registry
from timeline.store.database_errors import catching
from timeline.store.transactions import as_select

if TYPE_CHECKING:
    from timeline.models import ScheduledTask


BOUNDS: Final = {"lock_timeout": "100ms", "statement_timeout": "2s"}  # A page waits for no worker that has the entity.
_READS: Final = re.compile(
    r"\s*SELECT\b(?!.*\bFOR\s+(?:NO\s+KEY\s+|KEY\s+)?(?:UPDATE|SHARE)\b)", re.IGNORECASE | re.DOTALL
)

Asked = tuple[EntityRef, int]  # Whom, and which guard.
Answers = dict[Asked, bool | None]


class Sandbox:
    """
    One transaction for many guards, begun by the first; it only costs a savepoint where a guard writes.

    What a guard writes is undone behind it. A transaction that a guard has broken is left, and the next begins another.
    """

    def __init__(self, using: str) -> None:
        self._using = using
        self._stack = ExitStack()
        self._is_begun = self._is_bounded = self._is_broken = False
        self._savepoint: str | None = None

    @contextmanager
    def one(self) -> Iterator[None]:
        """Let one guard ask."""
        connection = connections[self._using]
        self._begin()
        try:
            with connection.execute_wrapper(self._watch):
                yield
        finally:
            if self._is_broken or connection.needs_rollback:
                self.leave()
            elif self._savepoint is not None:
                connection.savepoint_rollback(self._savepoint)
            self._savepoint = None

    def leave(self) -> None:
        """Undo all of it."""
        if self._is_begun:
            transaction.set_rollback(True, using=self._using)
            self._is_begun = self._is_broken = False
            self._stack.close()

    def _begin(self) -> None:
        if self._is_begun:
            return
        self._stack.enter_context(transaction.atomic(using=self._using))
        self._is_begun = True
        self._is_bounded = not dialect_of(self._using).has_settings

    def _watch(self, execute: Callable[..., Any], sql: str, params: Any, many: bool, context: dict[str, Any]) -> Any:
        """Before the first statement, set its bounds; before the first that may change something, note what there was."""
        try:
            if not self._is_bounded:
                self._is_bounded = True
                with connections[self._using].cursor() as cursor:
                    cursor.execute(as_select(BOUNDS))  # Undone with the rest.
            if self._savepoint is None and not self._is_broken and not _READS.match(sql):
                self._savepoint = ""  # What follows is watched, too.
                self._savepoint = connections[self._using].savepoint()
            return execute(sql, params, many, context)
        except Exception:
            self._is_broken = True
            raise


@contextmanager
def shared(using: str) -> Iterator[Sandbox]:
    """Give one, and undo what was done in it."""
    sandbox = Sandbox(using)
    try:
        yield sandbox
    finally:
        sandbox.leave()


def standing_of(
    tasks: Iterable[ScheduledTask], entities: Mapping[EntityRef, Model], *, held: Collection[UUID] = (), using: str
) -> dict[UUID, str]:
    """
    Ask guards about their entities, each once; give task id → what they say in words. Nothing that they write stays.

    Tasks without guards or without code are left out. ``held``: those that are on hold, so that they would not run now.
    ``entities`` holds what was read already; the rest is read here.
    """
    guarded = [(task, guards) for task in tasks if (guards := _guards_of(task))]
    refs = {task.entity_ref for task, _guards in guarded}
    there = {**load_entities(refs - entities.keys(), using=using), **entities}
    asked = {(task.entity_ref, id(guard)): (guard, task) for task, guards in guarded for _option, guard in guards}
    said = _conditions({key: each for key, each in asked.items() if isinstance(each[0], Q)}, there, using)
    with shared(using) as sandbox:
        for key, (guard, task) in asked.items():
            if key not in said:
                said[key] = is_true(guard, task, there.get(task.entity_ref), sandbox)
    return {
        task.pk: _in_words(
            [
                (
                    guard_in_words(registry.task(task.task_key)[0], option, guard),
                    option,
                    said[task.entity_ref, id(guard)],
                )
                for option, guard in guards
            ],
            is_held=task.pk in held,
        )
        for task, guards in guarded
    }


def _guards_of(task: ScheduledTask) -> Sequence[tuple[str, Any]]:
    with suppress(UnknownTask):
        declared = registry.task(task.task_key)[1]
        return [(option, guard) for option, guard in declared.guards.items() if guard is not None and option != "until"]
    return []


def _conditions(
    asked: Mapping[Asked, tuple[Q, ScheduledTask]], there: Mapping[EntityRef, Model], using: str
) -> Answers:
    """Whether conditions hold: one statement for those of one entity that are asked in one zone."""
    alike: dict[tuple[EntityRef, str], list[Asked]] = defaultdict(list)
    for key, (_guard, task) in asked.items():
        if key[0] in there:
            alike[key[0], str(zone_of(registry.task(task.task_key)[0], None))].append(key)
    said: Answers = dict.fromkeys(asked)
    for (ref, _zone), keys in alike.items():
        entity, task = there[ref], asked[keys[0]][1]
        found = _true_together([asked[key][0] for key in keys], task, entity, using)
        if found is None:  # One of them cannot be asked: which?
            found = [
                bool(one[0]) if (one := _true_together([asked[key][0]], task, entity, using)) else None for key in keys
            ]
        said |= dict(zip(keys, found, strict=True))
    return said


def _true_together(guards: Sequence[Q], task: ScheduledTask, entity: Model, using: str) -> list[bool | None] | None:
    """Whether each of these conditions holds of an entity; None: the statement failed."""
    model: Any = model_of(task.entity_ref.label)
    caught: list[Exception] = []
    with catching(caught), _as_at_a_worker(guards[0], task, entity), _undone(using):
        rows = model._base_manager.using(using).filter(pk=entity.pk)
        found = rows.values_list(*(Exists(rows.filter(guard)) for guard in guards)).first()
        return [False] * len(guards) if found is None else [bool(each) for each in found]
    return None


@contextmanager
def _undone(using: str) -> Iterator[None]:
    """Let what fails leave a transaction of the request's as it was. By itself, a statement needs none."""
    if connections[using].in_atomic_block:
        with transaction.atomic(using=using):
            yield
    else:
        yield


def is_true(guard: Any, task: ScheduledTask, entity: Model | None, sandbox: Sandbox) -> bool | None:
    """Whether a guard holds; None: it raised, or the entity is not there. Nothing that it writes stays."""
    caught: list[Exception] = []
    if entity is not None:
        with catching(caught), _as_at_a_worker(guard, task, entity), sandbox.one():
            return bool(guard(copy(entity)))  # What one does to it, another does not see.
    return None


@contextmanager
def _as_at_a_worker(guard: Any, task: ScheduledTask, entity: Model) -> Iterator[None]:
    """Let zone and language be those that the guard has there, and not those of who looks at the page."""
    definition, _declared = registry.task(task.task_key)
    whose = None if isinstance(guard, Q) else entity
    language = language_of(definition, whose) or settings.LANGUAGE_CODE
    with timezone.override(zone_of(definition, whose)), translation.override(language):
        yield


def _in_words(answers: Sequence[tuple[str, str, bool | None]], *, is_held: bool) -> str:
    """``answers``: of each guard its words, its option, and whether it holds."""
    for said, option, is_true in answers:
        named = {"guard": said}
        if is_true is None:
            return _("as things stand, nobody can say whether it runs: %(guard)s cannot be asked") % named
        if is_true is not (option == "only_if"):
            without = _("without the hold, it would be cancelled: %(guard)s")
            return (without if is_held else _("as things stand, it would be cancelled: %(guard)s")) % named
    listed = ", ".join(said for said, _option, _is_true in answers)
    without = _("without the hold, it would run: %(guards)s")
    return (without if is_held else _("as things stand, it would run: %(guards)s")) % {"guards": listed}

"""Machines: find the runs to move, and move them. All moves are made here: one guarded write for any number, with entries."""

from __future__ import annotations

import json
from collections import defaultdict
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any
from uuid import UUID

from django.db import IntegrityError, connections

from timeline.dialects import as_array, dialect_of
from timeline.exceptions import MoveNotAllowed
from timeline.features.machines.edges import mind_refusal
from timeline.features.machines.mirror import Said, mirror_states
from timeline.ids import uuid7s
from timeline.models import EntityRef, ScheduledTask, TimelineRun
from timeline.payloads import clip
from timeline.signals import Entered
from timeline.store.changes import MAX_ACTOR
from timeline.store.insert import fields_of
from timeline.store.locks import lock_of, missing
from timeline.store.multi_query import takes_texts
from timeline.store.returned_rows import as_models, as_tasks, cursor_for_rows, row_of_json, rows_of
from timeline.store.signal_dispatch import is_entering_heard, tell_entered
from timeline.store.transactions import atomic, check_level, has_to_ask

_NAMES = tuple(fields_of(TimelineRun))
_COLUMNS = ", ".join(f"run.{field.column}" for field in fields_of(TimelineRun).values())


@dataclass(frozen=True, slots=True)
class NewState:
    """
    The state that a run is to come to. It does only if it still has the state and number of moves of ``run``; ``target`` may
    be its present state, which it enters again. ``back``: where BACK leads after the move.
    """

    run: TimelineRun
    target: str
    back: str
    cause_id: UUID | None


def runs_to_move(refs: Iterable[EntityRef], machines: Mapping[str, str | None], *, using: str) -> list[TimelineRun]:
    """Lock the open runs of machines and locked entities, in order of ids. ``machines``: name → key of its runs; None: any."""
    return _asked("runs_to_move", refs, machines, using)


def lock_to_move(
    ref: EntityRef, machines: Iterable[str], others: Iterable[str] | None, *, using: str
) -> list[tuple[TimelineRun, list[ScheduledTask]]]:
    """
    Lock and give the open runs of machines and one locked entity, each with the rows for planning after its move: in the lock
    order, in one trip. Only if ``can_read_ahead``. ``others``: keys of tasks not bound to a state; None: no tasks are read.
    """
    with connections[using].cursor() as cursor:
        cursor.execute(dialect_of(using).sql("to_move"), _to_move(ref, machines, others))
        return _with_rows(cursor.fetchall(), using)


def lock_entity_to_move(
    ref: EntityRef, machines: Iterable[str], others: Iterable[str] | None, *, using: str
) -> tuple[datetime, list[tuple[TimelineRun, list[ScheduledTask]]]] | None:
    """
    Lock an entity as well as what ``lock_to_move`` does, in one trip. Gives the database's clock at the lock, and the runs.
    None: the entity cannot be locked so.

    Raises:
        WrongEntity: if it is not in this database.
        WrongIsolation: if the caller's transaction may not see what is committed now.
    """
    ask = has_to_ask(using)
    if (lock := lock_of(ref, using, clock=True, level=ask)) is None:
        return None
    parameters = {**_to_move(ref, machines, others), "keys": lock[1]}
    told, found = _in_one_text(lock[0], parameters, using) or _in_one_statement(lock[0], parameters, using)
    if told is None:
        raise missing(ref, using)
    if ask:
        check_level(told[2], using=using)
    return told[1].astimezone(UTC), _with_rows(found, using)


# The key of the entity that was locked, the time, and the isolation level if that was asked; None: the entity does not exist.
# And the rows for ``_with_rows``.
_Found = tuple[Sequence[Any] | None, Sequence[Sequence[str | None]]]


def _in_one_text(lock: str, parameters: Mapping[str, Any], using: str) -> _Found | None:
    """Ask by two statements in one text. The database plans these faster than one. None: see ``_in_one_statement``."""
    if not takes_texts(connections[using]):
        return None
    with connections[using].cursor() as cursor:
        cursor.execute(f"{lock};\n{dialect_of(using).sql('to_move')}", parameters)
        told = cursor.fetchone()
        if not cursor.nextset():
            return None  # A wrapper of the host's has gone on to the second result, and the first one is lost.
        return told, cursor.fetchall()


def _in_one_statement(lock: str, parameters: Mapping[str, Any], using: str) -> _Found:
    with connections[using].cursor() as cursor:
        cursor.execute(dialect_of(using).sql("lock_to_move").replace("{lock}", lock), parameters)
        found = cursor.fetchall()
    return (found[0][:-2] if found else None), [row[-2:] for row in found]


def _to_move(ref: EntityRef, machines: Iterable[str], others: Iterable[str] | None) -> dict[str, Any]:
    return {
        "label": ref.label,
        "id": ref.id,
        "timelines": as_array(sorted(machines)),
        "others": None if others is None else as_array(sorted(others)),
    }


def _with_rows(found: Iterable[Sequence[str | None]], using: str) -> list[tuple[TimelineRun, list[ScheduledTask]]]:
    """Make runs of the rows that the function of the database returns, each with its tasks."""
    said = list(found)
    runs = as_models((row_of_json(run, TimelineRun) for run, _task in said if run), TimelineRun, using)
    tasks: dict[UUID | None, list[ScheduledTask]] = defaultdict(list)
    for task in as_tasks((row_of_json(task, ScheduledTask) for _run, task in said if task), using):
        tasks[task.run_id].append(task)
    return [(run, tasks[run.id]) for run in runs]


def can_read_ahead(using: str) -> bool:
    """Whether one statement can lock runs, and then their tasks: on PostgreSQL, by a function of the database."""
    return dialect_of(using).has_trigger_functions


def last_moved(refs: Iterable[EntityRef], machines: Mapping[str, str | None], *, using: str) -> list[TimelineRun]:
    """The run that has ended last, for each of some machines and entities. Arguments as for ``runs_to_move``."""
    return _asked("last_moved", refs, machines, using)


def _asked(verb: str, refs: Iterable[EntityRef], machines: Mapping[str, str | None], using: str) -> list[TimelineRun]:
    connection, dialect, names = connections[using], dialect_of(using), sorted(machines)
    entities = sorted(set(refs))
    asked: dict[str, Any] = dialect.entities_of(entities)
    if dialect.has_arrays:
        asked |= {"timelines": names, "keys": [machines[name] for name in names]}
        if verb == "runs_to_move" and len(entities) == 1 and set(machines.values()) == {None}:
            [(label, key)], verb = entities, "runs_to_move_of_one"
            asked |= {"label": label, "id": key}
    else:
        asked |= {"machines": json.dumps([(name, machines[name]) for name in names])}
    with cursor_for_rows(connection) as cursor:
        cursor.execute(dialect.sql(verb).replace("{columns}", _COLUMNS), asked)
        return as_models(rows_of(cursor, connection, _NAMES, model=TimelineRun).values(), TimelineRun, using)


def move_runs(
    new_states: Sequence[NewState], *, event: str, actor: str, now: datetime, using: str
) -> list[TimelineRun]:
    """
    Move runs and write their entries; gives them as they are now. The caller has locked entities and runs, and looked in the
    table. ``MoveNotAllowed``: a run has changed since it was read; the caller undoes what was written.
    """
    if not new_states:
        return []
    going = Going(new_states, event=event, actor=actor, now=now, using=using)
    with atomic(using=using, savepoint=False), going.minding():
        send_moves(going, using=using)()
    return going.come()


def send_moves(going: Going, *, using: str) -> Callable[[], None]:
    """Write moves, or send them. Call the result to check that all have moved (``MoveNotAllowed``) and to send signals."""
    dialect, cursor = dialect_of(using), connections[using].cursor()
    cursor.execute(dialect.sql("move_runs"), going.parameters)

    def done() -> None:
        with cursor:
            going.check({UUID(str(key)) for [key] in cursor.fetchall()})
            if not dialect.has_set_statements:
                cursor.execute(dialect.sql("enter_runs"), going.parameters)
        going.tell()

    return done


class Going:
    """Decided moves: parameters of the statement, and what follows. Columns are read here: signals have the old state."""

    def __init__(self, new_states: Sequence[NewState], *, event: str, actor: str, now: datetime, using: str) -> None:
        connection, ids = connections[using], uuid7s(len(new_states))
        self._new, self._event, self._now, self._using = new_states, event, now, using
        self._before = [(new.run.state, new.run.state_at, new.run.back, new.run.moves) for new in new_states]
        self._entries = []
        if is_entering_heard():
            self._entries = [_entered(new, key, event, now) for new, key in zip(new_states, ids, strict=True)]
        self.parameters: dict[str, Any] = {
            "moves": json.dumps([_as_data(new, key) for new, key in zip(new_states, ids, strict=True)]),
            "at": connection.ops.adapt_datetimefield_value(now),
            "event": event,
            "actor": clip(actor, MAX_ACTOR),
        }
        if dialect_of(using).has_arrays:
            self.parameters["ids"] = as_array([new.run.id.hex for new in new_states])

    @contextmanager
    def minding(self) -> Iterator[None]:
        """Handle the error by which the database refuses a move."""
        try:
            yield
        except IntegrityError as error:
            mind_refusal(error, using=self._using)
            raise

    def check(self, moved: Collection[UUID]) -> None:
        """Raise ``MoveNotAllowed`` unless all have moved."""
        for new, (before, *_rest) in zip(self._new, self._before, strict=True):
            if new.run.id not in moved:
                run = new.run
                raise MoveNotAllowed(run.timeline, str(run.entity_ref), before, self._event, [], expected=before)

    @property
    def shown(self) -> list[Said]:
        """The states to write on models of the host's that show them."""
        return [(new.run.timeline, new.run.entity_ref, new.run.key, new.target) for new in self._new]

    def tell(self, *, is_shown: bool = False) -> None:
        """Write the states on models that show them, unless that is done already, and send the signals."""
        if not is_shown:
            mirror_states(self.shown, using=self._using)
        tell_entered(self._entries, using=self._using)

    @property
    def runs(self) -> list[TimelineRun]:
        """The runs that move, in the order given."""
        return [new.run for new in self._new]

    def come(self) -> list[TimelineRun]:
        """Set the runs to the states after their moves."""
        for new in self._new:
            run = new.run
            run.state, run.state_at, run.back, run.moves = new.target, self._now, new.back, run.moves + 1
        return self.runs

    def stay(self) -> None:
        """Set the runs back to the states before their moves, since nothing was written."""
        for run, before in zip(self.runs, self._before, strict=True):
            run.state, run.state_at, run.back, run.moves = before


def _entered(new: NewState, key: UUID, event: str, now: datetime) -> Entered:
    run = new.run
    return Entered(
        entry_id=key,
        run_id=run.pk,
        timeline=run.timeline,
        key=run.key,
        entity_label=run.entity_label,
        entity_id=run.entity_id,
        seq=run.moves + 1,
        from_state=run.state,
        to_state=new.target,
        event=event,
        at=now,
    )


def _as_data(new: NewState, key: UUID) -> dict[str, Any]:
    return {
        "id": key.hex,
        "run": new.run.id.hex,
        "seq": new.run.moves + 1,
        "from_state": new.run.state,
        "to_state": new.target,
        "back": new.back,
        "cause": None if new.cause_id is None else new.cause_id.hex,
    }

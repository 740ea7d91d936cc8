"""Have each implementation that writes moves make them; and what rows must have for that."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import fields, replace
from datetime import timedelta
from typing import Any, Final
from uuid import UUID, uuid4

from tests.machines import placed
from tests.store.checking import Made
from tests.store.moves import NOW, TASK_KEY
from tests.store.rules import SENT, Move
from tests.testapp.models import Order
from timeline.conf import get_settings
from timeline.dialects import dialect_of
from timeline.dispatch import claim as dispatch_claim
from timeline.dispatch import poll, rescue, worker_signs
from timeline.engine import attempts
from timeline.features.machines import one_trip, store
from timeline.lifecycle import LEASED, State
from timeline.models import ScheduledTask, Sign, TimelineRun
from timeline.operations import leave
from timeline.planning import Times
from timeline.store import transition
from timeline.store.floors import BEGINNING
from timeline.timing import EARLIEST, LATEST

Tasks = Sequence[ScheduledTask]
Moves = Sequence[Move | None]
Row = Mapping[str, Any]

TOKEN: Final = UUID("00000000-0000-4000-8000-000000000001")
ENTITY: Final = {"entity_label": "testapp.order", "entity_id": "of the ways"}
FREE: Final = {"limit_key": "", "slot": 0}
FAR: Final = LATEST - timedelta(days=1)


def write_of(task: ScheduledTask, move: Move) -> transition.Write:
    """The move as the writer takes it."""
    given = {field.name: getattr(move, field.name) for field in fields(move) if field.name not in ("sent", "logged")}
    if move.times is not None:
        given["times"] = Times(**{field.name: getattr(move.times, field.name) for field in fields(move.times)})
    return transition.Write(task=task, **given)


def apply(tasks: Tasks, moves: Moves, _common: Move, *, wait: bool) -> Made:
    """The writer: given rows, and a move of its own for each."""
    writes = [write_of(task, move) for task, move in zip(tasks, moves, strict=True) if move is not None]
    done = transition.apply(writes, now=NOW, using="default", wait=wait)
    return Made(moves, len(done), done)


def stage(_tasks: Tasks, moves: Moves, _common: Move) -> Made:
    """What waits and is due."""
    return Made(moves, poll.stage(now=NOW, using="default"))


def claim(tasks: Tasks, moves: Moves, _common: Move) -> Made:
    """What is available. The claim chooses its token."""
    batches = dispatch_claim.claim(now=NOW, using="default")
    tokens = {task_id: batch.token for batch in batches for task_id in batch.task_ids}
    lease = get_settings().resend_after
    made = [
        move and replace(move, claim_token=tokens.get(task.pk), lease=lease)
        for task, move in zip(tasks, moves, strict=True)
    ]
    return Made(made, len(tokens))


def begin(tasks: Tasks, moves: Moves, common: Move) -> Made:
    """What may be started of given rows."""
    worker = common.worker or ""
    begun = attempts.begin_attempts([task.pk for task in tasks], token=TOKEN, worker=worker, now=NOW, using="default")
    return Made(moves, len(begun), [attempt.task for attempt in begun])


def begin_group(tasks: Tasks, moves: Moves, common: Move) -> Made:
    """What is available of a kind."""
    asked = {"priority": 0, "most": len(tasks), "since": BEGINNING, "worker": common.worker or ""}
    begun = attempts.begin_group(TASK_KEY, **asked, now=NOW, using="default")
    return Made(moves, len(begun), [attempt.task for attempt in begun])


def call_off(tasks: Tasks, moves: Moves, common: Move, *, whose: str) -> Made:
    """What is open of an entity, of one with several names, or of runs."""
    label, key = ENTITY.values()
    runs = [task.run_id.hex for task in tasks if task.run_id]
    named = {
        "entity": {"label": label, "entity": key},
        "kin": dialect_of("default").entities_of([(label, key), ("testapp.parcel", "1")]),
        "runs": {"runs": dialect_of("default").list_of(runs)},
    }
    done = leave.call_off(whose, named[whose], reason=common.reason, now=NOW, using="default")
    return Made(moves, len(done), done)


def move_at_once(tasks: Tasks, moves: Moves, _common: Move) -> Made:
    """What follows the move of a machine, in the one statement that writes all of it."""
    order = Order.objects.create()
    run = placed(order, "here")
    event = {
        "id": uuid4(),
        "name": "stays",
        "key": "",
        "payload": {},
        "actor": "",
        "occurred_at": NOW,
        "recorded_at": NOW,
    }
    going = store.Going([store.NewState(run, "here", "", None)], event="stays", actor="", now=NOW, using="default")
    writes = [write_of(task, move) for task, move in zip(tasks, moves, strict=True) if move is not None]
    about = {"entity_label": run.entity_label, "entity_id": run.entity_id}
    one_trip.move_at_once(going, event | about, writes, [], now=NOW, using="default")
    return Made(moves, len(writes), [write.task for write in writes])


def hand_back(tasks: Tasks, moves: Moves, _common: Move) -> Made:
    """What is claimed, and has not been started."""
    batch = dispatch_claim.ClaimedBatch(TASK_KEY, "default", TOKEN, [task.pk for task in tasks])
    return Made(moves, dispatch_claim.hand_back([batch], using="default"))


def extend(tasks: Tasks, moves: Moves, _common: Move) -> Made:
    """What a worker runs."""
    return Made(moves, worker_signs.extend_leases({task.pk: task.attempt for task in tasks}, using="default"))


def let_go(_tasks: Tasks, moves: Moves, _common: Move) -> Made:
    """What a worker runs that gives no sign any more. It does not say how many they are."""
    Sign.objects.create(worker="silent", seen_at=EARLIEST, missed_at=EARLIEST)
    worker_signs.let_go_of_the_silent(just_waited=False, using="default")
    return Made(moves, sum(move is not None for move in moves))


def resend(tasks: Tasks, moves: Moves, _common: Move) -> Made:
    """What is claimed and was not started in time. What was never sent is not sent again: that needs no entry."""
    wait = get_settings().resend_after
    again = Move(lease=2 * wait, evidence={"resend": 1})
    first = Move(lease=wait, sent=SENT, logged=False)
    made = [move and (again if task.sent_at else first) for task, move in zip(tasks, moves, strict=True)]
    return Made(made, len(rescue.rescue(now=NOW, using="default").resend))


def as_it_is(_row: Row, _count: int) -> dict[str, Any]:
    """Any row will do."""
    return {}


def due(row: Row, _count: int) -> dict[str, Any]:
    """Its time has come."""
    return {"scheduled_at": min(row["scheduled_at"], NOW)}


def ready(_row: Row, count: int) -> dict[str, Any]:
    """All are as urgent, and need no place; of several none was tried before."""
    return {"priority": 0, **FREE} | ({"attempt": 0} if count > 1 else {})


def startable(row: Row, count: int) -> dict[str, Any]:
    """Due, with the claim's token where it is claimed; of several none was tried before."""
    token = {"claim_token": TOKEN} if row["state"] == State.PENDING else FREE
    return due(row, count) | token | ({"attempt": 0} if count > 1 else {})


def without_place(_row: Row, _count: int) -> dict[str, Any]:
    """It has no place of a limit."""
    return FREE


def of_the_entity(_row: Row, _count: int) -> dict[str, Any]:
    """Ad hoc, about the entity."""
    return ENTITY


def of_a_run(_row: Row, _count: int) -> dict[str, Any]:
    """In a run of its own."""
    run = TimelineRun.objects.create(timeline="trial", key=str(uuid4()), started_at=NOW, **ENTITY)
    return {"run_id": run.pk, **ENTITY}


def of_the_claim(_row: Row, _count: int) -> dict[str, Any]:
    """With the claim's token, whatever its state."""
    return {"claim_token": TOKEN}


def of_the_silent(row: Row, _count: int) -> dict[str, Any]:
    """The silent worker's, whatever its state; its lease lasts."""
    return {"worker": "silent"} | ({"lease_expires_at": FAR} if row["state"] in LEASED else {})


def overdue(row: Row, _count: int) -> dict[str, Any]:
    """Its lease has run out if it is claimed; that of what a worker runs lasts."""
    if row["state"] not in LEASED:
        return {}
    return {"lease_expires_at": EARLIEST if row["state"] == State.PENDING else FAR}

"""The operations that the sweep kills: what is there before each, and what it does."""

from __future__ import annotations

from collections.abc import Callable
from copy import copy
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import Any

from django.conf import settings
from django.db import transaction
from django.test import override_settings

from tests.faults.world import START, Box, Clock, let_leases_run_out, new_orders, restart
from tests.testapp.models import Order
from timeline import Timeline, after, daily, task
from timeline.dispatch.claim import claim, hand_back
from timeline.dispatch.poll import dispatch, stage
from timeline.dispatch.rescue import rescue
from timeline.dispatch.worker_signs import extend_leases, keep_paces
from timeline.engine.groups import begin_given, run
from timeline.features.limits.claims import begin_limited, claim_limited
from timeline.features.limits.places import limited_kinds
from timeline.features.maintenance.adopt import adopt, clear
from timeline.features.maintenance.prune import prune
from timeline.features.recurring.verbs import NextBeginnings, recur
from timeline.lifecycle import Reason
from timeline.models import Event, ScheduledTask, StepRecord, TimelineRun, Wake
from timeline.operations.sets import PORTION
from timeline.shortcuts import (
    approve,
    cancel,
    cancel_all,
    emit,
    emit_many,
    enroll,
    go_on,
    leave,
    move,
    open_limit,
    reconcile,
    redrive,
    relabel,
    run_now,
    schedule,
    start,
    start_many,
    step_happened,
)
from timeline.testing import only_timelines

DAY = timedelta(days=1)
WHY = "because"


@dataclass
class Scene:
    """What an operation finds, and what it was told of it before."""

    clock: Clock
    orders: list[Order]
    told: dict[str, Any] = field(default_factory=dict)

    def again(self) -> Scene:
        """The same, for another play."""
        return Scene(copy(self.clock), [copy(order) for order in self.orders], dict(self.told))

    @property
    def order(self) -> Order:
        """The first one, as the database has it."""
        return Order.objects.get(pk=self.orders[0].pk)

    def task(self, key: str, **conditions: Any) -> ScheduledTask:
        """The latest of a kind, of the first order."""
        whose = {"entity_id": str(self.orders[0].pk), **conditions}
        return ScheduledTask.objects.filter(task_key=f"world.{key}", **whose).latest("revision")

    def due(self, key: str) -> None:
        """Claim all that is due nine days later, and take what was sent of one kind."""
        self.clock.now += timedelta(days=9)
        stage(now=self.clock.now, using="default")
        sent = self.told["sent"] = claim(now=self.clock.now, using="default")
        self.told["batches"] = [batch for batch in sent if batch.task_key == f"world.{key}"]
        assert self.told["batches"]

    def begin(self) -> None:
        """Begin what was claimed, and never end it."""
        for batch in self.told["batches"]:
            for _attempts in begin_given(
                task_ids=batch.task_ids, token=batch.token, clock=self.clock, using="default", worker="gone"
            ):
                pass

    def run(self) -> None:
        """Run what was claimed."""
        for batch in self.told["batches"]:
            run(task_ids=batch.task_ids, token=batch.token, clock=self.clock, using="default", worker="w")


Act = Callable[[Scene], object]


@dataclass(frozen=True)
class Operation:
    """
    One operation.

    Args:
        act: Does it.
        arrange: Makes what must be there before.
        whole: Whether it is one transaction: it has happened, or nothing of it.
        again: Whether who asked asks again if it did not happen.
        orders: How many there are.
        to_the_end: Whether all that is left is run afterwards.
        by_pipeline: Whether it is another operation only where statements are sent ahead: on PostgreSQL.
    """

    act: Act
    arrange: Act = lambda _scene: None
    whole: bool = True
    again: bool = True
    orders: int = 2
    to_the_end: bool = True
    by_pipeline: bool = False


def placed(scene: Scene) -> None:
    emit_many("order.placed", scene.orders, key="placed")


def of_kind(key: str) -> Act:
    def arrange(scene: Scene) -> None:
        placed(scene)
        scene.due(key)

    return arrange


def mail_due(scene: Scene) -> None:
    placed(scene)
    scene.due("ship")
    scene.told["batches"] = scene.told["sent"]
    scene.run()
    scene.due("mail")


def extra(scene: Scene) -> None:
    schedule("world.extra", scene.order, at=START + DAY, key="extra")


def extra_run(scene: Scene) -> None:
    extra(scene)
    restart(scene.clock)


def finished(scene: Scene) -> None:
    """Runs all of whose tasks have ended."""
    placed(scene)
    restart(scene.clock)


def save(scene: Scene) -> None:
    order = scene.order
    order.ships_at = START + 3 * DAY
    with transaction.atomic():
        order.save()


def delete(scene: Scene) -> None:
    Order.objects.filter(pk=scene.orders[0].pk).first().delete()


def create(scene: Scene) -> None:
    with transaction.atomic():
        Order.objects.create(ships_at=START)


def lost(scene: Scene) -> None:
    """Attempts whose worker is gone, and messages that nobody took."""
    placed(scene)
    scene.due("ship")
    scene.begin()
    let_leases_run_out()


def lost_for_good(scene: Scene) -> None:
    """The last attempt that was left."""
    lost(scene)
    rescue(now=scene.clock.now, using="default")
    stage(now=scene.clock.now, using="default")
    scene.told["batches"] = claim(now=scene.clock.now, using="default")
    scene.begin()
    let_leases_run_out()


def rescue_for_good(scene: Scene) -> None:
    with override_settings(TIMELINE={**settings.TIMELINE, "MAX_LOST": 1}):
        rescue(now=scene.clock.now, using="default")


def relabelled(scene: Scene) -> None:
    placed(scene)
    for model in (ScheduledTask, TimelineRun, Event):
        model.objects.update(entity_label="testapp.basket")


def stepped(scene: Scene) -> None:
    start("stepped", scene.order)
    scene.clock.now += timedelta(days=9)
    stage(now=scene.clock.now, using="default")
    scene.told["sent"] = claim(now=scene.clock.now, using="default")


def steps_of(key: str) -> Act:
    def arrange(scene: Scene) -> None:
        stepped(scene)
        scene.told["batches"] = [batch for batch in scene.told["sent"] if batch.task_key == f"stepped.{key}"]
        assert scene.told["batches"]

    return arrange


def settling(scene: Scene) -> None:
    """A task is due that takes two loops over three orders."""
    new_orders(2)
    schedule("stepped.settle", scene.order, at=START)
    scene.clock.now += timedelta(days=9)
    stage(now=scene.clock.now, using="default")
    scene.told["batches"] = claim(now=scene.clock.now, using="default")


def fanning(scene: Scene) -> None:
    start("fanning", scene.order)
    scene.clock.now += timedelta(days=9)
    stage(now=scene.clock.now, using="default")
    scene.told["batches"] = claim(now=scene.clock.now, using="default")


def fanned_out(scene: Scene) -> None:
    """Both parts are claimed, to be run one after the other."""
    fanning(scene)
    scene.run()
    scene.told["batches"] = claim(now=scene.clock.now, using="default")


def signing_in(scene: Scene) -> None:
    """A task is due that asks for a code and waits for it."""
    start("waiting", scene.order)
    scene.told["batches"] = claim(now=scene.clock.now, using="default")


def waiting(scene: Scene) -> None:
    """It waits."""
    signing_in(scene)
    scene.run()
    assert ScheduledTask.objects.get(task_key="waiting.sign_in").reason_code == "waiting"


def code_given(scene: Scene) -> None:
    scene.clock.now += timedelta(minutes=1)
    emit("code.given", scene.order, key="k")


def waked(scene: Scene) -> None:
    waiting(scene)
    code_given(scene)
    scene.told["batches"] = claim(now=scene.clock.now, using="default")


def run_out(scene: Scene) -> None:
    """It waited in vain."""
    waiting(scene)
    scene.clock.now += timedelta(hours=2)
    stage(now=scene.clock.now, using="default")
    scene.told["batches"] = claim(now=scene.clock.now, using="default")


def refund() -> ScheduledTask:
    return ScheduledTask.objects.get(task_key="waiting.refund")


def asking(scene: Scene) -> None:
    """A task is due that waits for a code of another order."""
    start("elsewhere", scene.orders[1])
    scene.told["batches"] = claim(now=scene.clock.now, using="default")


def waiting_elsewhere(scene: Scene) -> None:
    """It waits."""
    asking(scene)
    scene.run()
    assert ScheduledTask.objects.get(task_key="elsewhere.ask").awaits_other


def noted(scene: Scene) -> None:
    """The code came, and a note is there for polls."""
    waiting_elsewhere(scene)
    code_given(scene)
    assert Wake.objects.exists()


def nudging(scene: Scene) -> None:
    """The first of a series is due."""
    start("repeated", scene.order)
    scene.clock.now += timedelta(days=21)
    stage(now=scene.clock.now, using="default")
    scene.told["batches"] = claim(now=scene.clock.now, using="default")


def doomed(scene: Scene) -> None:
    start_many("doomed", scene.orders)
    scene.clock.now += timedelta(days=9)
    stage(now=scene.clock.now, using="default")
    scene.told["batches"] = claim(now=scene.clock.now, using="default")


def crossing(scene: Scene) -> None:
    """Lights that are red."""
    emit_many("light.made", scene.orders, key="made")


def green(scene: Scene) -> None:
    crossing(scene)
    emit_many("light.go", scene.orders, key="go")


def switching(key: str, *, after_days: int) -> Act:
    """A task is due that moves its light, where others have been run that come before it."""

    def arrange(scene: Scene) -> None:
        crossing(scene)
        for _ in range(after_days):
            scene.clock.now += DAY
            stage(now=scene.clock.now, using="default")
            scene.told["batches"] = claim(now=scene.clock.now, using="default")
            if scene.told["batches"][0].task_key != f"crossing.{key}":
                scene.run()

    return arrange


def doors(scene: Scene) -> None:
    """Doors that are shut, each with its timer."""
    emit_many("door.made", scene.orders, key="made")


def knocked(scene: Scene) -> None:
    """Each is to be opened, and jams."""
    doors(scene)
    emit_many("door.knocked", scene.orders, key="knocked")
    scene.told["batches"] = claim(now=scene.clock.now, using="default")


def jammed(scene: Scene) -> None:
    """Each has jammed, and is to be tried again."""
    knocked(scene)
    scene.run()
    due_in(scene, timedelta(hours=2))


def late(scene: Scene) -> None:
    """Nobody came for a month."""
    doors(scene)
    due_in(scene, timedelta(days=31))


def due_in(scene: Scene, length: timedelta) -> None:
    scene.clock.now += length
    stage(now=scene.clock.now, using="default")
    scene.told["batches"] = claim(now=scene.clock.now, using="default")


def in_doubt(scene: Scene) -> None:
    """Of a step nobody knows whether it happened."""
    schedule("stepped.pay", scene.order, at=START)
    for _ in range(2):
        scene.clock.now += timedelta(days=9)
        stage(now=scene.clock.now, using="default")
        scene.told["batches"] = claim(now=scene.clock.now, using="default")
        scene.run()
    assert paying().reason_code == "in_doubt"


def of_other_code(scene: Scene) -> None:
    """What is done was done by code that was otherwise."""
    in_doubt(scene)
    StepRecord.objects.update(kind="done", code="other", digest="other")
    run_now(paying(), reason=WHY)
    scene.told["batches"] = claim(now=scene.clock.now, using="default")
    scene.run()
    assert paying().reason_code == "definition"


def narrow(scene: Scene) -> None:
    """Two calls of which one may be under way, and one settlement, are due."""
    for key in ("narrow.call", "narrow.settle"):
        for order in scene.orders[: 2 if key == "narrow.call" else 1]:
            schedule(key, order, at=START)


def claimed(scene: Scene) -> None:
    narrow(scene)
    scene.told["batches"] = claim_limited(now=scene.clock.now, using="default")


def half_settled(scene: Scene) -> None:
    """The settlement is half done, and due again."""
    claimed(scene)
    scene.run()
    scene.clock.now += timedelta(days=2)
    stage(now=scene.clock.now, using="default")


def closed(scene: Scene) -> None:
    """A report is discarded, and keeps its limit closed."""
    schedule("narrow.report", scene.order, at=START)
    claimed(scene)
    scene.run()
    assert ScheduledTask.objects.closing().get().task_key == "narrow.report"


def begin_calls(scene: Scene) -> None:
    for kind in limited_kinds(["narrow.call"], using="default"):
        begin_limited(kind, most=9, worker="gone", now=scene.clock.now, using="default")


def of_narrow(scene: Scene, name: str) -> ScheduledTask:
    rows = ScheduledTask.objects.filter(task_key=f"narrow.{name}", entity_id=str(scene.orders[0].pk))
    return rows.latest("revision")


class Nightly(Timeline):
    """Comes by the clock; known only where it is asked for, as there is always more of it."""

    name = "nightly"
    starts_on = daily("02:00", zone="UTC", overlap="allow", catch_up="latest")

    @task(after())
    def first(self) -> None: ...

    @task(after(hours=1))
    def second(self) -> None: ...


class Later(Nightly):
    """The same at another time."""

    name = "nightly"
    starts_on = daily("03:00", zone="UTC", overlap="allow", catch_up="latest")


def recurring(_scene: Scene, now: datetime, timeline: type[Timeline] = Nightly) -> None:
    """Poll by a process that remembers nothing."""
    with only_timelines(timeline):
        recur(NextBeginnings(), now=now, using="default")


def paying() -> ScheduledTask:
    return ScheduledTask.objects.get(task_key="stepped.pay")


OPERATIONS = {
    "emit, starts": Operation(lambda scene: emit("order.placed", scene.order, key="k")),
    "emit, ends": Operation(lambda scene: emit("order.closed", scene.order, key="k"), placed),
    "emit_many": Operation(lambda scene: emit_many("order.placed", scene.orders, key="k", batch_size=1), whole=False),
    "emit_many, ends": Operation(lambda scene: emit_many("order.closed", scene.orders, key="k"), placed),
    "emit_many, in portions": Operation(
        lambda scene: emit_many("order.placed", scene.orders, key="k"), orders=210, to_the_end=False
    ),
    "start": Operation(lambda scene: start("world", scene.order)),
    "start_many": Operation(lambda scene: start_many("world", scene.orders)),
    "enroll": Operation(lambda scene: enroll("world", Order.objects.all())),
    "leave": Operation(lambda scene: leave("world", scene.order, reason=WHY), placed),
    "schedule": Operation(lambda scene: schedule("world.extra", scene.order, at=START + DAY)),
    "schedule, with a key": Operation(lambda scene: schedule("world.extra", scene.order, at=START + DAY, key="k")),
    "move": Operation(lambda scene: move(scene.task("ship"), at=START + 2 * DAY, reason=WHY), placed),
    "move, due": Operation(
        lambda scene: move(scene.task("ship", state="pending"), at=START + 20 * DAY, reason=WHY), of_kind("ship")
    ),
    "cancel": Operation(lambda scene: cancel(scene.task("ship"), reason=WHY), placed),
    "cancel, the last": Operation(lambda scene: cancel(ScheduledTask.objects.all(), reason=WHY), placed),
    "cancel_all": Operation(lambda scene: cancel_all(scene.order, reason=WHY), placed),
    "run_now": Operation(lambda scene: run_now(scene.task("ship"), reason=WHY), placed),
    "redrive": Operation(lambda scene: redrive(scene.task("ship", state="completed"), reason=WHY), finished),
    "redrive, ad hoc": Operation(lambda scene: redrive(scene.task("extra"), reason=WHY), extra_run),
    "reconcile": Operation(
        lambda scene: reconcile(scene.order),
        lambda scene: (placed(scene), Order.objects.update(ships_at=START + 4 * DAY)),
    ),
    "save": Operation(save, placed),
    "create": Operation(create),
    "delete": Operation(delete, lambda scene: (placed(scene), extra(scene))),
    "relabel": Operation(lambda scene: relabel("testapp.basket", "testapp.order"), relabelled),
    "stage": Operation(lambda scene: stage(now=START + 5 * DAY, using="default"), placed, whole=True),
    "claim": Operation(
        lambda scene: claim(now=scene.clock.now, using="default"),
        lambda scene: (placed(scene), stage(now=START + 5 * DAY, using="default")),
    ),
    "hand_back": Operation(lambda scene: hand_back(scene.told["batches"], using="default"), of_kind("ship")),
    "dispatch": Operation(
        lambda scene: dispatch(sender=Box(), now=START + 5 * DAY, using="default"), placed, whole=False, again=False
    ),
    "run, atomic": Operation(Scene.run, of_kind("ship"), whole=False, again=False),
    "run, plain": Operation(Scene.run, mail_due, whole=False, again=False),
    "run, shared": Operation(Scene.run, of_kind("share"), whole=False, again=False),
    "run, bulk": Operation(Scene.run, of_kind("bulk"), whole=False, again=False),
    "run, async": Operation(Scene.run, of_kind("call"), whole=False, again=False),
    "run, ad hoc": Operation(Scene.run, lambda scene: (extra(scene), scene.due("extra")), whole=False, again=False),
    "run, steps": Operation(Scene.run, steps_of("pack"), whole=False, again=False),
    "run, async steps": Operation(Scene.run, steps_of("collect"), whole=False, again=False),
    "run, loops": Operation(Scene.run, settling, whole=False, again=False),
    "run, fans out": Operation(Scene.run, fanning, whole=False, again=False),
    "run, fanned out": Operation(Scene.run, fanned_out, whole=False, again=False),
    "run, rests": Operation(Scene.run, signing_in, whole=False, again=False),
    "run, waked": Operation(Scene.run, waked, whole=False, again=False),
    "run, in vain": Operation(Scene.run, run_out, whole=False, again=False),
    "run, repeats": Operation(Scene.run, nudging, whole=False, again=False),
    "emit, wakes": Operation(lambda scene: emit("code.given", scene.order, key="k"), waiting),
    "run, rests for another": Operation(Scene.run, asking, whole=False, again=False),
    "emit, notes": Operation(lambda scene: emit("code.given", scene.order, key="k"), waiting_elsewhere),
    "stage, noted": Operation(lambda scene: stage(now=scene.clock.now, using="default"), noted),
    "emit, moves": Operation(lambda scene: emit("light.go", scene.order, key="k"), crossing),
    "emit, moves to an end": Operation(lambda scene: emit("light.broken", scene.order, key="k"), green),
    "emit_many, moves": Operation(
        lambda scene: emit_many("light.go", scene.orders, key="go"), crossing, to_the_end=False
    ),
    "run, then": Operation(Scene.run, switching("switch", after_days=1), whole=False, again=False, orders=1),
    "run, then, plain": Operation(Scene.run, switching("look", after_days=2), whole=False, again=False, orders=1),
    "run, then ends": Operation(Scene.run, switching("end", after_days=3), whole=False, again=False, orders=1),
    "emit, timers": Operation(lambda scene: emit("door.knocked", scene.order, key="k"), doors),
    "emit_many, timers": Operation(
        lambda scene: emit_many("door.knocked", scene.orders, key="k"), doors, to_the_end=False
    ),
    "emit_many, timers, ahead": Operation(
        lambda scene: emit_many("door.knocked", scene.orders, key="k"),
        doors,
        orders=PORTION + 1,
        to_the_end=False,
        by_pipeline=True,
    ),
    "run, error answers": Operation(Scene.run, knocked, whole=False, again=False, orders=1),
    "run, timer": Operation(Scene.run, jammed, whole=False, again=False, orders=1),
    "run, timer ends": Operation(Scene.run, late, whole=False, again=False, orders=1),
    "approve": Operation(lambda _scene: approve(refund(), actor="ada"), waiting),
    "discard, alert": Operation(Scene.run, doomed, whole=False, again=False, orders=1),
    "step_happened": Operation(lambda _scene: step_happened(paying(), "transfer", 7, reason=WHY), in_doubt),
    "go_on": Operation(lambda _scene: go_on(paying(), reason=WHY), of_other_code),
    "claim, limited": Operation(
        lambda scene: claim_limited(now=scene.clock.now, using="default"), narrow, whole=False, again=False
    ),
    "begin, limited": Operation(begin_calls, narrow),
    "run, limited": Operation(Scene.run, claimed, whole=False, again=False),
    "move, with a place": Operation(
        lambda scene: move(of_narrow(scene, "settle"), at=START + 20 * DAY, reason=WHY), half_settled
    ),
    "cancel, with a place": Operation(lambda scene: cancel(of_narrow(scene, "call"), reason=WHY), claimed),
    "redrive, closed": Operation(lambda scene: redrive(of_narrow(scene, "report"), reason=WHY), closed),
    "open_limit": Operation(lambda _scene: open_limit("report", reason=WHY), closed),
    "rescue": Operation(lambda scene: rescue(now=scene.clock.now, using="default"), lost, whole=False, again=False),
    "rescue, for good": Operation(rescue_for_good, lost_for_good, whole=False),
    "extend": Operation(
        lambda scene: extend_leases(
            {pk: 1 for batch in scene.told["batches"] for pk in batch.task_ids}, using="default"
        ),
        of_kind("ship"),
    ),
    "prune": Operation(
        lambda scene: prune(ended_before=START + 90 * DAY, using="default"),
        lambda scene: (extra_run(scene), finished(scene)),
    ),
    "clear": Operation(
        lambda scene: clear(reason=Reason.operator(WHY), now=scene.clock.now, using="default"),
        lambda scene: (placed(scene), extra(scene)),
        whole=False,
    ),
    "recur": Operation(lambda scene: recurring(scene, START), whole=True, to_the_end=False),
    "recur, after days": Operation(
        lambda scene: recurring(scene, START + 4 * DAY),
        lambda scene: recurring(scene, START),
        whole=True,
        to_the_end=False,
    ),
    "recur, otherwise": Operation(
        lambda scene: recurring(scene, START, Later),
        lambda scene: recurring(scene, START),
        whole=True,
        to_the_end=False,
    ),
    "adopt": Operation(lambda scene: adopt(now=START, using="default"), placed),
    "keep paces": Operation(lambda scene: keep_paces({"world.ship": 0.001}, using="default"), placed),
}


def arranged(operation: Operation) -> Scene:
    """Make what an operation finds. Story time must be told by the scene's clock from then on."""
    scene = Scene(Clock(), new_orders(operation.orders))
    with scene.clock.told():
        operation.arrange(scene)
    return scene

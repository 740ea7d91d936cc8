"""The world of the sweep and of the rule machine: handlers of all kinds, a broker that is a list, and a restart."""

from __future__ import annotations

import asyncio
from collections import Counter
from datetime import UTC, datetime, timedelta
from typing import Any, ClassVar, NamedTuple
from uuid import UUID

from django.db import connection

from tests.faults.doors import check_doors, check_entries
from tests.faults.invariants import violations
from tests.faults.keeping import EMPTY, at_once
from tests.faults.seeing import Row, Seen
from tests.testapp.models import Effect, Order
from timeline import OPEN as ANY
from timeline import (
    STAY,
    Discard,
    Limit,
    Machine,
    Retry,
    RetryAfter,
    Then,
    Timeline,
    after,
    approval,
    at,
    created,
    each_of,
    every,
    step,
    task,
)
from timeline.clocks import story_time
from timeline.dispatch.claim import ClaimedBatch
from timeline.dispatch.poll import dispatch
from timeline.engine.groups import run
from timeline.exceptions import BrokerUnavailable
from timeline.lifecycle import FINAL, OPEN
from timeline.models import Event, Opening, ScheduledTask, StepRecord, TimelineRun
from timeline.timing import EARLIEST, LATEST

START = datetime(2026, 3, 1, 9, 0, tzinfo=UTC)
ENTERED: list[str] = []  # Ids of tasks whose plain handlers were entered, each time: what went to the outside.
CALLED: list[str] = []  # Keys of plain steps that were entered, each time.
FAILING: set[str] = set()  # Task keys whose handlers raise.


class Call(NamedTuple):
    """
    A handler was entered.

    Args:
        task_id, attempt: For which attempt.
        due_at, at: When the task was due, and what the handler was told of the time.
        stale: Whether the date that the task hangs on had become another one.
    """

    task_id: UUID
    attempt: int
    due_at: datetime
    at: datetime
    stale: bool = False


CALLS: list[Call] = []  # Whatever became of them: a rollback takes none back.
JOURNALS = (ENTERED, CALLED, CALLS, FAILING)


def entered(context: Any, *, stale: bool = False) -> None:
    """Write down that a handler was entered, and let it raise if it is to."""
    task = context.task
    CALLS.append(Call(task.pk, task.attempt, task.scheduled_at, context.now, stale))
    if task.task_key in FAILING:
        raise RuntimeError("broken")


def effect(kind: str, task_id: Any) -> Effect:
    return Effect(name=f"{kind} {task_id.hex}")


def done(context: Any, kind: str, *, stale: bool = False) -> None:
    entered(context, stale=stale)
    effect(kind, context.task.pk).save()


class World(Timeline):
    """A handler of each kind; one follows another."""

    entity = "testapp.Order"
    starts_on = "order.placed"
    exits: ClassVar = {"order.closed": "closed"}

    @task(at("ships_at"))
    def ship(self, order: Order) -> None:
        done(self, "ship", stale=order.ships_at != self.task.anchor_value)

    @task(after(ship, days=1), atomic=False)
    def mail(self, order: Order) -> None:
        entered(self)
        ENTERED.append(self.task.pk.hex)

    @task(after(days=2), atomic="shared")
    def share(self, order: Order) -> None:
        done(self, "share")

    @task(after(days=2), bulk=10)
    def bulk(self, orders: list[Order]) -> None:
        for context in self.tasks.values():
            entered(context)
        Effect.objects.bulk_create([effect("bulk", self.tasks[order].task.pk) for order in orders])

    @task(after(days=3), atomic=False)
    async def call(self, order: Order) -> None:
        entered(self)
        ENTERED.append(self.task.pk.hex)

    @task()
    def extra(self, order: Order) -> None:
        done(self, "extra")


class Stepped(Timeline):
    """
    Takes steps: two that write, one that calls the outside between them, and one that may be called once.

    And takes two loops over orders: one that writes, and one that calls.
    """

    entity = "testapp.Order"

    @task(after(days=1), atomic=False)
    def pack(self, order: Order) -> None:
        entered(self)
        self.reserve()
        self.fetch()
        self.book()

    @task(after(days=1), atomic=False)
    async def collect(self, order: Order) -> None:
        entered(self)
        await asyncio.gather(self.ask.keyed("a")(), self.ask.keyed("b")())
        await self.ask()

    @task(atomic=False)
    def pay(self, order: Order) -> None:
        entered(self)
        self.transfer()

    @task(atomic=False)
    def settle(self, order: Order) -> dict[str, Any]:
        entered(self)
        self.each(self.mark, Order.objects.all(), size=1)
        return self.each(self.tell, Order.objects.all(), size=2)

    @step
    def mark(self, batch: list[Order]) -> None:
        for order in batch:
            effect(f"mark {order.pk}", self.idempotency_key).save()

    @step(atomic=False)
    def tell(self, batch: list[Order]) -> dict[str, int]:
        CALLED.append(self.step.idempotency_key)
        return {"told": len(batch)}

    @step
    def reserve(self) -> None:
        effect("reserve", self.idempotency_key).save()

    @step(atomic=False)
    def fetch(self) -> None:
        CALLED.append(self.step.idempotency_key)

    @step
    def book(self) -> None:
        effect("book", self.idempotency_key).save()

    @step(atomic=False)
    async def ask(self) -> None:
        CALLED.append(self.step.idempotency_key)

    @step(atomic=False, once=True)
    def transfer(self) -> None:
        CALLED.append(self.step.idempotency_key)
        raise TimeoutError("no answer")


class Born(Timeline):
    """Starts when an order is made."""

    entity = "testapp.Order"
    starts_on = created()

    @task(after(days=1))
    def greet(self, order: Order) -> None:
        done(self, "greet")


class Fanning(Timeline):
    """Splits an order in two; what follows waits for both."""

    entity = "testapp.Order"

    @task(after(days=1))
    def split(self, order: Order) -> None:
        done(self, "split")
        self.fan_out(self.part, {"a": {"first": 1}, "b": {"first": 2}})

    @task(each_of(split))
    def part(self, order: Order) -> None:
        done(self, "part")

    @task(after(part))
    def close(self, order: Order) -> None:
        done(self, "close")


class Doomed(Timeline):
    """Fails for good at once."""

    entity = "testapp.Order"

    @task(after(days=1), retry=Retry(max_attempts=1))
    def fail(self, order: Order) -> None:
        entered(self)
        raise ValueError(f"no order {order.pk}")


class Waiting(Timeline):
    """Asks for a code and waits for it; and has a refund approved."""

    entity = "testapp.Order"

    @task(after(), atomic=False)
    def sign_in(self, order: Order) -> str:
        entered(self)
        self.send_code()
        given = self.wait_for("code.given", within=timedelta(hours=1))
        return given.key if given else "nothing"

    @step(atomic=False)
    def send_code(self) -> None:
        CALLED.append(self.step.idempotency_key)

    @task(approval("refund", by="testapp.change_order", within=timedelta(days=2)))
    def refund(self, order: Order) -> str:
        done(self, "refund")
        return self.awaited.name if self.awaited else "nothing"


class Elsewhere(Timeline):
    """Waits for a code that comes to another order, the first one there is."""

    entity = "testapp.Order"

    @task(after(), atomic=False)
    def ask(self, order: Order) -> str:
        entered(self)
        given = self.wait_for("code.given", within=timedelta(hours=1), of=Order.objects.order_by("pk")[0])
        return given.key if given else "nothing"


class Repeated(Timeline):
    """Comes three times, and then something follows."""

    entity = "testapp.Order"

    @task(every(days=20, most=3))
    def nudge(self, order: Order) -> None:
        done(self, "nudge")

    @task(after(nudge))
    def give_up(self, order: Order) -> None:
        done(self, "give_up")


class Narrow(Timeline):
    """One call at a time; and one settlement, until its end, which comes with the first attempt or the second."""

    entity = "testapp.Order"

    @task(limit=1, atomic=False)
    def call(self, order: Order) -> None:
        entered(self)

    @task(limit=Limit(1, "settlement", until="end"), atomic=False)
    def settle(self, order: Order) -> None:
        entered(self)
        if self.task.attempt == 1 and self.task.revision == 1:
            raise RetryAfter(timedelta(days=1))

    @task(limit=Limit(1, "report", until="end"), atomic=False)
    def report(self, order: Order) -> None:
        entered(self)
        if self.task.revision == 1:
            raise Discard("no data")


class Crossing(Machine):
    """A light that is red, then green, then off; its handlers move it themselves, one after the other."""

    entity = "testapp.Order"
    starts_on = "light.made"
    initial = "red"
    table: ClassVar = {
        "red": {"light.go": "green"},
        "green": {"light.stop": "red"},
        "off": {},
        ANY: {"light.switched": STAY, "light.looked": STAY, "light.broken": "off"},
    }

    @task(after(days=1))
    def switch(self, order: Order) -> Then:
        done(self, "switch")
        return Then("light.switched", by="switch")

    @task(after(switch, days=1), atomic=False)
    def look(self, order: Order) -> Then:
        entered(self)
        ENTERED.append(self.task.pk.hex)
        return Then("light.looked")

    @task(after(look, days=1))
    def end(self, order: Order) -> Then:
        done(self, "end")
        return Then("light.broken")


FOLLOW_UPS = {"world.ship": {"world.mail"}, "fanning.split": {"fanning.part"}, "crossing.switch": {"crossing.look"}}
EFFECTS = {f"world.{kind}": kind for kind in ("ship", "share", "bulk", "extra")} | {"born.greet": "greet"}
EFFECTS |= {f"fanning.{kind}": kind for kind in ("split", "part", "close")}
EFFECTS |= {"crossing.switch": "switch", "crossing.end": "end"}
EFFECTS |= {"waiting.refund": "refund", "repeated.nudge": "nudge", "repeated.give_up": "give_up"}


class Box:
    """A broker: what is sent lies in a list until it is taken; it may be down."""

    def __init__(self) -> None:
        self.messages: list[ClaimedBatch] = []
        self.down = False

    def connect(self) -> None:
        """It is there, unless it is down."""
        if self.down:
            raise BrokerUnavailable(OSError("down"))

    def send(self, batch: ClaimedBatch, *, using: str) -> None:
        """Take a message."""
        self.connect()
        self.messages.append(batch)


class Clock:
    """Story time that is moved by hand."""

    def __init__(self) -> None:
        self.now = START

    def __call__(self) -> datetime:
        return self.now

    def told(self) -> Any:
        """Let it be story time within the block."""
        return story_time(self)


def new_orders(count: int = 2) -> list[Order]:
    """Orders that ship in a day."""
    return Order.objects.bulk_create([Order(ships_at=START + timedelta(days=1)) for _ in range(count)])


def wipe() -> None:
    """Let nothing be left of what was before."""
    at_once(EMPTY)
    for journal in JOURNALS:
        journal.clear()


def let_leases_run_out() -> None:
    """Nobody was heard of: each lease is out."""
    ScheduledTask.objects.exclude(lease_expires_at=None).update(lease_expires_at=EARLIEST)


def let_messages_grow_old() -> None:
    """What was sent is waited for no more, and no lease is out: however long this machine takes."""
    ScheduledTask.objects.exclude(lease_expires_at=None).update(lease_expires_at=LATEST)
    ScheduledTask.objects.exclude(sent_at=None).update(sent_at=EARLIEST)


def work_off(box: Box, clock: Clock) -> None:
    """Run what the messages carry, in the order they came."""
    while box.messages:
        batch = box.messages.pop(0)
        run(task_ids=batch.task_ids, token=batch.token, clock=clock, using="default", worker="sweep")


def restart(clock: Clock) -> None:
    """Start anew after a death: leases run out, polls rescue and send, and all is run until nothing is left."""
    box = Box()
    for _ in range(20):
        clock.now += timedelta(days=10)
        let_leases_run_out()
        dispatch(sender=box, now=clock.now, using="default")
        work_off(box, clock)
        if not ScheduledTask.objects.filter(state__in=OPEN).exists():
            return
    raise AssertionError("It does not come to rest.")


def picture(seen: Seen | None = None) -> list[tuple[Any, ...]]:
    """What there is, but for ids, attempts and the log: alike for whatever came about in one way or another."""
    seen = seen or Seen()
    orders = {str(order.id): number for number, order in enumerate(seen[Order])}
    found = [
        ("task", *whose(row), row.task_key, row.revision, row.state, row.reason_code, _when(row), row.slot)
        for row in seen.tasks()
    ]
    found += [
        ("run", *whose(run), run.timeline, run.key, run.end_reason, run.state, run.moves) for run in seen[TimelineRun]
    ]
    found += [("event", *whose(event), event.name, event.key) for event in seen[Event]]
    found += [("opening", "", opening.limit_key) for opening in seen[Opening]]
    found += [("order", str(order.id), order.ships_at) for order in seen[Order]]
    return sorted(((row[0], orders.get(row[1], "gone"), *row[2:]) for row in found), key=repr)


def whose(row: Row) -> tuple[str, str]:
    """Whose row it is."""
    return row.entity_id, row.entity_label


def _when(row: Row) -> datetime | None:
    """When a task is due that waits for its time."""
    return row.scheduled_at if row.state == "scheduled" else None


def check() -> Seen:
    """All that must hold; gives what was seen."""
    with connection.cursor() as cursor:
        assert violations(cursor, follow_ups=FOLLOW_UPS, effects=EFFECTS) == []
    seen = Seen()
    times = Counter(ENTERED)
    for row in seen.tasks("world.mail", "world.call", "crossing.look"):
        least = int(row.state == "completed")
        assert least <= times[row.id.hex] <= row.attempt, (
            f"{row.task_key}: entered {times[row.id.hex]} times, {row.state}"
        )
    _check_steps(seen)
    _check_fans(seen)
    _check_waits(seen)
    _check_series(seen)
    _check_places(seen)
    _check_machines(seen)
    check_doors(seen)
    return seen


def _check_machines(seen: Seen) -> None:
    """What a run is, its entries lead to; each is of an event that is there; and what a task said is said once."""
    for light in seen.of(TimelineRun, timeline="crossing"):
        check_entries(seen, light, "light.")
        assert (light.ended_at is not None) == (light.state == "off")
    for kind, event in (("switch", "light.switched"), ("look", "light.looked"), ("end", "light.broken")):
        completed = seen.tasks(f"crossing.{kind}", state="completed")
        assert len(seen.of(Event, name=event, actor=f"crossing.{kind}")) == len(completed)


def _check_waits(seen: Seen) -> None:
    """What a task was told is what is recorded of its wait; and an event that came in time is not lost."""
    for row in seen.tasks("waiting.sign_in", state="completed"):
        [record] = [one for one in seen.of(StepRecord, task_id=row.id) if one.name.startswith("(wait)")]
        event = next(iter(seen.of(Event, id=UUID(record.result))), None) if record.result else None
        assert row.result == (event.key if event else "nothing")
        until = datetime.fromisoformat(record.place["until"])
        came = [one for one in seen.of(Event, entity_id=row.entity_id, name="code.given") if one.recorded_at < until]
        assert bool(came) == (event is not None), "an event is lost"
    for row in seen.tasks("waiting.refund", state="completed"):
        decided = [one for one in seen.of(Event, entity_id=row.entity_id) if one.name.startswith("refund.")]
        first = min(decided, key=lambda one: one.recorded_at, default=None)
        assert row.result == (first.name if first else "nothing")
    failed = [row for row in seen.tasks(state="retryable") if row.reason_code in ("error", "worker_lost")]
    assert not any(row.awaits for row in failed), "a later event would cut its backoff short"


def _check_series(seen: Seen) -> None:
    """Of a series one is open at most, none is left out, and what follows comes after the last."""
    for run_id in {row.run_id for row in seen.tasks("repeated.nudge")}:
        rows = sorted(seen.tasks("repeated.nudge", run_id=run_id), key=lambda row: row.occurrence)
        assert [row.occurrence for row in rows] == [str(number + 1) for number in range(len(rows))]
        ended = [row.state in FINAL for row in rows]
        assert ended in ([True] * len(rows), [*[True] * (len(rows) - 1), False])
        followed = seen.tasks("repeated.give_up", run_id=run_id)
        assert len(followed) == int(len(rows) == 3 and all(ended))
        assert all(ended) <= (len(rows) == 3), "the next one is not there"


def _check_places(seen: Seen) -> None:
    """Who is under way has a place, no two the same; who has ended keeps one only if it was started, and is to be opened."""
    held = [row for row in seen.tasks() if row.slot is not None and row.slot > 0]
    places = [(row.limit_key, row.slot) for row in held]
    assert len(places) == len(set(places)), "two have one place"
    assert all(slot == 1 for _key, slot in places), "a place more than there are"
    assert not any(row.limit_key and row.state in ("pending", "active") for row in seen.tasks(slot=0))
    for row in held:
        if row.state in FINAL:
            assert row.state != "completed", "it has completed, and keeps its place"
            assert row.held_until == "opened+" or (row.held_until == "opened" and row.attempt), "it was never started"


def _check_fans(seen: Seen) -> None:
    """What is fanned out is all there, and comes once; what follows all of it comes once they have completed."""
    split = {row.run_id for row in seen.tasks("fanning.split", state="completed")}
    for run_id in split:
        parts = sorted(seen.tasks("fanning.part", run_id=run_id), key=lambda part: part.occurrence)
        assert [(part.occurrence, part.payload) for part in parts] == [("a", {"first": 1}), ("b", {"first": 2})]
        both = all(part.state == "completed" for part in parts)
        assert len(seen.tasks("fanning.close", run_id=run_id)) == int(both)
    unsplit = {row.run_id for row in seen.tasks("fanning.split") if row.state != "completed"}
    assert not any(row.run_id in unsplit for row in seen.tasks("fanning.part"))


def _check_steps(seen: Seen) -> None:
    """What an atomic step writes is there just where it is recorded; a plain one was called if it is recorded."""
    records = seen[StepRecord]
    written = {f"{record.name} {record.origin.hex}" for record in records if record.name in ("reserve", "book")}
    effects = [effect.name for effect in seen[Effect]]
    assert sorted(name for name in effects if name.startswith(("reserve", "book"))) == sorted(written)
    marked = [name for name in effects if name.startswith("mark")]
    assert len(marked) == len(set(marked)), "an order was marked twice"
    assert len(marked) == sum(record.done for record in records if record.name == "mark")
    calls = Counter(CALLED)
    for record in records:
        if record.name == "tell":
            assert record.result.get("told", 0) == record.done
            assert len([key for key in calls if ":tell:" in key]) >= (record.done + 1) // 2
        elif record.kind == "done" and record.name not in ("reserve", "book", "transfer", "mark"):
            assert calls[f"{record.origin}:{record.name}"], f"{record.name} is recorded and was not called"
    attempts = {row.id: row.attempt for row in seen.tasks()} if calls else {}
    for key, times in calls.items():
        assert times <= max(attempts.get(UUID(key.partition(":")[0]), times), 1), f"{key} was called {times} times"
    assert all(times == 1 for key, times in calls.items() if key.endswith(":transfer"))

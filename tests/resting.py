"""Timelines with steps, for the tests of the faces: what rests because of one."""

from __future__ import annotations

from datetime import timedelta

from tests.testapp.models import Effect
from timeline import Timeline, after, step, task
from timeline.models import ScheduledTask, StepRecord
from timeline.shortcuts import start


class Billing(Timeline):
    """Pays once, at most."""

    entity = "testapp.Order"

    @task(after(days=1), atomic=False)
    def pay(self, order):
        return [self.upload(), self.transfer()]

    @step(atomic=False)
    def upload(self):
        return {"url": "/invoices/DE89"}

    @step(atomic=False, once=True)
    def transfer(self):
        raise TimeoutError("the bank did not answer")


class Changed(Timeline):
    """The same after a deploy: it takes no step any more."""

    entity = "testapp.Order"
    name = "billing"

    @task(after(days=1), atomic=False)
    def pay(self, order):
        return "paid"


class Failing(Timeline):
    """Fails behind a step, and is tried again."""

    entity = "testapp.Order"
    name = "billing"

    @task(after(days=1), atomic=False)
    def pay(self, order):
        self.upload()
        raise ValueError("the bank is closed")

    @step(atomic=False)
    def upload(self):
        return {"url": "/invoices/DE89"}


class Settling(Timeline):
    """Loops over what there is to settle, and tells how far it is; the second batch fails."""

    entity = "testapp.Order"
    name = "billing"

    @task(after(days=1), atomic=False)
    def pay(self, order):
        self.progress(3, 1200, "<b>reading</b> the statements")
        return self.each(self.settle, Effect.objects.all(), size=2)

    @step(atomic=False)
    def settle(self, batch):
        if len(batch) < 2:
            raise TimeoutError("the processor did not answer")
        return {"settled": len(batch)}


def half_settled(order, clock) -> ScheduledTask:
    """Have ``billing.pay`` of an order tried, which settles two of three."""
    Effect.objects.bulk_create(Effect(name=f"effect {number}") for number in range(3))
    return run_once(order, clock)


def run_once(order, clock) -> ScheduledTask:
    """Have ``billing.pay`` of an order tried a day later, and once more soon after."""
    start("billing", order)
    with clock.failing():
        clock.advance(timedelta(days=1, minutes=10))
    return ScheduledTask.objects.get(task_key="billing.pay", entity_id=str(order.pk))


def recorded(row, name, kind="done", **columns) -> StepRecord:
    """Have a step of a task recorded, as its first attempt would have."""
    columns = {"origin": row.pk, "task_id": row.pk, "attempt": 1, "seconds": 0.4 if kind == "done" else 0.0} | columns
    columns = {"recorded_at": row.scheduled_at, "digest": "0" * 16, "code": "0" * 16} | columns
    return StepRecord.objects.create(name=name, kind=kind, **columns)


def resting(make, *about, in_doubt=True, **columns):
    """Make a task that rests: nobody knows whether ``transfer`` happened; or the code has changed since it did."""
    code = "in_doubt" if in_doubt else "definition"
    row = make(*about, state="retryable", reason_code=code, **{"attempt": 1} | columns)
    recorded(row, "transfer", "begun" if in_doubt else "done")
    return row

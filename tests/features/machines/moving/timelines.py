"""A machine whose handlers move it by conditions, for worker processes of the tests."""

from __future__ import annotations

import time

from tests.testapp.models import Effect, Order
from timeline import STAY, Machine, Passage, Then, after, never, task, to


def is_paid(order: Order) -> bool:
    return order.paid


def note_it(order: Order, passage: Passage) -> None:
    """Write slowly, so that a worker is killed between that and the end of the transaction."""
    Effect.objects.create(name=f"{order.pk} {passage.target}")
    time.sleep(0.02)


def pay(order: Order) -> None:
    Order.objects.filter(pk=order.pk).update(paid=True)
    Effect.objects.create(name=f"{order.pk} paid")


class MovingCase(Machine):
    """Goes one of two ways, with an effect on each."""

    entity = "testapp.Order"
    initial = "busy"
    table = {
        "busy": {"case.done": [to("paid", when=is_paid, do=note_it), to("unpaid", do=note_it)]},
        "paid": {},
        "unpaid": {},
    }
    working = ("busy",)

    @task(after(), atomic=False)
    def work(self, order: Order) -> Then:
        time.sleep(0.02)
        return Then("case.done")


class PayCase(Machine):
    """Pays once; who comes later ends it."""

    entity = "testapp.Order"
    initial = "open"
    table = {"open": {"case.pay": [to("over", when=is_paid), to(STAY, do=pay)]}, "over": {}}
    timers = {"open": never}

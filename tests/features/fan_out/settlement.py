"""A timeline that fans out, of an order."""

from __future__ import annotations

from inspect import iscoroutinefunction

from timeline import Timeline, after, each_of, task
from timeline.models import ScheduledTask

TWO = {"001": {"first": 1}, "002": {"first": 101}}


def fan_out_two(settlement):
    settlement.fan_out(settlement.settle, TWO)


async def fan_out_two_and_wait(settlement):
    settlement.fan_out(settlement.settle, TWO)


def nothing(settlement):
    """Settle a batch."""


def settlement(split=fan_out_two, settle=nothing, *, in_shadow=False, each=None, **options):
    """
    Declare it: a day after its start it is split, each batch is settled, and when all are it reports and cleans up.

    Args:
        split, settle: What the handlers do.
        in_shadow: Whether no handler is entered.
        each: Options of ``settle``.
        options: Of ``split``.
    """
    work = split

    class Settlement(Timeline):
        entity = "testapp.Order"
        exits = {"order.closed": "closed"}
        shadow = in_shadow

        if iscoroutinefunction(work):

            @task(after(days=1), **options)
            async def split(self, order):
                return await work(self)

        else:

            @task(after(days=1), **options)
            def split(self, order):
                return work(self)

        @task(each_of(split), **(each or {}))
        def settle(self, order):
            return settle(self)

        @task(after(settle))
        def report(self, order):
            return "reported"

        @task(after(settle, ended=True))
        def clean_up(self, order):
            return "clean"

        @task()
        def by_hand(self, order):
            return work(self)

    return Settlement


def rows_of(name):
    """The rows of a task, by occurrence and revision."""
    return list(ScheduledTask.objects.filter(task_key=f"settlement.{name}").order_by("occurrence", "revision", "pk"))


def row_of(name, occurrence=""):
    """The latest revision of one."""
    return ScheduledTask.objects.filter(task_key=f"settlement.{name}", occurrence=occurrence).latest("revision")


def states_of(name):
    """Occurrence → state, of the latest revisions."""
    return {row.occurrence: row.state for row in rows_of(name)}

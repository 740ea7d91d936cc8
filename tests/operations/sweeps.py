"""Timelines and rounds of sweeps."""

from timeline import Timeline, after, at, created, task
from timeline.features.sweep.verbs import begin_round, sweep
from timeline.models import ScheduledTask


class Delivery(Timeline):
    entity = "testapp.Order"

    @task(at("ships_at"))
    def ship(self, order): ...

    @task(after(days=90))
    def ask(self, order): ...


class Welcome(Timeline):
    entity = "testapp.Order"
    starts_on = created()
    exits = {"order.closed": "closed"}

    @task(after(days=1))
    def greet(self, order): ...


def whole_round(now, **given):
    """Sweep until nothing is left."""
    begin_round(using="default")
    return rest_of_round(now, **given)


def rest_of_round(now, **given):
    swept = []
    while (last := sweep(now=now, using="default", **given)).left:
        swept.append(last)
    return tuple(sum(part[place] for part in swept) for place in range(3))


def times_of(name):
    return list(
        ScheduledTask.objects.open().filter(task_key=name).order_by("pk").values_list("scheduled_at", flat=True)
    )

"""
A bare transition with its save, on PostgreSQL, by turns: machines of ours, which write a log and an event, beside django-fsm-2
and Viewflow's fsm, which write neither. ``make bench-moves`` installs these two on the side.
"""

from __future__ import annotations

import argparse
import json
from collections.abc import Callable
from statistics import median
from time import perf_counter
from typing import Any

from benchmarks.databases import server_version, site


def tables() -> tuple[Any, Any, Any]:
    """Make the models that machines are about, alike but for the state: theirs, ours, and ours with a StateField."""
    from django.db import connection, models
    from django_fsm import FSMField, transition

    from timeline.models import StateField

    class Theirs(models.Model):  # noqa: DJ008 (nobody sees it)
        name = models.CharField(max_length=50, default="somebody")
        state = FSMField(default="off")

        class Meta:
            app_label = "benchmarks"

        @transition(field=state, source="off", target="on")
        def switch_on(self) -> None: ...

        @transition(field=state, source="on", target="off")
        def switch_off(self) -> None: ...

    class Kept(models.Model):  # noqa: DJ008 (nobody sees it)
        name = models.CharField(max_length=50, default="somebody")
        state = models.CharField(max_length=50, default="")

        class Meta:
            app_label = "benchmarks"

    class Shown(models.Model):  # noqa: DJ008 (nobody sees it)
        name = models.CharField(max_length=50, default="somebody")
        state = StateField()

        class Meta:
            app_label = "benchmarks"

    with connection.schema_editor() as editor:
        for model in (Theirs, Kept, Shown):
            editor.create_model(model)
    return Theirs, Kept, Shown


def flow() -> Any:
    """Viewflow's machine about a row."""
    from viewflow.fsm import State

    class Flow:
        state = State(("off", "on"), default="off")

        def __init__(self, row: Any) -> None:
            self.row = row

        @state.setter()
        def _set(self, value: str) -> None:
            self.row.state = value

        @state.getter()
        def _get(self) -> str:
            return str(self.row.state)

        @state.transition(source="off", target="on")
        def switch_on(self) -> None:
            self.row.save()

        @state.transition(source="on", target="off")
        def switch_off(self) -> None:
            self.row.save()

    return Flow


def ways(rounds: int) -> dict[str, Callable[[int], None]]:
    """What is measured: name → one move there or back, of the row of that number."""
    from timeline import Machine
    from timeline.registry import registry
    from timeline.shortcuts import emit, start

    theirs, *ours = tables()
    viewflow = flow()
    table = {"off": {"switched.on": "on"}, "on": {"switched.off": "off", "gone": "away"}, "away": {}}
    for model in ours:
        body = {"__doc__": "Is switched on and off.", "entity": model._meta.label, "initial": "off", "table": table}
        mirror = "state" if model.__name__ == "Shown" else ""
        registry.register(type(model.__name__, (Machine,), {**body, "mirror": mirror, "__module__": __name__}))

    fsm = [theirs.objects.create() for _ in range(rounds)]
    flows = [theirs.objects.create() for _ in range(rounds)]
    kept, shown = ([model.objects.create() for _ in range(rounds)] for model in ours)
    for name, rows in (("kept", kept), ("shown", shown)):
        for row in rows:
            start(name, row)

    def by_fsm(number: int) -> None:
        row = fsm[number]
        row.switch_on() if row.state == "off" else row.switch_off()
        row.save()

    def by_viewflow(number: int) -> None:
        about = viewflow(flows[number])
        about.switch_on() if about.row.state == "off" else about.switch_off()

    on = set[tuple[str, int]]()

    def emitting(name: str, rows: list[Any]) -> Callable[[int], None]:
        def move(number: int) -> None:
            at = (name, number)
            emit("switched.off" if at in on else "switched.on", rows[number])
            on.symmetric_difference_update({at})

        return move

    return {
        "django-fsm-2": by_fsm,
        "viewflow.fsm": by_viewflow,
        "timeline": emitting("kept", kept),
        "timeline, with a StateField": emitting("shown", shown),
    }


def measure(rounds: int) -> dict[str, float]:
    """Let each make a move by turns; milliseconds, median."""
    took: dict[str, list[float]] = {}
    moves = ways(rounds)
    for turn in range(4):
        for number in range(rounds):
            for name, move in moves.items():
                begun = perf_counter()
                move(number)
                if turn:
                    took.setdefault(name, []).append(1000 * (perf_counter() - begun))
    return {name: round(median(each), 3) for name, each in took.items()}


def main() -> None:
    """Measure, and print."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rounds", type=int, default=300)
    options = parser.parse_args()
    with site():
        print(f"PostgreSQL {server_version()}")
        print(json.dumps(measure(options.rounds), indent=2))


if __name__ == "__main__":
    main()

"""What became of the demo's tasks: a table, and one person's story."""

from __future__ import annotations

from collections import Counter
from datetime import datetime

from django.db import DEFAULT_DB_ALIAS
from django.db.models import Count
from rich.console import Console
from rich.table import Table

from project.accounts.models import User
from project.demo.people import Person
from timeline.lifecycle import FINAL, State
from timeline.models import ScheduledTask
from timeline.reading.explanation import explain
from timeline.reading.text_pictures import picture


def print_summary(people: list[Person], now: datetime, console: Console) -> None:
    """Print how many tasks of each kind ended how, then one person's timeline, explained."""
    console.print()
    console.print(_table())
    person = next((person for person in people if "27" in person.habit), people[0])
    user = User.objects.get(email=person.email)
    console.print(f"\n{person.email}, who {person.habit}:", style="bold", highlight=False)
    _plain(console, picture(user, now=now, using=DEFAULT_DB_ALIAS))
    for task in ScheduledTask.objects.for_entity(user).select_related("run", "cause").in_order():
        console.print()
        _plain(console, explain(task, now=now, using=DEFAULT_DB_ALIAS))


def _table() -> Table:
    counts = Counter[tuple[str, str, str]]()
    kinds = ScheduledTask.objects.values_list("task_key", "state", "reason_code", "reason")
    for task_key, state, code, reason, count in kinds.annotate(count=Count("pk")):
        counts[task_key, state, reason if code == "exit" else code] += count
    table = Table(title="What became of the tasks", title_justify="left")
    table.add_column("task key", no_wrap=True)
    for heading in ("completed", "failed", "open"):
        table.add_column(heading, justify="right")
    table.add_column("cancelled, by reason", no_wrap=True)
    for task_key in sorted({task_key for task_key, _state, _reason in counts}):
        mine = {(state, reason): count for (key, state, reason), count in counts.items() if key == task_key}
        cancelled = {reason: count for (state, reason), count in mine.items() if state == State.CANCELLED}
        table.add_row(
            task_key,
            str(sum(count for (state, _), count in mine.items() if state == State.COMPLETED)),
            str(sum(count for (state, _), count in mine.items() if state == State.DISCARDED)),
            str(sum(count for (state, _), count in mine.items() if state not in FINAL)),
            ", ".join(f"{reason} {count}" for reason, count in sorted(cancelled.items())) or "0",
        )
    return table


def _plain(console: Console, text: str) -> None:
    console.print(text, markup=False, highlight=False, soft_wrap=True)

"""``manage.py timeline_inventory``: each timeline as its code declares it, and how its tasks went."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from typing import Any

from django.core.management.base import CommandParser
from django.core.serializers.json import DjangoJSONEncoder
from django.utils.translation import pgettext

from timeline.clocks import story_now
from timeline.management.shared import PipedCommand, add_database_option
from timeline.reading.inventory import TaskEntry, TimelineEntry, inventory
from timeline.timing import in_utc

try:
    from rich.console import Console
    from rich.table import Table
except ImportError:  # pragma: no cover (our tests have it)
    Console = None  # type: ignore[assignment, misc]

WIDTH = 160  # Of what no terminal shows.


class Command(PipedCommand):
    """Lists."""

    help = "Lists the timelines: what starts and ends them, their tasks and steps, and how these went."

    def add_arguments(self, parser: CommandParser) -> None:
        """Take the form."""
        form = parser.add_mutually_exclusive_group()
        form.add_argument("--json", action="store_true", help="Print plain data.")
        form.add_argument("--markdown", action="store_true", help="Print a page in Markdown.")
        add_database_option(parser)

    def handle(self, *args: Any, database: str, **options: Any) -> None:
        """Print the inventory."""
        found = inventory(now=story_now(database), using=database)
        if options["json"]:
            self.stdout.write(json.dumps([each.as_data() for each in found], cls=DjangoJSONEncoder, indent=2))
        elif options["markdown"] or Console is None:
            self.stdout.write("\n".join(line for each in found for line in _markdown(each)))
        else:
            console = Console(highlight=False, markup=False, width=None if self.stdout.isatty() else WIDTH)
            with console.capture() as drawn:
                for each in found:
                    console.print(_table(each), "")
            self.stdout.write(drawn.get())


def _heads() -> list[str]:
    return [
        pgettext("timeline", "Task"),
        pgettext("timeline", "When"),
        pgettext("timeline", "Last ended"),
        pgettext("timeline", "Median"),
        pgettext("timeline", "Dead letters"),
    ]


def _row(task: TaskEntry) -> list[str]:
    ended = f"{in_utc(task.last_end_at)} {task.last_end_label}" if task.last_end_at else "–"
    when = "; ".join(filter(None, [task.when, task.told_limit])) or "–"
    return [task.name, when, ended, task.took or "–", str(task.dead_letters or "–")]


def _facts(each: TimelineEntry) -> Iterator[tuple[str, str]]:
    """What there is beside its tasks."""
    yield pgettext("timeline", "Entity"), each.entity or pgettext("timeline", "the system")
    starts = [start.said for start in each.starts] or [pgettext("timeline", "by hand only")]
    yield pgettext("timeline", "Starts"), "; ".join(starts)
    if each.rules:
        yield pgettext("timeline", "Runs"), "; ".join(each.rules)
    if each.exits:
        exits = (f"{event} ({name})" for event, name in each.exits.items())
        yield pgettext("timeline", "Exits"), "; ".join(exits)
    if each.states:
        yield pgettext("timeline", "States"), "; ".join(f"{state.name} ({state.told})" for state in each.states)
    if each.steps:
        yield (
            pgettext("timeline", "Steps"),
            "; ".join(filter(None, (_step(step.name, step.doc) for step in each.steps))),
        )


def _step(name: str, doc: str) -> str:
    return f"{name}: {doc}" if doc else name


def _task(task: TaskEntry) -> str:
    return _step(f"{task.name} ({task.title})" if task.title else task.name, task.doc)


def _table(each: TimelineEntry) -> Table:
    shadow = pgettext("timeline", "in shadow") if each.shadow else ""
    heading = f"{each.name} ({shadow})" if shadow else each.name
    caption = "\n".join(filter(None, [each.doc, *(f"{name}: {said}" for name, said in _facts(each))]))
    table = Table(*_heads(), title=heading, caption=caption, title_justify="left", caption_justify="left")
    for task in each.tasks:
        _name, *rest = _row(task)
        table.add_row(_task(task), *rest)
    return table


def _markdown(each: TimelineEntry) -> Iterator[str]:
    yield from [f"## {each.name}", ""]
    if each.doc:
        yield from [_plain(each.doc), ""]
    yield from [f"- {name}: {_plain(said)}" for name, said in _facts(each)]
    yield from ["", _line(_heads()), _line(["---"] * len(_heads()))]
    for task in each.tasks:
        _name, *rest = _row(task)
        yield _line([_task(task), *rest])
    yield ""


def _line(cells: Sequence[str]) -> str:
    return f"| {' | '.join(map(_plain, cells))} |"


def _plain(text: str) -> str:
    """Text that ends no cell of a table."""
    return text.replace("|", "\\|")

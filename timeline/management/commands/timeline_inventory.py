"""``manage.py timeline_inventory``: each timeline as its code declares it, and how its tasks went."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from typing import Any, Final

from django.core.management.base import CommandError, CommandParser
from django.core.serializers.json import DjangoJSONEncoder
from django.utils.translation import gettext as _
from django.utils.translation import pgettext

from timeline.clocks import story_now
from timeline.exceptions import TimelineError
from timeline.management.shared import PipedCommand, add_database_option, shortened, width_of_terminal, wrapped
from timeline.reading.inventory import TaskEntry, TimelineEntry, inventory
from timeline.registry import registry
from timeline.timing import in_utc

STARTS: Final = 2  # The column.


class Command(PipedCommand):
    """Lists."""

    help = "Lists the timelines, a line for each; of one that is named, what starts and ends it, its tasks, and how these went."

    def add_arguments(self, parser: CommandParser) -> None:
        """Take the timeline and the form."""
        parser.add_argument(
            "timeline", nargs="?", default="", help="Name of a timeline (default: all, a line for each)."
        )
        form = parser.add_mutually_exclusive_group()
        form.add_argument("--json", action="store_true", help="Print plain data, all there is of each.")
        form.add_argument("--markdown", action="store_true", help="Print a page in Markdown, all there is of each.")
        add_database_option(parser)

    def handle(self, *args: Any, timeline: str, database: str, **options: Any) -> None:
        """Print the inventory."""
        try:
            known = [registry.timeline(timeline)] if timeline else None
        except TimelineError as error:
            raise CommandError(str(error)) from error
        found = inventory(known, now=story_now(database), using=database)
        if options["json"]:
            self.stdout.write(json.dumps([each.as_data() for each in found], cls=DjangoJSONEncoder, indent=2))
        elif options["markdown"]:
            self.stdout.write("\n".join(line for each in found for line in _markdown(each)))
        elif timeline:
            self.stdout.write("\n".join(map(wrapped, _told(found[0]))))
        else:
            self.stdout.write("\n".join(_in_columns(list(_overview(found)), width_of_terminal())))
            self.stdout.write(_("More of one: manage.py timeline_inventory NAME"))


def _overview(found: Sequence[TimelineEntry]) -> Iterator[list[str]]:
    """The heads, and a line for each."""
    names = (
        pgettext("timeline", "Timeline"),
        pgettext("timeline", "About"),
        pgettext("timeline", "Starts"),
        pgettext("timeline", "Tasks"),
        pgettext("timeline", "Dead letters"),
    )
    yield list(names)
    for each in found:
        dead = sum(task.dead_letters for task in each.tasks)
        about = each.entity or pgettext("timeline", "the system")
        yield [each.name, about, _starts(each), str(len(each.tasks)), str(dead or "–")]


def _starts(each: TimelineEntry) -> str:
    return "; ".join(start.said for start in each.starts) or pgettext("timeline", "by hand only")


def _in_columns(rows: Sequence[Sequence[str]], width: int) -> Iterator[str]:
    """A line for each; what starts a timeline is cut where it is too long."""
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    widths[STARTS] = max(min(widths[STARTS], width - sum(widths) + widths[STARTS] - 2 * (len(widths) - 1)), 8)
    for row in rows:
        *texts, tasks, dead = [shortened(cell, most) for cell, most in zip(row, widths, strict=True)]
        left = [f"{text:<{most}}" for text, most in zip(texts, widths, strict=False)]
        yield "  ".join([*left, f"{tasks:>{widths[-2]}}", f"{dead:>{widths[-1]}}"])


def _told(each: TimelineEntry) -> Iterator[str]:
    """All there is of one, in lines."""
    shadow = pgettext("timeline", "in shadow") if each.shadow else ""
    yield f"{each.name} ({shadow})" if shadow else each.name
    if each.doc:
        yield f"  {each.doc}"
    facts = list(_facts(each))
    width = max(len(name) for name, _said in facts)
    yield from (f"  {name:<{width}}  {said}" for name, said in facts)
    for task in each.tasks:
        _name, when, ended, took, dead = _row(task)
        yield ""
        yield f"{task.name}: {when}" if when != "–" else task.name
        if said := ". ".join(filter(None, [task.title, task.doc])):
            yield f"  {said}"
        last = [_("last: %(ended)s") % {"ended": ended}, took] if task.last_end_at else [_("has not ended yet")]
        if task.dead_letters:
            last.append(_("dead letters: %(count)s") % {"count": dead})
        yield f"  {', '.join(part for part in last if part != '–')}"
    if any(task.dead_letters for task in each.tasks):
        yield ""
        yield _("Next: manage.py timeline_dead_letters")


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
    when = "; ".join(filter(None, [task.when, task.told_limit, task.rate])) or "–"
    return [task.name, when, ended, task.took or "–", str(task.dead_letters or "–")]


def _facts(each: TimelineEntry) -> Iterator[tuple[str, str]]:
    """What there is beside its tasks."""
    yield pgettext("timeline", "Entity"), each.entity or pgettext("timeline", "the system")
    yield pgettext("timeline", "Starts"), _starts(each)
    if each.rules:
        yield pgettext("timeline", "Runs"), "; ".join(each.rules)
    if each.exits:
        exits = (f"{event} → {name}" for event, name in each.told_exits)
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

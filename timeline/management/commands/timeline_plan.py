"""``manage.py timeline_plan``: how the rows in a database differ from what its timelines say now. Writes nothing."""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator, Mapping
from datetime import timedelta
from typing import Any, Final

from django.core.management.base import CommandError, CommandParser
from django.utils.formats import number_format
from django.utils.translation import gettext as _
from django.utils.translation import ngettext

from timeline.clocks import story_now
from timeline.exceptions import TimelineError
from timeline.features.machines.plans import MachinePlan, machine_plans
from timeline.features.plans.differ import (
    Differs,
    DriftSample,
    TaskDiffers,
    differences,
    rows_of_nobody,
    runs_of_nobody,
)
from timeline.management.shared import Bar, PipedCommand, add_database_option, wrapped
from timeline.models import TimelineRun
from timeline.registry import registry

HAS_WORK: Final = 2  # Its exit status.
MAX_WHY: Final = 80
MOST_NAMED: Final = 3


class Command(PipedCommand):
    """Shows what differs."""

    help = (
        "Shows of each timeline what the next sweep would change, and what timeline_apply would cancel as it has no definition "
        "any more. Of machines it shows the states and moves that are in the database, and not in their tables. Ends with "
        "status 2 where timeline_sweep or timeline_apply has something to do, else 0."
    )

    def add_arguments(self, parser: CommandParser) -> None:
        """Take the timeline."""
        parser.add_argument("timeline", nargs="?", default="", help="Name of a timeline (default: all).")
        parser.add_argument("--json", action="store_true", help="Print plain data.")
        add_database_option(parser)

    # The parameters are named after the options.
    def handle(self, *args: Any, timeline: str, database: str, **options: Any) -> None:
        """Print the plans."""
        try:
            definitions = [registry.timeline(timeline)] if timeline else list(registry)
        except TimelineError as error:
            raise CommandError(str(error)) from error
        machines = machine_plans([known for known in definitions if known.machine is not None], using=database)
        names = [known.name for known in definitions]
        total = TimelineRun.objects.using(database).open().filter(timeline__in=names).count()
        found = {name: Differs(name) for name in names}
        with Bar(self.stdout, total) as bar:
            for found in differences(definitions, now=story_now(database), using=database):
                bar.at(sum(each.runs for each in found.values()))
        nobody = {} if timeline else runs_of_nobody(using=database)
        undefined = {
            key: count
            for key, count in rows_of_nobody(using=database).items()
            if not timeline or key.startswith(f"{timeline}.")
        }
        by_name = {plan.machine: plan for plan in machines}
        if options["json"]:
            data = [_as_data(found[name], by_name.get(name)) for name in names]
            self.stdout.write(json.dumps({"timelines": data, "of_nobody": nobody, "undefined": undefined}, indent=2))
        else:
            lines = [
                *_lines(found, by_name, is_all=not timeline),
                *_of_nobody(nobody, undefined),
                *_next(found, by_name),
            ]
            self.stdout.write("\n".join(map(wrapped, lines)) or _("There is no timeline."))
        if any(each.changed for each in found.values()) or any(plan.has_work for plan in machines):
            sys.exit(HAS_WORK)


def _as_data(found: Differs, machine: MachinePlan | None) -> dict[str, Any]:
    return found.as_data() | ({"machine": machine.as_data()} if machine else {})


def _lines(found: Mapping[str, Differs], machines: Mapping[str, MachinePlan], *, is_all: bool) -> Iterator[str]:
    """What differs; of ``is_all``, what does not is summed up."""
    alike = [each for name, each in found.items() if is_all and not _differs(each, machines.get(name))]
    for name, each in found.items():
        if each not in alike:
            yield from _drift(each)
            if name in machines:
                yield from _machine(machines[name])
    if alike:
        said = ngettext("%(count)d timeline, %(runs)s", "%(count)d timelines, %(runs)s", len(alike))
        told = said % {"count": len(alike), "runs": _runs(sum(each.runs for each in alike))}
        yield _("%(what)s: as they should be.") % {"what": told}


def _differs(found: Differs, machine: MachinePlan | None) -> bool:
    odd = machine and (
        machine.has_work or machine.stranded or machine.backs or machine.stateless or machine.missing_edges
    )
    return bool(found.changed or found.left or odd)


def _next(found: Mapping[str, Differs], machines: Mapping[str, MachinePlan]) -> Iterator[str]:
    """What to call, where there is something to do."""
    names = [name for name, each in found.items() if each.changed or (name in machines and machines[name].has_work)]
    if names:
        named = ", ".join(f"manage.py timeline_apply {name}" for name in names[:MOST_NAMED])
        yield _("Next: %(commands)s, or timeline_sweep for all.") % {"commands": named}


def _of_nobody(nobody: Mapping[str, int], undefined: Mapping[str, int]) -> Iterator[str]:
    for name, count in nobody.items():
        yield f"! {name}: {_runs(count)}  " + _("no timeline has this name")
    for key, count in undefined.items():
        said = _("%(task)s: %(count)s without a definition, which rest; timeline_apply %(timeline)s cancels them")
        yield "! " + said % {"task": key, "count": number_format(count), "timeline": key.partition(".")[0]}


def _drift(found: Differs) -> Iterator[str]:
    if not found.changed:
        yield f"{found.timeline}: {_runs(found.runs)}, " + _("as they should be")
    else:
        said = _("%(count)s of them would change") % {"count": number_format(found.changed)}
        yield f"{found.timeline}: {_runs(found.runs)}, {said}"
    for name, task in found.tasks.items():
        if task.new or task.moved or task.cancelled:
            yield f"  {name}: {', '.join(_told(task))}"
            yield from (f"      {_sample(sample)}" for sample in task.samples)
    if found.ending:
        yield "  " + _("%(runs)s would end") % {"runs": _runs(found.ending)}
    if found.busy:
        yield "  " + _("%(runs)s have a task that is being run, and are looked at when it ends") % {
            "runs": _runs(found.busy)
        }
    for why, count in found.left.most_common(5):
        yield "  " + _("%(runs)s are left as they are: %(why)s") % {"runs": _runs(count), "why": why}


def _told(task: TaskDiffers) -> Iterator[str]:
    if task.new:
        yield _("%(count)s new") % {"count": number_format(task.new)}
    if task.moved and task.earliest is not None and task.latest is not None:
        by = (
            _length(task.earliest)
            if task.earliest == task.latest
            else f"{_length(task.earliest)} … {_length(task.latest)}"
        )
        yield _("%(count)s moved by %(length)s") % {"count": number_format(task.moved), "length": by}
    if cancelled := task.cancelled - task.orphaned:
        yield _("%(count)s cancelled") % {"count": number_format(cancelled)}
    if task.orphaned:
        yield _("%(count)s orphaned") % {"count": number_format(task.orphaned)}
    if task.unchanged:
        yield _("%(count)s unchanged") % {"count": number_format(task.unchanged)}


def _length(length: timedelta) -> str:
    """A shift as people read it: ``+5 days``, ``-1:30:00``."""
    said = str(abs(length)).removesuffix(", 0:00:00")
    return f"-{said}" if length < timedelta() else f"+{said}"


def _sample(sample: DriftSample) -> str:
    times = [moment.strftime("%Y-%m-%d %H:%M") if moment else "–" for moment in (sample.at, sample.then_at)]
    return f"{sample.entity}: {times[0]} → {times[1]}  ({sample.why[:MAX_WHY]})"


def _machine(plan: MachinePlan) -> Iterator[str]:
    there = {state: count for state, count in plan.states.items() if count}
    width = max(map(len, [*there, *plan.stranded, *plan.backs]), default=0)
    for state, count in there.items():
        yield f"  {state:<{width}}  {_runs(count)}"
    for state, count in plan.stranded.items():
        yield f"! {state:<{width}}  {_runs(count)}  " + _("the table does not have it")
    for state, count in plan.backs.items():
        yield f"! {state:<{width}}  {_runs(count)}  " + _("would go back to it, and the table does not have it")
    if plan.stateless:
        yield "  " + _("%(runs)s began before it was a machine, and are in no state") % {"runs": _runs(plan.stateless)}
    for source, target in plan.old_edges:
        yield f"- {source} → {target}  " + _("passes the database, and the table does not have it")
    for source, target in plan.missing_edges:
        yield f"+ {source} → {target}  " + _("is written when a worker or poller starts, or by migrate")


def _runs(count: int) -> str:
    return ngettext("%(count)d open run", "%(count)d open runs", count) % {"count": count}

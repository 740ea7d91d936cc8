"""``manage.py timeline_plan``: what is in the database that the tables of machines do not have. Writes nothing."""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator
from typing import Any, Final

from django.core.management.base import CommandError, CommandParser
from django.db import DEFAULT_DB_ALIAS
from django.utils.translation import gettext as _
from django.utils.translation import ngettext

from timeline.definition.machines import table_of
from timeline.exceptions import TimelineError
from timeline.management.piping import PipedCommand
from timeline.reading.machine_plans import MachinePlan, machine_plans
from timeline.registry import registry

HAS_WORK: Final = 2  # Its exit status.


class Command(PipedCommand):
    """Shows what differs."""

    help = (
        "Shows of each machine the states and moves that are in the database, and not in its table. Ends with status 2 where "
        "timeline_apply has something to do, else 0."
    )

    def add_arguments(self, parser: CommandParser) -> None:
        """Take the machine."""
        parser.add_argument("machine", nargs="?", default="", help="Name of a machine (default: all).")
        parser.add_argument("--json", action="store_true", help="Print plain data.")
        parser.add_argument("--database", default=DEFAULT_DB_ALIAS, help="Database alias (default: %(default)s).")

    # The parameters are named after the options.
    def handle(self, *args: Any, machine: str, database: str, **options: Any) -> None:
        """Print the plans."""
        try:
            definitions = [registry.timeline(machine)] if machine else registry.machines()
            for definition in definitions:
                table_of(definition)
        except TimelineError as error:
            raise CommandError(str(error)) from error
        plans = machine_plans(definitions, using=database)
        if options["json"]:
            self.stdout.write(json.dumps([plan.as_data() for plan in plans], indent=2))
        else:
            for plan in plans:
                for line in _lines(plan):
                    self.stdout.write(line)
            if not plans:
                self.stdout.write(_("There is no machine."))
        if any(plan.has_work for plan in plans):
            sys.exit(HAS_WORK)


def _lines(plan: MachinePlan) -> Iterator[str]:
    yield f"{plan.machine}:"
    width = max(map(len, [*plan.states, *plan.stranded, *plan.backs]))
    for state, count in plan.states.items():
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

"""``manage.py timeline_apply``: make the database what the tables of machines say, without leaving a run behind."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from typing import Any, Final

from django.core.management.base import BaseCommand, CommandError, CommandParser
from django.db import DEFAULT_DB_ALIAS
from django.utils.translation import gettext as _

from timeline.clocks import story_now
from timeline.definition import Definition
from timeline.definition.machines import table_of
from timeline.exceptions import TimelineError
from timeline.operations.changing_machines import Change, change_runs, forget_moves, plan_change
from timeline.operations.sets import BATCH
from timeline.reading.machine_plans import machine_plans
from timeline.registry import registry

HAS_MORE: Final = 2  # Its exit status where --max-rows has ended it.


class Command(BaseCommand):
    """Applies what timeline_plan shows."""

    help = (
        "Takes away the moves that the tables of machines do not have any more. Call it when all processes of older code are "
        "gone: they would be refused. Runs in a state that the table lacks are renamed or ended, as you say; it refuses, and "
        "writes nothing, where you have not said it. Ends with status 2 where --max-rows left something to do."
    )

    def add_arguments(self, parser: CommandParser) -> None:
        """Take what is to become of runs."""
        parser.add_argument("machine", nargs="?", default="", help="Name of a machine (default: all).")
        parser.add_argument(
            "--rename",
            action="append",
            default=[],
            metavar="OLD=NEW",
            help="Runs in OLD, which the table lacks, come to NEW; again for each. Needs the machine.",
        )
        parser.add_argument(
            "--end",
            action="append",
            default=[],
            metavar="OLD",
            help="Runs in OLD, which the table lacks, end; what is open of them is cancelled. Needs the machine and --reason.",
        )
        parser.add_argument("--reason", default="", help="Why they end.")
        parser.add_argument("--actor", default="timeline_apply", help="Who does it (default: %(default)s).")
        parser.add_argument(
            "--max-rows", type=int, default=None, help="Change about so many runs at most; call it again."
        )
        parser.add_argument("--batch", type=int, default=BATCH, help="Runs a transaction (default: %(default)s).")
        parser.add_argument("--database", default=DEFAULT_DB_ALIAS, help="Database alias (default: %(default)s).")

    # The parameters are named after the options.
    def handle(self, *args: Any, machine: str, database: str, **options: Any) -> None:
        """Refuse what would leave runs behind; change runs; take moves away."""
        try:
            changes = _changes(machine, options)
            _refuse_strands(changes, database)
            done, is_whole = self._change_runs(changes, options, database)
            gone = [
                f"{change.definition.name}: {source} → {target}"
                for change in changes
                if is_whole
                for source, target in forget_moves(change.definition, using=database)
            ]
        except TimelineError as error:
            raise CommandError(str(error)) from error
        for line in gone:
            self.stdout.write(f"- {line}")
        said = _("Changed %(runs)d runs; took away %(moves)d moves.") % {"runs": done, "moves": len(gone)}
        self.stdout.write(self.style.SUCCESS(said))
        if not is_whole:
            self.stdout.write(_("There is more to do: call it again. No move was taken away."))
            sys.exit(HAS_MORE)

    def _change_runs(self, changes: Sequence[Change], options: dict[str, Any], database: str) -> tuple[int, bool]:
        """Give how many runs were changed, and whether those are all."""
        most, done = options["max_rows"], 0
        if most is not None and most < 1:
            raise CommandError(_("--max-rows: give a whole number, 1 at least."))
        size = min(options["batch"], most or options["batch"])
        for change in changes:
            for count in change_runs(change, size=size, clock=story_now, using=database):
                done += count
                if options["verbosity"] > 1:
                    self.stdout.write(_("%(runs)d runs changed …") % {"runs": done})
                if most is not None and done >= most:
                    left = machine_plans([known.definition for known in changes], using=database)
                    return done, not any(plan.lost for plan in left)
        return done, True


def _changes(machine: str, options: dict[str, Any]) -> list[Change]:
    if not machine:
        if options["rename"] or options["end"]:
            raise CommandError(_("Name the machine whose states you mean."))
        return [plan_change(definition, renamed={}) for definition in registry.machines()]
    definition = registry.timeline(machine)
    table_of(definition)
    renamed: dict[str, str] = {}
    for text in options["rename"]:
        old, sign, new = text.partition("=")
        if not (old and sign and new) or renamed.setdefault(old, new) != new:
            raise CommandError(_("--rename %(text)r: give OLD=NEW, each OLD once.") % {"text": text})
    given = {name: options[name] for name in ("reason", "actor")}
    return [plan_change(definition, renamed=renamed, ended=options["end"], **given)]


def _refuse_strands(changes: Sequence[Change], database: str) -> None:
    """Where runs are in a state that the table lacks, somebody has to say what becomes of them."""
    by_name: dict[str, Definition] = {change.definition.name: change.definition for change in changes}
    told = {change.definition.name: ({*change.renamed}, {*change.renamed, *change.ended}) for change in changes}
    for plan in machine_plans(by_name.values(), using=database):
        renamed, all_told = told[plan.machine]
        left = sorted((set(plan.stranded) - all_told) | (set(plan.backs) - renamed))
        if left:
            text = _(
                "Runs of %(machine)s are in %(states)s, or would go back there, and the table does not have it. Say --rename "
                "OLD=NEW, or --end OLD. Nothing was changed."
            )
            raise CommandError(text % {"machine": plan.machine, "states": ", ".join(left)})

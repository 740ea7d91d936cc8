"""``manage.py timeline_apply``: make the database what the timelines say now, without leaving a run behind."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from typing import Any, Final

from django.core.management.base import BaseCommand, CommandError, CommandParser
from django.utils.translation import gettext as _

from timeline.clocks import story_now
from timeline.definition import Definition
from timeline.exceptions import TimelineError
from timeline.features.machines.declaration import table_of
from timeline.features.machines.plans import Change, change_runs, forget_moves, machine_plans, plan_change
from timeline.features.plans.apply import Choices, apply_choices, check_choices
from timeline.features.plans.drift import cancel_undefined, is_left_behind
from timeline.management.shared import Bar, add_database_option
from timeline.models import TimelineRun
from timeline.operations.sets import BATCH
from timeline.registry import registry

HAS_MORE: Final = 2  # Its exit status where --max-rows has ended it.


class Command(BaseCommand):
    """Applies what timeline_plan shows."""

    help = (
        "Lets the rows of open runs follow what the timelines say now, but for tasks that you keep or cancel. Without a name, "
        "those of all timelines, at once and without asking: timeline_plan shows it before. Cancels open rows of tasks that "
        "the code does not have any more; of whole timelines only if you name them. Takes away the "
        "moves that the tables of machines do not have any more. Call it when all processes of older code are gone: they "
        "would be refused. Runs in a state that the table lacks are renamed or ended, as you say; it refuses, and "
        "writes nothing, where you have not said it. Ends with status 2 where --max-rows left something to do."
    )

    def add_arguments(self, parser: CommandParser) -> None:
        """Take what is to become of runs and their rows."""
        parser.add_argument("timeline", nargs="?", default="", help="Name of a timeline (default: all).")
        parser.add_argument(
            "--keep",
            action="append",
            default=[],
            metavar="TASK",
            help="Its rows stay at their times, and no new ones are made; again for each. Needs the timeline and --reason.",
        )
        parser.add_argument(
            "--cancel",
            action="append",
            default=[],
            metavar="TASK",
            help="Its rows that would change are cancelled, for good; again for each. Needs the timeline and --reason.",
        )
        parser.add_argument(
            "--rename",
            action="append",
            default=[],
            metavar="OLD=NEW",
            help="Runs of a machine in OLD, which its table lacks, come to NEW; again for each. Needs the timeline.",
        )
        parser.add_argument(
            "--end",
            action="append",
            default=[],
            metavar="OLD",
            help="Runs in OLD, which the table lacks, end, with what is open of them. Needs the timeline and --reason.",
        )
        parser.add_argument("--reason", default="", help="Why: kept in the log of all that changes.")
        parser.add_argument("--actor", default="timeline_apply", help="Who does it (default: %(default)s).")
        parser.add_argument("--max-rows", type=int, default=None, help="Change about so many at most; call it again.")
        parser.add_argument("--batch", type=int, default=BATCH, help="Runs a transaction (default: %(default)s).")
        add_database_option(parser)

    # The parameters are named after the options.
    def handle(self, *args: Any, timeline: str, database: str, **options: Any) -> None:
        """Refuse what would leave runs behind; change runs; take moves away; let rows follow."""
        self._left = options["max_rows"]
        if self._left is not None and self._left < 1:
            raise CommandError(_("--max-rows: give a whole number, 1 at least."))
        try:
            if timeline and is_left_behind(timeline, using=database):
                self._drop(timeline, options, database)
            else:
                self._apply(timeline, options, database)
        except TimelineError as error:
            raise CommandError(str(error)) from error

    def _apply(self, timeline: str, options: dict[str, Any], database: str) -> None:
        changes = _changes(timeline, options)
        choices = _choices(timeline, options)
        _refuse_strands(changes, database)
        runs, is_whole = self._change_runs(changes, options, database)
        gone = [
            f"{change.definition.name}: {source} → {target}"
            for change in changes
            if is_whole
            for source, target in forget_moves(change.definition, using=database)
        ]
        rows = self._change_rows(choices, options, database) if is_whole and not self._is_over() else 0
        for line in gone:
            self.stdout.write(f"- {line}")
        if rows or not changes:
            self.stdout.write(self.style.SUCCESS(_("Tasks changed: %(rows)d.") % {"rows": rows}))
        if changes:
            said = _("Runs changed: %(runs)d; moves taken away: %(moves)d.") % {"runs": runs, "moves": len(gone)}
            self.stdout.write(self.style.SUCCESS(said))
        self._end(is_whole)

    def _drop(self, timeline: str, options: dict[str, Any], database: str) -> None:
        """Cancel what is open of a timeline that the code does not have any more."""
        if any(options[name] for name in ("keep", "cancel", "rename", "end")):
            raise CommandError(
                _("The code does not have %(timeline)s any more: nothing of it can be kept or renamed.")
                % {"timeline": timeline}
            )
        rows = self._drop_rows(timeline, options, database)
        self.stdout.write(self.style.SUCCESS(_("Tasks changed: %(rows)d.") % {"rows": rows}))
        self._end(is_whole=True)

    def _drop_rows(self, timeline: str, options: dict[str, Any], database: str) -> int:
        """Give how many rows without a definition were cancelled."""
        done, size = 0, min(options["batch"], self._left or options["batch"])
        for count in cancel_undefined(timeline, actor=options["actor"], size=size, clock=story_now, using=database):
            done += count
            self._count(count)
            if self._is_over():
                break
        return done

    def _end(self, is_whole: bool) -> None:
        """Say whether there is more to do."""
        if not is_whole:
            self.stdout.write(_("There is more to do: call it again. No move was taken away."))
        elif self._is_over():
            self.stdout.write(_("There may be more to do: call it again."))
        if self._is_over():
            sys.exit(HAS_MORE)

    def _is_over(self) -> bool:
        """Whether as much was changed as was allowed."""
        return self._left is not None and self._left <= 0

    def _count(self, done: int) -> None:
        if self._left is not None:
            self._left -= done

    def _change_runs(self, changes: Sequence[Change], options: dict[str, Any], database: str) -> tuple[int, bool]:
        """Give how many runs were changed, and whether those are all."""
        done = 0
        for change in changes:
            size = min(options["batch"], self._left or options["batch"])
            for count in change_runs(change, size=size, clock=story_now, using=database):
                done += count
                self._count(count)
                if options["verbosity"] > 1:
                    self.stdout.write(_("Runs changed: %(runs)d …") % {"runs": done})
                if self._is_over():
                    left = machine_plans([known.definition for known in changes], using=database)
                    return done, not any(plan.lost for plan in left)
        return done, True

    def _change_rows(self, choices: Sequence[Choices], options: dict[str, Any], database: str) -> int:
        """Give how many rows were changed or made."""
        names = [each.definition.name for each in choices]
        total = TimelineRun.objects.using(database).open().filter(timeline__in=names).count()
        done = looked = 0
        with Bar(self.stdout, total) as bar:
            for each in choices:
                size = min(options["batch"], self._left or options["batch"])
                for some in apply_choices(each, size=size, clock=story_now, using=database):
                    looked, done = looked + some.looked, done + some.rows
                    bar.at(looked)
                    self._count(some.rows)
                    if self._is_over():
                        return done
                done += self._drop_rows(each.definition.name, options, database)
                if self._is_over():
                    return done
        return done


def _choices(timeline: str, options: dict[str, Any]) -> list[Choices]:
    if not timeline:
        if options["keep"] or options["cancel"]:
            raise CommandError(_("Name the timeline whose tasks you mean."))
        return [check_choices(definition) for definition in registry]
    given = {name: options[name] for name in ("keep", "cancel", "reason", "actor")}
    return [check_choices(registry.timeline(timeline), **given)]


def _changes(timeline: str, options: dict[str, Any]) -> list[Change]:
    states = options["rename"] or options["end"]
    if not timeline:
        if states:
            raise CommandError(_("Name the machine whose states you mean."))
        return [plan_change(definition, renamed={}) for definition in registry.machines()]
    definition = registry.timeline(timeline)
    if definition.machine is None and not states:
        return []
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

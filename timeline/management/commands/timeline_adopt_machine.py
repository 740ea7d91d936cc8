"""``manage.py timeline_adopt_machine booking --from status --map open=SEARCHING``: a machine for rows that it finds there."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from django.core.management.base import BaseCommand, CommandError, CommandParser
from django.utils.translation import gettext as _
from django.utils.translation import pgettext

from timeline.clocks import story_now
from timeline.exceptions import TimelineError
from timeline.features.machines.adopt_rows import (
    Adopted,
    Adoption,
    ValueFound,
    adopt_rows,
    check_survey,
    plan_adoption,
    survey,
)
from timeline.management.shared import add_rows_options, lookups, pairs, said_of_some


class Command(BaseCommand):
    """Adopts rows for a machine."""

    help = (
        "Begins runs of a machine for rows that were there before it, each in the state that a column says. Shows what it "
        "would do; with --apply it does it, in batches. Rows that have a run are passed over, so that it can be called again."
    )

    def add_arguments(self, parser: CommandParser) -> None:
        """Take the machine, the column and what its values mean."""
        parser.add_argument("machine", help="Name of the machine, e.g. booking.")
        parser.add_argument("--from", required=True, metavar="FIELD", help="Field that says where a row is.")
        parser.add_argument(
            "--map",
            action="append",
            default=[],
            metavar="VALUE=STATE",
            help="What a value means; again for each. NULL is empty: =STATE. A value that is a state means itself.",
        )
        parser.add_argument("--skip", action="append", default=[], metavar="VALUE", help="Leave rows with it alone.")
        parser.add_argument(
            "--back", action="append", default=[], metavar="STATE=STATE", help="Where the BACK of a state leads."
        )
        parser.add_argument(
            "--with-ended", action="store_true", help="Begin runs, ended at once, of rows that are at an end, too."
        )
        add_rows_options(parser, actor="timeline_adopt_machine")

    # The parameters are named after the options.
    def handle(self, *args: Any, machine: str, apply: bool, database: str, **options: Any) -> None:
        """Show the rows by their values; begin their runs if told to."""
        try:
            adoption = _adoption(machine, database, options)
            found = survey(adoption)
            for line in _table(found):
                self.stdout.write(line)
            check_survey(adoption, found)
            if not apply:
                self.stdout.write(_("Nothing was written. Say --apply to do it."))
                return
            done = Adopted()
            for done in adopt_rows(
                adoption, size=options["batch"], actor=options["actor"], clock=story_now, using=database
            ):
                if options["verbosity"] > 1:
                    self.stdout.write(_("%(begun)d begun, %(passed)d passed over …") % done._asdict())
        except TimelineError as error:
            raise CommandError(said_of_some(error, written=apply)) from error
        said = _(
            "Runs begun: %(begun)d. Rows passed over, as they have one, are at an end or are left out: %(passed)d."
        )
        self.stdout.write(self.style.SUCCESS(said % done._asdict()))


def _adoption(machine: str, database: str, options: dict[str, Any]) -> Adoption:
    return plan_adoption(
        machine=machine,
        column=options["from"],
        states=pairs("--map", options["map"], "VALUE=STATE", at_last=True),
        skipped=frozenset(options["skip"]),
        back=pairs("--back", options["back"], "STATE=STATE"),
        filters=lookups(options["filter"]),
        with_ended=options["with_ended"],
        using=database,
    )


def _table(found: Iterable[ValueFound]) -> list[str]:
    rows = [[pgettext("column", "value"), pgettext("timeline", "state"), pgettext("column", "rows"), ""]]
    for known in found:
        left_out = _("left out") if known.is_left_out else ""
        rows.append([repr(known.value), known.state or "?", str(known.rows), left_out])
    widths = [max(len(row[place]) for row in rows) for place in range(3)]
    return [f"{row[0]:<{widths[0]}}  {row[1]:<{widths[1]}}  {row[2]:>{widths[2]}}  {row[3]}".rstrip() for row in rows]

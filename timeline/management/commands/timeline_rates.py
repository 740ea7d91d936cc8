"""``manage.py timeline_rates``: keys of rates that a handler has braked; and the brake of one lifted."""  # of rates

from __future__ import annotations

from typing import Any

from django.core.management.base import CommandError, CommandParser
from django.utils.translation import gettext as _
from django.utils.translation import ngettext

from timeline import shortcuts
from timeline.clocks import story_now
from timeline.exceptions import InvalidInput
from timeline.features.rates.reading import brakes
from timeline.management.shared import PipedCommand, add_database_option
from timeline.told_times import in_utc


class Command(PipedCommand):
    """Shows braked keys, and lifts the brake of one."""

    help = "Shows keys of rates that a handler has braked; --lift lets one go on."

    def add_arguments(self, parser: CommandParser) -> None:
        """Take the key whose brake is lifted, and why."""
        parser.add_argument("--lift", metavar="KEY", help="Lift the brake of this key, or of this kind of task.")
        parser.add_argument("--value", help="Of a rate with by: only for this value of the field.")
        parser.add_argument("--reason", default="", help="Why it is lifted.")
        parser.add_argument("--actor", default="", help="Who decided that.")
        add_database_option(parser)

    # The parameters are named after the options.
    def handle(self, *args: Any, reason: str, actor: str, database: str, **options: Any) -> None:
        """Print what is braked; or lift a brake."""
        if (key := options["lift"]) is not None:
            try:
                woken = shortcuts.lift_brake(key, options["value"], reason=reason, actor=actor, using=database)
            except InvalidInput as error:
                raise CommandError(str(error)) from None
            said = ngettext("%(count)d task looks again.", "%(count)d tasks look again.", woken) % {"count": woken}
            self.stdout.write(self.style.SUCCESS(said))
            return
        found = brakes(now=story_now(database), using=database)
        for name, until in found:
            self.stdout.write(f"{name}: {in_utc(until)}")
        if not found:
            self.stdout.write(_("No rate is braked."))

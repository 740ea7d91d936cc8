"""``manage.py timeline_sweep``: find what no signal saw, now."""

from __future__ import annotations

from typing import Any

from django.core.management.base import BaseCommand, CommandError, CommandParser
from django.utils.translation import gettext as _

from timeline.clocks import story_now
from timeline.conf import get_settings
from timeline.exceptions import NotRunHere
from timeline.features.sweep.verbs import begin_round, sweep
from timeline.management.shared import add_database_option


class Command(BaseCommand):
    """Sweeps."""

    help = (
        "Compares all open runs with their entities and timelines, and new entities with their runs, and mends what no "
        "signal saw. Workers and timeline.maintain do the same by and by."
    )

    def add_arguments(self, parser: CommandParser) -> None:
        """Take the database."""
        add_database_option(parser)

    def handle(self, *args: Any, database: str, **options: Any) -> None:
        """Go through one round."""
        if get_settings().SWEEP_INTERVAL is None:
            raise CommandError(_("TIMELINE['SWEEP_INTERVAL'] is None. Say how often to sweep."))
        looked = mended = started = 0
        begin_round(using=database)
        try:
            while (swept := sweep(now=story_now(database), using=database)).left:
                looked, mended, started = looked + swept.looked, mended + swept.mended, started + swept.started
        except NotRunHere as error:
            raise CommandError(str(error)) from error
        said = _("Rows looked at: %(looked)d. Runs mended: %(mended)d, started: %(started)d.")
        self.stdout.write(said % {"looked": looked, "mended": mended, "started": started})

"""``manage.py timeline_relabel shop.client accounts.user``: rows follow a model that has another label now."""

from __future__ import annotations

from typing import Any

from django.core.management.base import BaseCommand, CommandError, CommandParser
from django.utils.translation import gettext as _

from timeline.exceptions import TimelineError
from timeline.features.maintenance.relabel import relabel
from timeline.management.shared import add_database_option


class Command(BaseCommand):
    """Relabels."""

    help = "Lets the rows of a model that was renamed or moved name their entities by its new label."

    def add_arguments(self, parser: CommandParser) -> None:
        """Take the two labels."""
        parser.add_argument("old", help="Label as the rows have it, e.g. shop.client.")
        parser.add_argument("new", help="Label of the model now, e.g. accounts.user.")
        add_database_option(parser)

    def handle(self, *args: Any, old: str, new: str, database: str, **options: Any) -> None:
        """Relabel, and say how many rows it were."""
        try:
            done = relabel(old=old, new=new, using=database)
        except TimelineError as error:
            raise CommandError(str(error)) from error
        said = _("Relabelled: events %(events)d, runs %(runs)d, tasks %(tasks)d.")
        self.stdout.write(said % done._asdict())

"""``manage.py timeline_adopt``: make a database this site's, with or without what is open in it."""

from __future__ import annotations

from typing import Any

from django.core.management.base import BaseCommand, CommandError, CommandParser
from django.utils import translation
from django.utils.translation import gettext as _

from timeline.clocks import story_now
from timeline.conf import get_settings
from timeline.exceptions import WrongSite
from timeline.features.maintenance.adopt import Open, adopt, clear, count_open
from timeline.lifecycle import Reason
from timeline.management.shared import add_database_option
from timeline.store.site import confirm_site


class Command(BaseCommand):
    """Adopts a database."""

    help = (
        'Makes a database that of TIMELINE["SITE"], so that workers run what is in it. After restoring a copy of another '
        "site's database, say --clear: its customers must not hear from you."
    )

    def add_arguments(self, parser: CommandParser) -> None:
        """Take what is to become of what is open."""
        choice = parser.add_mutually_exclusive_group()
        choice.add_argument("--clear", action="store_true", help="Cancel all that is open, for good.")
        choice.add_argument("--keep", action="store_true", help="Keep all that is open: it will run here.")
        add_database_option(parser)

    # The parameters are named after the options.
    def handle(self, *args: Any, clear: bool, keep: bool, database: str, **options: Any) -> None:
        """Adopt it; where something is open, only if told what to do with that."""
        site = get_settings().SITE
        theirs = _other_site(database)
        said = {"database": database, "whose": _named(site)}
        if theirs is None:
            self.stdout.write(_("The database %(database)s is %(whose)s already. Nothing was changed.") % said)
            return
        found = count_open(using=database)
        if any(found) and not (clear or keep):
            raise CommandError(
                _(
                    "The database %(database)s is %(whose)s. Open in it are: runs %(runs)d, tasks %(tasks)d. Say "
                    "--clear to cancel them (a copy), or --keep to run them here (the site has a new name)."
                )
                % {"database": database, "whose": _named(theirs), **found._asdict()}
            )
        now = story_now(database)
        ended = _clear(site, database) if clear else Open()
        adopt(now=now, using=database)
        self.stdout.write(
            _("The database %(database)s is now %(whose)s. Runs ended: %(runs)d, tasks cancelled: %(tasks)d.")
            % {**said, **ended._asdict()}
        )


def _clear(site: str, database: str) -> Open:
    with translation.override("en"):  # What rows keep is the same for all readers.
        text = f"the database was taken over by {_named(site)}"
    return clear(reason=Reason.operator(text, "timeline_adopt"), now=story_now(database), using=database)


def _other_site(database: str) -> str | None:
    try:
        confirm_site(using=database)
    except WrongSite as error:
        return error.theirs
    return None


def _named(site: str) -> str:
    return _("the site %(site)r's") % {"site": site} if site else _("of no named site")

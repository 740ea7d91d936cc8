"""``manage.py timeline_limits``: who holds the places of each key, who waits; and a key that is closed opened."""  # of limits

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

from django.core.management.base import CommandError, CommandParser
from django.utils.translation import gettext as _
from django.utils.translation import ngettext, pgettext

from timeline import shortcuts
from timeline.exceptions import InvalidInput
from timeline.features.limits.reading import LimitEntry, limits
from timeline.lifecycle import State
from timeline.management.shared import PipedCommand, add_database_option


class Command(PipedCommand):
    """Shows limits, and opens one."""

    help = "Shows of each limit who holds its places and how many tasks wait; --open opens one that is closed."

    def add_arguments(self, parser: CommandParser) -> None:
        """Take the key to open, and why."""
        parser.add_argument("--open", metavar="KEY", help="Open this key, which a task has left closed.")
        parser.add_argument("--reason", default="", help="Why it is opened.")
        parser.add_argument("--actor", default="", help="Who decided that.")
        parser.add_argument("--json", action="store_true", help="Print plain data.")
        add_database_option(parser)

    # The parameters are named after the options.
    def handle(self, *args: Any, reason: str, actor: str, database: str, **options: Any) -> None:
        """Print the limits; or open one."""
        if (key := options["open"]) is not None:
            try:
                done = shortcuts.open_limit(key, reason=reason, actor=actor, using=database)
            except InvalidInput as error:
                raise CommandError(str(error)) from None
            said = ngettext("%(count)d place is free.", "%(count)d places are free.", len(done))
            self.stdout.write(self.style.SUCCESS(said % {"count": len(done)}))
            return
        found = limits(using=database)
        if options["json"]:
            self.stdout.write(json.dumps([each.as_data() for each in found], indent=2))
            return
        for entry in found:
            for line in _lines(entry):
                self.stdout.write(line)
        if not found:
            self.stdout.write(_("Nothing holds a place, and nothing waits for one."))


def _lines(entry: LimitEntry) -> Iterator[str]:
    said = ngettext("%(count)d task waits", "%(count)d tasks wait", entry.waiting) % {"count": entry.waiting}
    yield f"{entry.key}: {said}"
    for place in entry.places:
        told = [str(place.slot), place.task_key, place.task_id, str(State(place.state).label), place.since]
        yield "  " + "  ".join(filter(None, [*told, pgettext("timeline", "CLOSED") if place.is_closed else ""]))

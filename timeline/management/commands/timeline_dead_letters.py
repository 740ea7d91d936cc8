"""``manage.py timeline_dead_letters``: what was discarded, in groups; and a group run again."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any

from django.core.management.base import CommandError, CommandParser
from django.core.serializers.json import DjangoJSONEncoder
from django.utils.translation import gettext as _
from django.utils.translation import ngettext, pgettext

from timeline import shortcuts
from timeline.exceptions import InvalidInput
from timeline.management.shared import PipedCommand, add_database_option, length
from timeline.models import ScheduledTask
from timeline.reading.dead_letters import DeadLetters, dead_letters
from timeline.timing import in_utc

MAX_MESSAGE = 100


class Command(PipedCommand):
    """Shows groups of dead letters, and redrives one."""

    help = (
        "Shows tasks that were discarded and not redriven since, in groups that failed alike; --redrive runs one again."
    )

    def add_arguments(self, parser: CommandParser) -> None:
        """Take the group, and what to do with it."""
        parser.add_argument(
            "group", nargs="?", default="", help="Just this group: its fingerprint, as the list shows it."
        )
        parser.add_argument("--json", action="store_true", help="Print plain data.")
        parser.add_argument("--redrive", metavar="REASON", help="Run the group again, for this reason.")
        parser.add_argument("--spread", metavar="6h", help="Within which the tasks become due (default: at once).")
        parser.add_argument("--actor", default="", help="Who decided that.")
        add_database_option(parser)

    # The parameters are named after the options.
    def handle(self, *args: Any, group: str, redrive: str | None, database: str, **options: Any) -> None:
        """Print the groups; or redrive one."""
        found = dead_letters(ScheduledTask.objects.using(database).all(), group)
        if group and not found:
            raise CommandError(_("There are no dead letters of the group %(group)s.") % {"group": group})
        if redrive is not None or options["spread"] is not None:
            self._redrive(group, redrive, database, **options)
        elif options["json"]:
            self.stdout.write(json.dumps([each.as_data() for each in found], cls=DjangoJSONEncoder, indent=2))
        elif found:
            self.stdout.write("\n".join(_table(found)))
        else:
            self.stdout.write(self.style.SUCCESS(_("There are no dead letters.")))

    def _redrive(
        self, group: str, reason: str | None, using: str, *, spread: str | None, actor: str, **_rest: Any
    ) -> None:
        if not group or not reason:
            raise CommandError(_("Name the group to redrive, and give the reason: GROUP --redrive REASON."))
        try:
            done = shortcuts.redrive_group(
                group, reason=reason, actor=actor, spread=length("--spread", spread), using=using
            )
        except InvalidInput as error:
            raise CommandError(str(error)) from None
        said = ngettext("%(count)d task runs again.", "%(count)d tasks run again.", done.redriven)
        self.stdout.write(self.style.SUCCESS(said % {"count": done.redriven}))
        for task_id, why in done.left.items():
            self.stdout.write(self.style.WARNING(f"{task_id}: {why}"))


def _table(found: Sequence[DeadLetters]) -> list[str]:
    """One line a group, in columns."""
    heads = [pgettext("timeline", "group"), pgettext("timeline", "task"), pgettext("timeline", "count")]
    heads += [pgettext("timeline", "first"), pgettext("timeline", "last"), pgettext("timeline", "sample")]
    rows = [
        [each.group, each.task_key, str(each.count), in_utc(each.first_at), in_utc(each.last_at), _in_a_line(each)]
        for each in found
    ]
    widths = [max(len(row[column]) for row in [heads, *rows]) for column in range(len(heads))]
    return [
        "  ".join(text.ljust(width) for text, width in zip(row, widths, strict=True)).rstrip() for row in [heads, *rows]
    ]


def _in_a_line(each: DeadLetters) -> str:
    line = " ".join(each.message.split())
    return line if len(line) <= MAX_MESSAGE else f"{line[: MAX_MESSAGE - 1]}…"

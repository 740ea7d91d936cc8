"""``manage.py timeline_doctor``: is what is due being run?"""

from __future__ import annotations

import json
import time
from argparse import ArgumentTypeError
from typing import Any

from django.core.management.base import CommandParser
from django.core.serializers.json import DjangoJSONEncoder
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy, ngettext, pgettext

from timeline.clocks import story_now
from timeline.dispatch.worker_signs import tell_if_unpolled, tell_troubles
from timeline.management.shared import PipedCommand, add_database_option, wrapped
from timeline.reading.attention import told_count, waiting_in_words
from timeline.reading.diagnosis import Health, databases, diagnose
from timeline.timing import in_utc

_CLOSED = gettext_lazy("A limit is closed: a task was started and did not complete. See manage.py timeline_limits.")
_DISCARDED = gettext_lazy(
    "Tasks were discarded in the last 24 hours. See their errors, mend the cause, and redrive them."
)


class Command(PipedCommand):
    """Says well or sick."""

    help = "Says whether due tasks are being run, and what is wrong if not. Exit status 1 if something is."

    def add_arguments(self, parser: CommandParser) -> None:
        """Take the database and the form."""
        add_database_option(parser, default=None, help="Database alias (default: all that have tasks).")
        parser.add_argument(
            "--watch",
            type=_seconds,
            metavar="SECONDS",
            help="Look each so many seconds, and write to TIMELINE['ALERTS'] if nobody polls, or sends webhooks.",
        )
        parser.add_argument("--json", action="store_true", help="Print plain data, as the health view does.")

    # The parameters are named after the options.
    def handle(self, *args: Any, database: str | None, json: bool, watch: float | None, **options: Any) -> None:
        """Look, print, and end with the status; with ``--watch``, go on until it is stopped."""
        while watch is not None:
            self._look(database, json)
            for alias in [database] if database else databases():
                tell_if_unpolled(using=alias)
                tell_troubles(using=alias)
            self.stdout.flush()
            time.sleep(watch)
        if not self._look(database, json):
            raise SystemExit(1)

    def _look(self, database: str | None, json: bool) -> bool:
        found = [diagnose(now=story_now(alias), using=alias) for alias in ([database] if database else databases())]
        self.stdout.write(_as_text(found) if json else "\n".join(line for each in found for line in self._lines(each)))
        return all(each.well for each in found)

    def _lines(self, found: Health) -> list[str]:
        good, bad = self.style.SUCCESS(pgettext("timeline", "well")), self.style.ERROR(pgettext("timeline", "sick"))
        told = _told(found)
        width = max(10, *(len(name) for name, _value in told))
        lines = [f"  {name:<{width}} {value}" for name, value in told]
        wrong = [
            *found.problems,
            *found.troubles,
            *([_DISCARDED] if found.discarded else []),
            *([_CLOSED] if found.closed_limits else []),
        ]
        return [
            f"{found.database}: {good if found.well else bad}",
            *map(wrapped, lines),
            *(self.style.WARNING(wrapped(f"  {said}")) for said in wrong),
        ]


def _seconds(text: str) -> float:
    try:
        seconds = float(text)
    except ValueError:
        seconds = 0
    if not 1 <= seconds <= 3600:
        raise ArgumentTypeError(_("%(text)r is not allowed. Give 1 to 3600 seconds.") % {"text": text})
    return seconds


def _told(found: Health) -> list[tuple[str, str]]:
    """Names and values, as people read them."""
    overdue = told_count(found.overdue)
    if found.oldest_overdue_at:
        overdue = _("%(count)s, the oldest since %(at)s") % {"count": overdue, "at": in_utc(found.oldest_overdue_at)}
    polled = f"{found.polled_at:%Y-%m-%d %H:%M:%S} UTC" if found.polled_at else pgettext("timeline", "never")
    told = [
        (pgettext("timeline", "polled"), polled),
        (pgettext("timeline", "overdue"), overdue),
        (pgettext("timeline", "on hold"), _held(found) if found.holds else ""),
        (pgettext("timeline", "closed"), ", ".join(found.closed_limits)),
        (pgettext("timeline", "claimed"), told_count(found.pending)),
        (pgettext("timeline", "active"), told_count(found.active)),
        (pgettext("timeline", "stuck"), told_count(found.stuck)),
        (pgettext("timeline", "retrying"), told_count(found.retrying) if found.retrying else ""),
        (pgettext("timeline", "waiting"), ", ".join(waiting_in_words(found.waiting).values())),
        (pgettext("timeline", "discarded"), _discards(found)),
        (pgettext("timeline", "missing"), ", ".join(found.missing_triggers)),
        (pgettext("timeline", "unknown"), ", ".join(f"{each['task_key']} {each['count']}" for each in found.undefined)),
        (pgettext("timeline", "snapshot"), _snapshot(found)),
    ]
    return [(name, value) for name, value in told if value]


def _held(found: Health) -> str:
    """How many due tasks, and by how many holds."""
    said = ngettext("%(count)s due, by %(holds)d hold", "%(count)s due, by %(holds)d holds", found.holds)
    return said % {"count": told_count(found.held), "holds": found.holds}


def _snapshot(found: Health) -> str:
    """What the session that holds the oldest snapshot does: its state, and its last query."""
    held = found.snapshot
    if held is None:
        return ""
    asked = in_utc(held.asked_at) if held.asked_at is not None else ""
    return ", ".join(filter(None, (held.state, asked, held.query)))


def _discards(found: Health) -> str:
    """How many of which task, and the last one's error."""
    return ", ".join(f"{each['task_key']} {each['count']} ({each['error']})" for each in found.discards)


def _as_text(found: list[Health]) -> str:
    return json.dumps([each.as_data() for each in found], cls=DjangoJSONEncoder, indent=2)

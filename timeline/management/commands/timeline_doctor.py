"""``manage.py timeline_doctor``: is what is due being run?"""

from __future__ import annotations

import json
from typing import Any

from django.core.management.base import BaseCommand, CommandParser
from django.core.serializers.json import DjangoJSONEncoder

from timeline.clocks import story_now
from timeline.reading.diagnosing import MOST, Health, databases, diagnose


class Command(BaseCommand):
    """Says well or sick."""

    help = "Says whether due tasks are being run, and what is wrong if not. Exit status 1 if something is."

    def add_arguments(self, parser: CommandParser) -> None:
        """Take the database and the form."""
        parser.add_argument("--database", help="Database alias (default: all that have tasks).")
        parser.add_argument("--json", action="store_true", help="Print plain data, as the health view does.")

    # The parameters are named after the options.
    def handle(self, *args: Any, database: str | None, json: bool, **options: Any) -> None:
        """Look, print, and end with the status."""
        found = [diagnose(now=story_now(alias), using=alias) for alias in ([database] if database else databases())]
        self.stdout.write(_as_text(found) if json else "\n".join(line for each in found for line in self._lines(each)))
        if not all(each.well for each in found):
            raise SystemExit(1)

    def _lines(self, found: Health) -> list[str]:
        word = self.style.SUCCESS("well") if found.well else self.style.ERROR("sick")
        polled = f"{found.polled_at:%Y-%m-%d %H:%M:%S} UTC" if found.polled_at else "never"
        late = f", the oldest since {found.oldest_overdue_at:%Y-%m-%d %H:%M} UTC" if found.oldest_overdue_at else ""
        lines = [
            f"{found.database}: {word}",
            f"  polled     {polled}",
            f"  overdue    {_counted(found.overdue)}{late}",
            f"  claimed    {_counted(found.pending)}",
            f"  active     {_counted(found.active)}",
            f"  stuck      {_counted(found.stuck)}",
        ]
        if found.missing_triggers:
            lines.append(f"  missing    {', '.join(found.missing_triggers)}")
        if found.unknown_task_keys:
            lines.append(f"  unknown    {', '.join(found.unknown_task_keys)}")
        return [*lines, *(self.style.WARNING(f"  {problem}") for problem in found.problems)]


def _counted(number: int) -> str:
    return f"{number:,} or more" if number >= MOST else f"{number:,}"


def _as_text(found: list[Health]) -> str:
    return json.dumps([each.as_data() for each in found], cls=DjangoJSONEncoder, indent=2)

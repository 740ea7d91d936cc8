"""``manage.py timeline_install_beat``: put the poll and the maintenance into django-celery-beat's tables."""

from __future__ import annotations

import json
from datetime import timedelta
from typing import Any, Final

from django.apps import apps
from django.core.management.base import BaseCommand, CommandError, CommandParser
from django.db import DEFAULT_DB_ALIAS, transaction

from timeline.conf import get_settings
from timeline.tasks.sending import poll_queue, queue_of

MAINTAIN_EVERY: Final = timedelta(hours=1)


class Command(BaseCommand):
    """Installs the beat schedule."""

    help = "Puts timeline.poll and timeline.maintain into django-celery-beat's tables. Run it after each change of settings."

    def add_arguments(self, parser: CommandParser) -> None:
        """Take the database whose rows are polled."""
        parser.add_argument(
            "--database", default=DEFAULT_DB_ALIAS, help="Alias of the database that is polled (default: %(default)s)."
        )

    def handle(self, *args: Any, database: str, **options: Any) -> None:
        """Write two rows, or bring them up to date; one that somebody disabled stays disabled."""
        if not apps.is_installed("django_celery_beat"):
            raise CommandError(
                'Add "django_celery_beat" to INSTALLED_APPS (extra "celery"), migrate, and run this again.'
            )
        interval = get_settings().POLL_INTERVAL
        with transaction.atomic():
            for task, every, queue, expires in (
                ("timeline.poll", interval, poll_queue(), max(round(interval.total_seconds()), 1)),
                ("timeline.maintain", MAINTAIN_EVERY, queue_of("default"), round(MAINTAIN_EVERY.total_seconds())),
            ):
                verb = _install(f"{task} ({database})", task, database, every, queue=queue, expire_seconds=expires)
                self.stdout.write(f"{verb} {task} for the database {database}, every {every.total_seconds():g} s.")


def _install(name: str, task: str, database: str, every: timedelta, **columns: object) -> str:
    models = apps.get_app_config("django_celery_beat")
    schedule: Any = models.get_model("IntervalSchedule")
    entry: Any = models.get_model("PeriodicTask")
    whole = every % timedelta(seconds=1) == timedelta(0)
    period = schedule.SECONDS if whole else schedule.MICROSECONDS
    unit = timedelta(seconds=1) if whole else timedelta(microseconds=1)
    interval, _new = schedule.objects.get_or_create(every=every // unit, period=period)
    wanted = {
        "task": task,
        "interval": interval,
        "crontab": None,
        "solar": None,
        "clocked": None,
        "kwargs": json.dumps({"using": database}),
        "description": "Installed by manage.py timeline_install_beat.",
        **columns,
    }
    _row, created = entry.objects.update_or_create(name=name, defaults=wanted)
    return "Installed" if created else "Updated"

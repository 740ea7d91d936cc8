"""``manage.py timeline_install_beat``: put the poll and the maintenance into django-celery-beat's tables."""

from __future__ import annotations

import json
from datetime import timedelta
from typing import Any, Final

from django.apps import apps
from django.core.management.base import BaseCommand, CommandError, CommandParser
from django.db import DEFAULT_DB_ALIAS, transaction
from django.utils.translation import gettext as _

from timeline.conf import get_settings
from timeline.tasks.sending import poll_queue, queue_of

MAINTAIN_EVERY: Final = timedelta(minutes=1)  # A step of the sweep; most calls have nothing to do.


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
                _('Add "django_celery_beat" to INSTALLED_APPS (extra "celery"), migrate, and run this again.')
            )
        interval = get_settings().POLL_INTERVAL
        with transaction.atomic():
            for task, every, queue, expires in (
                ("timeline.poll", interval, poll_queue(), max(round(interval.total_seconds()), 1)),
                ("timeline.maintain", MAINTAIN_EVERY, queue_of("default"), round(MAINTAIN_EVERY.total_seconds())),
            ):
                is_new = _install(f"{task} ({database})", task, database, every, queue=queue, expire_seconds=expires)
                said = _("Updated %(task)s for the database %(database)s, every %(seconds)g s.")
                if is_new:
                    said = _("Installed %(task)s for the database %(database)s, every %(seconds)g s.")
                values = {"task": task, "database": database, "seconds": every.total_seconds()}
                self.stdout.write(said % values)


def _install(name: str, task: str, database: str, every: timedelta, **columns: object) -> bool:
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
    created: bool
    _row, created = entry.objects.update_or_create(name=name, defaults=wanted)
    return created

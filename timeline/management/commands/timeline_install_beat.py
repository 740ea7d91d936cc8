"""``manage.py timeline_install_beat``: put the poll and the maintenance into django-celery-beat's tables, or take them out."""

from __future__ import annotations

import json
from collections.abc import Iterable
from datetime import timedelta
from typing import Any, Final

from django.apps import apps
from django.core.management.base import BaseCommand, CommandError, CommandParser
from django.db import DEFAULT_DB_ALIAS, connections, router, transaction
from django.utils.translation import gettext as _

from timeline.conf import get_settings
from timeline.management.shared import add_database_option
from timeline.registry import registry

try:
    from timeline.tasks.broker import poll_queue, queue_of
except ModuleNotFoundError as error:
    problem = _(
        'timeline_install_beat writes what Celery\'s beat sends; %(error)s. Install the extras "celery" and "beat", or run '
        "timeline_worker, which needs neither."
    )
    raise CommandError(problem % {"error": error}) from error

MAINTAIN_EVERY: Final = timedelta(minutes=1)  # A step of the sweep; most calls have nothing to do.
TASKS: Final = ("timeline.poll", "timeline.maintain")
OURS: Final = "Installed by manage.py timeline_install_beat."  # Description of a row, whatever it has been renamed to.


class Command(BaseCommand):
    """Installs the beat schedule, and removes it."""

    help = "Puts timeline.poll and timeline.maintain into django-celery-beat's tables. Run it after each change of settings."

    def add_arguments(self, parser: CommandParser) -> None:
        """Take the database whose rows are polled."""
        add_database_option(parser, help="Alias of the database that is polled (default: %(default)s).")
        parser.add_argument(
            "--remove",
            action="store_true",
            help="Take them out again, with intervals that nothing else uses: before this app is taken out.",
        )

    # The parameters are named after the options.
    def handle(self, *args: Any, database: str, remove: bool, **options: Any) -> None:
        """Write two rows, or bring them up to date; one that somebody disabled stays disabled. Or remove them."""
        if not _is_there():
            problem = _(
                'Add "django_celery_beat" to INSTALLED_APPS (extra "beat"), migrate, and run this again. '
                "Where your Django is too new for it, run timeline_poll instead of beat."
            )
            if remove:
                problem = _(
                    '"django_celery_beat" is not in INSTALLED_APPS, or not migrated: its tables cannot be looked at from here. '
                    "If beat never ran on this site, there is nothing to remove."
                )
            raise CommandError(problem)
        with transaction.atomic(using=router.db_for_write(_model("PeriodicTask"))):
            self._remove(database) if remove else self._install(database)

    def _install(self, database: str) -> None:
        interval = get_settings().POLL_INTERVAL
        for task, every, queue, expires in (
            ("timeline.poll", interval, poll_queue(), max(round(interval.total_seconds()), 1)),
            ("timeline.maintain", MAINTAIN_EVERY, queue_of("default"), round(MAINTAIN_EVERY.total_seconds())),
        ):
            is_new = _install(task, database, every, queue=queue, expire_seconds=expires)
            said = _("Updated %(task)s for the database %(database)s, every %(seconds)g s.")
            if is_new:
                said = _("Installed %(task)s for the database %(database)s, every %(seconds)g s.")
            values = {"task": task, "database": database, "seconds": every.total_seconds()}
            self.stdout.write(said % values)

    def _remove(self, database: str) -> None:
        ours = _entries_of(*TASKS)
        removed = [entry for entry in ours if _database_of(entry) in (database, None)]
        for entry in removed:
            entry.delete()  # Each by itself: beat hears of it.
            self.stdout.write(_("Removed %(name)s.") % {"name": entry.name})
        _delete_unused(entry.interval for entry in removed if entry.interval)
        if not removed:
            self.stdout.write(_("There is nothing of the database %(database)s to remove.") % {"database": database})
        for other in sorted({_database_of(entry) or database for entry in ours} - {database}):
            said = _("That of the database %(database)s stays. To remove it, add --database %(database)s.")
            self.stdout.write(said % {"database": other})
        queues = {queue_of(task.options.queue) for timeline in registry for task in timeline.tasks.values()}
        purge = f"celery -A … purge -Q {','.join(sorted(queues | {poll_queue(), queue_of('default')}))}"
        self.stdout.write(_("What is in the queues already stays there, until: %(command)s") % {"command": purge})


def _model(name: str) -> Any:
    return apps.get_app_config("django_celery_beat").get_model(name)


def _is_there() -> bool:
    if not apps.is_installed("django_celery_beat"):
        return False
    model = _model("PeriodicTask")
    return model._meta.db_table in connections[router.db_for_write(model)].introspection.table_names()


def _entries_of(*tasks: str) -> list[Any]:
    return list(_model("PeriodicTask").objects.filter(task__in=tasks).order_by("pk"))


def _install(task: str, database: str, every: timedelta, **columns: object) -> bool:
    """Write the row of a task, or bring it up to date, also under a name that somebody gave it; say whether it is new."""
    wanted = {
        "task": task,
        "interval": _interval_of(every),
        "crontab": None,
        "solar": None,
        "clocked": None,
        "kwargs": json.dumps({"using": database}),
        "expires": None,  # Beat refuses a row that has both this and seconds.
        "description": OURS,
        **columns,
    }
    name = _name_of(task, database)
    known = [entry for entry in _entries_of(task) if entry.description == OURS and _database_of(entry) == database]
    if known and name not in [entry.name for entry in known]:
        name = known[0].name
    created: bool
    _row, created = _model("PeriodicTask").objects.update_or_create(name=name, defaults=wanted)
    return created


def _name_of(task: str, database: str) -> str:
    return f"{task} ({database})"


def _interval_of(every: timedelta) -> Any:
    """Find the schedule of an interval, or make it. There may be several: nothing in beat's tables says otherwise."""
    schedule = _model("IntervalSchedule")
    whole = every % timedelta(seconds=1) == timedelta(0)
    period = schedule.SECONDS if whole else schedule.MICROSECONDS
    unit = timedelta(seconds=1) if whole else timedelta(microseconds=1)
    same = {"every": every // unit, "period": period}
    return schedule.objects.filter(**same).order_by("pk").first() or schedule.objects.create(**same)


def _database_of(entry: Any) -> str | None:
    """The database of a row of beat's, also if written by hand; None: its arguments are none that beat could send."""
    try:
        given = json.loads(entry.kwargs or "{}") or {}  # As beat takes them.
    except ValueError:
        given = None
    using = given.get("using", DEFAULT_DB_ALIAS) if isinstance(given, dict) else None
    if using and isinstance(using, str):
        return using
    database: str = entry.name.removeprefix(f"{entry.task} (").removesuffix(")")
    return database if entry.name == _name_of(entry.task, database) else None


def _delete_unused(intervals: Iterable[Any]) -> None:
    """Delete intervals that nothing names any more, be it of beat's or of the host's."""
    for interval in {interval.pk: interval for interval in intervals}.values():
        users = (relation.field for relation in interval._meta.related_objects)
        if not any(field.model._base_manager.filter(**{field.name: interval}).exists() for field in users):
            interval.delete()

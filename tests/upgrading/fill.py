"""
Fills a database by a version of the past, and prints its rows: how the files beside this one were made.

It is run by that version, with its tests' settings, and not by this one::

    git worktree add --detach ../then COMMIT
    cd ../then
    PYTHONPATH=. TEST_FOLDER=/tmp python …/tests/upgrading/fill.py > …/tests/upgrading/NAME.json

``first.json`` was made by bf5f245, the first that a site could install, and ``version_0_1_0.json`` by 5111802, version 0.1.0.
"""

import json
import os
from contextlib import suppress
from datetime import UTC, datetime, timedelta
from pathlib import Path
from unittest import mock

import django

os.environ.setdefault("DJANGO_SETTINGS_MODULE", "tests.settings")
django.setup()

from django.apps import apps  # noqa: E402
from django.core.management import call_command  # noqa: E402
from django.db import connection  # noqa: E402
from django.db.migrations.recorder import MigrationRecorder  # noqa: E402

from project.accounts import mails, services  # noqa: E402
from project.accounts.models import User  # noqa: E402
from tests.testapp.models import Order  # noqa: E402
from timeline.dispatch.claiming import claim  # noqa: E402
from timeline.engine.running import run  # noqa: E402
from timeline.models import ScheduledTask  # noqa: E402
from timeline.shortcuts import cancel, leave, move, redrive, run_now, schedule, start  # noqa: E402
from timeline.testing import StoryClock  # noqa: E402

BEGIN = datetime(2026, 1, 5, 9, 0, tzinfo=UTC)


def refuse(user):
    raise ValueError("no such address")


def interrupt(user):
    raise KeyboardInterrupt


def sign_up(clock, name):
    return services.sign_up(f"{name}@example.com", f"{name}.example", now=clock.now)


def tasks_of(user, key):
    return ScheduledTask.objects.for_entity(user).filter(task_key=key)


def live(clock):
    """Two months of a small site."""
    paying, closing, expiring, leaving = (sign_up(clock, name) for name in ("ada", "ben", "cyd", "dan"))
    mailed = Order.objects.create(note="ad hoc")
    schedule("crash_case.plain_write", mailed, at=clock.now + timedelta(days=40), payload={"n": [1, 2.5, None, "ü"]})
    start("trial", expiring, key="second", params={"by": "hand"})
    clock.advance(days=3)
    services.configure_payment(paying, now=clock.now)  # An exit.
    services.close_trial(closing, now=clock.now)
    leave("trial", leaving, reason="moved away", actor="ops@example.com")
    clock.advance(days=30)  # What was left of them ran; some of it cancelled by guards.
    services.extend_trial(expiring, 10, now=clock.now)

    failing, moved, called_off = (sign_up(clock, name) for name in ("eve", "fay", "gus"))
    with mock.patch.object(mails, "send_reminder", refuse):
        clock.advance(days=27)  # Tried five times, and discarded.
    [discarded] = tasks_of(failing, "trial.remind").filter(state="discarded")
    [_again] = redrive([discarded], reason="address corrected", actor="ops@example.com")
    clock.run_due()
    move(tasks_of(moved, "trial.expire"), at=clock.now + timedelta(days=9), reason="asked", actor="ops@example.com")
    cancel(tasks_of(called_off, "trial.expire"), reason="a friend", actor="ops@example.com")

    # What is open is in all of the five states.
    waiting = [sign_up(clock, name) for name in ("hal", "ida", "jon", "kim", "lea")]
    reminders = [tasks_of(user, "trial.remind").get() for user in waiting]
    run_now(reminders[1:], reason="now", actor="ops@example.com")
    with mock.patch.object(mails, "send_reminder", refuse):
        run(task_ids=[reminders[1].pk], clock=lambda: clock.now, using="default", worker="mail:1")
    claim(limit=1, now=clock.now, using="default")
    with mock.patch.object(mails, "send_reminder", interrupt), suppress(KeyboardInterrupt):
        [ready, *_others] = ScheduledTask.objects.ready()
        run(task_ids=[ready.pk], clock=lambda: clock.now, using="default", worker="mail:1")
    schedule("crash_case.note", Order.objects.create(note="later"), at=clock.now + timedelta(days=1), key="once")


def rows_of(model):
    columns = model._meta.concrete_fields
    rows = [[plain(getattr(row, field.attname)) for field in columns] for row in model.objects.order_by("pk")]
    return {"columns": [field.attname for field in columns], "rows": rows}


def as_text(table):
    """One row a line; a traceback names files as they are in the package."""
    rows = ",\n".join(
        json.dumps(row, ensure_ascii=False).replace(f"{Path.cwd()}/", "").replace(__file__, "fill.py")
        for row in table["rows"]
    )
    return f'{{"model": "{table["model"]}", "columns": {json.dumps(table["columns"])}, "rows": [\n{rows}\n]}}'


def migration():
    """The last one of that version."""
    return max(name for app, name in MigrationRecorder(connection).applied_migrations() if app == "timeline")


def plain(value):
    if isinstance(value, datetime):
        return value.isoformat()
    return value if value is None or isinstance(value, (str, int, float, bool, list, dict)) else str(value)


def main():
    call_command("migrate", verbosity=0, run_syncdb=True)
    with StoryClock(BEGIN) as clock:
        live(clock)
        states = set(ScheduledTask.objects.values_list("state", flat=True))
        assert len(states) == 8, states
        models = [*apps.get_app_config("timeline").get_models(), User, Order]
        tables = [{"model": model._meta.label_lower, **rows_of(model)} for model in models]
    print(f'{{"migration": "{migration()}", "at": "{clock.now.isoformat()}", "tables": [')
    print(",\n".join(as_text(table) for table in tables))
    print("]}")


main()

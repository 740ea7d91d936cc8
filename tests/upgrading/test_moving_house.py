"""
A site that moves to another database by ``dumpdata`` and ``loaddata``, and back: nothing collides, and it goes on.

On PostgreSQL the other database is SQLite's.
"""

from __future__ import annotations

from collections.abc import Iterator
from datetime import datetime
from pathlib import Path
from typing import Any, ClassVar

import pytest
from django.apps import apps
from django.core.management import call_command
from django.db import connection, connections

from tests.testapp.models import Order
from timeline import Machine, Timeline, after, created, never, on, task
from timeline.models import Edge, LogEntry, ScheduledTask, TimelineRun
from timeline.shortcuts import emit, redrive, schedule
from timeline.testing import only_timelines

pytestmark = pytest.mark.django_db(transaction=True, databases=["default", "moved"])

AWAY = "moved"
OF_THE_SITE = ("testapp.order",)


class Gate(Machine):
    entity = "testapp.Order"
    starts_on = "gate.made"
    initial = "shut"
    table: ClassVar = {
        "shut": {"gate.opened": "open"},
        "open": {"gate.closed": "shut", "gate.late": "over"},
        "over": {},
    }
    timers: ClassVar = {"gate.late": on("open", days=30), ("shut",): never}


class Care(Timeline):
    entity = "testapp.Order"
    starts_on = created()

    @task(after(days=1))
    def first(self, order):
        return {"n": 1}

    @task(after(first, days=1))
    def second(self, order): ...

    @task()
    def fail(self, order):
        raise ValueError("told to")


@pytest.fixture(scope="module", autouse=True)
def _away(django_db_setup: None, django_db_blocker: Any, tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    """Another database, as ``migrate`` leaves it."""
    file = tmp_path_factory.mktemp("away") / "away.sqlite3"
    settings = {**connection.settings_dict, "ENGINE": "django.db.backends.sqlite3", "NAME": str(file)}
    settings["OPTIONS"] = {} if connection.vendor == "postgresql" else settings["OPTIONS"]
    connections.databases[AWAY] = settings
    with django_db_blocker.unblock():
        call_command("migrate", database=AWAY, run_syncdb=True, verbosity=0, skip_checks=True)
    yield
    connections[AWAY].close()
    del connections[AWAY], connections.databases[AWAY]


def rows(using: str) -> dict[str, list[dict[str, object]]]:
    """All rows of the package and of the entities; moments to the millisecond, as Django writes them into JSON."""
    models = [*apps.get_app_config("timeline").get_models(), *map(apps.get_model, OF_THE_SITE)]
    return {
        model._meta.label: [
            {name: _to_the_millisecond(value) for name, value in row.items()}
            for row in model._base_manager.using(using).order_by("pk").values()
        ]
        for model in models
    }


def _to_the_millisecond(value: object) -> object:
    if not isinstance(value, datetime):
        return value
    return value.replace(microsecond=value.microsecond // 1000 * 1000)


def move(source: str, target: str, file: Path) -> None:
    """Take everything along."""
    call_command("dumpdata", "timeline", *OF_THE_SITE, database=source, output=str(file), verbosity=0)
    call_command("loaddata", str(file), database=target, verbosity=0)


@pytest.mark.timeline(raises=False)
class TestASiteThatMoves:
    def test_collides_with_nothing_that_migrate_has_written_and_goes_on(self, clock, tmp_path):
        with only_timelines(Gate, Care):
            for using in ("default", AWAY):
                Edge.objects.using(using).delete()  # Of timelines that other tests know.
            call_command("migrate", "timeline", database=AWAY, verbosity=0, skip_checks=True)
            call_command("migrate", "timeline", verbosity=0, skip_checks=True)
            order = Order.objects.create()
            emit("gate.made", order)
            emit("gate.opened", order)
            schedule("care.fail", order, at=clock.now)
            clock.advance(days=1)
            before = rows("default")

            move("default", AWAY, tmp_path / "there.json")
            there = rows(AWAY)
            call_command("flush", interactive=False, verbosity=0)
            call_command("migrate", "timeline", verbosity=0, skip_checks=True)
            move(AWAY, "default", tmp_path / "back.json")

            assert there == rows("default") == before
            assert Edge.objects.filter(timeline="gate").count() == 3
            emit("gate.closed", Order.objects.get())
            clock.advance(days=1)
            assert TimelineRun.objects.get(timeline="gate").state == "shut"
            assert ScheduledTask.objects.get(task_key="care.second").state == "completed"
            assert LogEntry.objects.count() > len(before["timeline.LogEntry"])
            assert redrive(ScheduledTask.objects.get(task_key="care.fail"), reason="mended")[0].revision == 2

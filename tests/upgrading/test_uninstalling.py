"""What ``migrate timeline zero`` leaves behind: nothing."""

from __future__ import annotations

from datetime import UTC, datetime

from django.contrib.auth.models import Permission
from django.contrib.contenttypes.models import ContentType
from django.core.management import call_command

from tests.upgrading.databases import migrate
from tests.upgrading.schema import schema_of
from timeline.lifecycle import ReasonCode, State
from timeline.models import (
    Answer,
    Edge,
    Event,
    Figure,
    LogEntry,
    Pace,
    RollUp,
    RunEntry,
    ScheduledTask,
    Sign,
    Sweep,
    TimelineRun,
    Total,
)

NOW = datetime(2026, 3, 1, 9, 0, tzinfo=UTC)


def populate(fresh: str) -> None:
    """Write a row into many tables, and a task that ended for each reason there is."""
    event = Event.objects.using(fresh).create(name="order.placed", occurred_at=NOW, recorded_at=NOW, key="1")
    run = TimelineRun.objects.using(fresh).create(timeline="trial", started_at=NOW, started_by=event)
    moving = TimelineRun.objects.using(fresh).create(timeline="booking", started_at=NOW, state="BOOKED", state_at=NOW)
    RunEntry.objects.using(fresh).create(run=moving, seq=0, at=NOW, to_state="BOOKED")
    Edge.objects.using(fresh).create(timeline="booking", from_state="QUEUED", to_state="BOOKED")
    for code in ReasonCode:
        task = ScheduledTask(
            task_key="trial.remind",
            occurrence=code.value,
            run=run,
            cause=event,
            state=State.COMPLETED if code == ReasonCode.DONE else State.CANCELLED,
            reason_code=code,
            nominal_at=NOW,
            scheduled_at=NOW,
            created_at=NOW,
            finished_at=NOW,
            max_attempts=5,
        )
        task.save(force_insert=True, using=fresh)
        LogEntry.objects.using(fresh).create(
            task=task, seq=1, at=NOW, from_state="scheduled", to_state=task.state, attempt=0, reason_code=code
        )
    Pace.objects.using(fresh).create(task_key="trial.remind", seconds=0.1, measured_at=NOW)
    Sign.objects.using(fresh).create(worker="a", seen_at=NOW)
    Answer.objects.using(fresh).create(key="k", fingerprint="f", status=200, headers={}, body="{}", made_at=NOW)
    Figure.objects.using(fresh).create(hour=NOW, task_key="trial.remind", started=1)
    Total.objects.using(fresh).create(task_key="trial.remind", started=1)
    RollUp.objects.using(fresh).create(counted=1, marked=1)
    Sweep.objects.using(fresh).create(timeline="trial", begun_at=NOW)


class TestMigrateToZero:
    def test_leaves_the_schema_as_it_was_before(self, fresh):
        before = schema_of(fresh)
        migrate(using=fresh)
        between = schema_of(fresh)
        populate(fresh)

        migrate("zero", using=fresh)

        assert between > before
        assert schema_of(fresh) == before


class TestWhatDjangoKeeps:
    """Content types and permissions."""

    def test_goes_with_djangos_own_command_once_the_app_is_out(self, fresh, settings):
        migrate(using=fresh)
        ours = ContentType.objects.using(fresh).filter(app_label="timeline")
        permissions = Permission.objects.using(fresh).filter(content_type__app_label="timeline")
        assert ours.exists()
        assert permissions.exists()
        migrate("zero", using=fresh)

        settings.INSTALLED_APPS = ["django.contrib.auth", "django.contrib.contenttypes", "project.accounts"]
        call_command(
            "remove_stale_contenttypes", database=fresh, include_stale_apps=True, interactive=False, verbosity=0
        )

        assert not ours.exists()
        assert not permissions.exists()

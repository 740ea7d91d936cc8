"""The command that needs the extra ``celery``; left out where django-celery-beat is not installed."""

from __future__ import annotations

import json
from datetime import timedelta

import pytest
from django.core.management import CommandError, call_command
from django_celery_beat.models import IntervalSchedule, PeriodicTask


class TestTimelineInstallBeat:
    @pytest.fixture
    def installed(self, db, capsys):
        """Install, and list what stands in beat's tables."""

        def install(**options):
            call_command("timeline_install_beat", **options)
            return list(PeriodicTask.objects.order_by("pk"))

        return install

    def test_installs_an_interval_for_the_poll_and_one_for_the_maintenance(self, installed, capsys):
        poll, maintain = installed()

        assert (poll.task, str(poll.interval), poll.queue, poll.expire_seconds) == (
            "timeline.poll",
            "every second",
            "timeline-poll",
            1,
        )
        assert (maintain.task, str(maintain.interval), maintain.queue) == (
            "timeline.maintain",
            "every 60 seconds",
            "timeline.default",
        )
        assert [entry.crontab for entry in (poll, maintain)] == [None, None]
        assert json.loads(poll.kwargs) == {"using": "default"}
        assert "Installed timeline.poll for the database default, every 1 s." in capsys.readouterr().out

    def test_changes_nothing_the_second_time(self, installed, capsys):
        before = [(entry.pk, entry.name) for entry in installed()]

        after = [(entry.pk, entry.name) for entry in installed()]

        assert after == before
        assert IntervalSchedule.objects.count() == 2
        assert "Updated timeline.poll" in capsys.readouterr().out

    def test_leaves_disabled_what_somebody_disabled(self, installed):
        installed()
        PeriodicTask.objects.update(enabled=False)

        assert [entry.enabled for entry in installed()] == [False, False]

    def test_follows_the_poll_interval(self, installed, settings):
        installed()
        settings.TIMELINE = {"POLL_INTERVAL": timedelta(milliseconds=250)}

        poll, _maintain = installed()

        assert str(poll.interval) == "every 250000 microseconds"
        assert poll.expire_seconds == 1

    def test_installs_one_for_each_database(self, installed):
        installed()

        assert len(installed(database="other")) == 4

    def test_says_what_is_missing_without_beat(self, installed, settings):
        settings.INSTALLED_APPS = [name for name in settings.INSTALLED_APPS if name != "django_celery_beat"]

        with pytest.raises(CommandError, match='Add "django_celery_beat" to INSTALLED_APPS'):
            call_command("timeline_install_beat")

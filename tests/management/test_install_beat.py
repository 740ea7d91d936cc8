"""The command that needs the extra ``celery``; left out where django-celery-beat is not installed."""

from __future__ import annotations

import json
from datetime import timedelta

import pytest
from django.core.management import CommandError, call_command
from django.db import connection
from django_celery_beat.models import CrontabSchedule, IntervalSchedule, PeriodicTask, PeriodicTasks


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

    def test_keeps_the_name_that_somebody_gave_it(self, installed, settings):
        installed()
        PeriodicTask.objects.filter(task="timeline.poll").update(name="our poll")
        settings.TIMELINE = {"POLL_INTERVAL": timedelta(seconds=3)}

        poll, _maintain = installed()

        assert (poll.name, str(poll.interval)) == ("our poll", "every 3 seconds")

    def test_leaves_what_somebody_wrote_by_hand(self, installed):
        every_day = CrontabSchedule.objects.create(hour="3", minute="0")
        theirs = PeriodicTask.objects.create(name="maintain", task="timeline.maintain", crontab=every_day)

        assert installed()[0] == theirs
        assert PeriodicTask.objects.get(pk=theirs.pk).crontab == every_day

    def test_takes_one_of_several_intervals_that_are_the_same(self, installed):
        first, _second = [IntervalSchedule.objects.create(every=1, period="seconds") for _number in range(2)]

        assert installed()[0].interval == first

    def test_brings_arguments_back_that_nobody_can_read(self, installed):
        installed()
        PeriodicTask.objects.update(kwargs="{broken")

        assert [json.loads(entry.kwargs) for entry in installed()] == [{"using": "default"}] * 2

    def test_lets_a_row_expire_in_one_way(self, installed, now):
        installed()
        PeriodicTask.objects.update(expires=now, expire_seconds=None)

        assert [(entry.expires, entry.expire_seconds) for entry in installed()] == [(None, 1), (None, 60)]

    def test_says_what_is_missing_without_beat(self, installed, settings):
        settings.INSTALLED_APPS = [name for name in settings.INSTALLED_APPS if name != "django_celery_beat"]

        with pytest.raises(CommandError, match='Add "django_celery_beat" to INSTALLED_APPS') as refused:
            call_command("timeline_install_beat")

        assert "run timeline_poll instead of beat" in str(refused.value)

    @pytest.mark.parametrize("remove", [False, True])
    def test_says_what_is_missing_without_beats_tables(self, db, remove):
        with connection.cursor() as cursor:
            cursor.execute("ALTER TABLE django_celery_beat_periodictask RENAME TO away")

        with pytest.raises(CommandError, match="migrate"):
            call_command("timeline_install_beat", remove=remove)


class TestRemove:
    @pytest.fixture
    def removed(self, db, capsys):
        """Remove, and list what then stands in beat's tables."""

        def remove(**options):
            call_command("timeline_install_beat", remove=True, **options)
            return list(PeriodicTask.objects.order_by("pk"))

        return remove

    def test_leaves_beats_tables_as_they_were_before(self, removed):
        call_command("timeline_install_beat")

        assert removed() == []
        assert not IntervalSchedule.objects.exists()

    def test_tells_beat(self, removed):
        call_command("timeline_install_beat")
        before = PeriodicTasks.last_change()

        removed()

        assert PeriodicTasks.last_change() > before

    def test_says_what_it_did_and_what_is_left_in_the_queues(self, removed, capsys):
        call_command("timeline_install_beat")
        capsys.readouterr()

        removed()

        said = capsys.readouterr().out
        assert "Removed timeline.poll (default)." in said
        assert "Removed timeline.maintain (default)." in said
        assert "celery -A … purge -Q timeline-poll,timeline.default" in said

    def test_does_nothing_the_second_time_and_says_so(self, removed, capsys):
        call_command("timeline_install_beat")
        removed()
        capsys.readouterr()

        assert removed() == []
        assert "There is nothing of the database default to remove." in capsys.readouterr().out

    def test_leaves_what_the_host_put_there_and_an_interval_it_uses(self, removed):
        call_command("timeline_install_beat")
        every_minute = IntervalSchedule.objects.get(every=60)
        theirs = PeriodicTask.objects.create(name="report", task="shop.report", interval=every_minute)

        assert removed() == [theirs]
        assert list(IntervalSchedule.objects.all()) == [every_minute]

    def test_finds_one_that_was_renamed(self, removed):
        call_command("timeline_install_beat")
        PeriodicTask.objects.filter(task="timeline.poll").update(name="our poll")

        assert removed() == []

    def test_finds_one_that_was_written_by_hand(self, removed):
        every_day = CrontabSchedule.objects.create(hour="3", minute="0")
        PeriodicTask.objects.create(name="maintain", task="timeline.maintain", crontab=every_day)

        assert removed() == []
        assert list(CrontabSchedule.objects.all()) == [every_day]

    @pytest.mark.parametrize(
        "kwargs",
        ["{broken", '{"using": ""}', '"default"', "[1]", '{"using": null}', '{"using": 3}', '{"using": ["default"]}'],
    )
    @pytest.mark.parametrize("name", ["our poll", "timeline.poll (default)"])
    def test_takes_out_what_has_arguments_that_beat_cannot_send(self, removed, kwargs, name, capsys):
        call_command("timeline_install_beat")
        PeriodicTask.objects.filter(task="timeline.poll").update(kwargs=kwargs, name=name)

        assert removed() == []
        assert f"Removed {name}." in capsys.readouterr().out

    @pytest.mark.parametrize("kwargs", ["", "{}", "[]", "null"])
    def test_takes_no_arguments_for_those_of_the_default_database(self, removed, kwargs):
        call_command("timeline_install_beat")
        call_command("timeline_install_beat", database="other")
        PeriodicTask.objects.filter(name__endswith="(default)").update(kwargs=kwargs)

        assert [entry.name for entry in removed()] == ["timeline.poll (other)", "timeline.maintain (other)"]

    def test_leaves_what_is_of_another_database_by_its_name(self, removed, capsys):
        call_command("timeline_install_beat", database="other")
        PeriodicTask.objects.update(kwargs="{broken")

        assert len(removed()) == 2
        assert "add --database other." in capsys.readouterr().out
        assert removed(database="other") == []

    def test_says_that_it_cannot_look_where_beat_is_not_installed(self, removed, settings):
        settings.INSTALLED_APPS = [name for name in settings.INSTALLED_APPS if name != "django_celery_beat"]

        with pytest.raises(CommandError, match="cannot be looked at from here"):
            removed()

    def test_leaves_those_of_another_database_and_says_so(self, removed, capsys):
        call_command("timeline_install_beat")
        call_command("timeline_install_beat", database="other")

        assert [entry.name for entry in removed()] == ["timeline.poll (other)", "timeline.maintain (other)"]
        assert "add --database other." in capsys.readouterr().out
        assert removed(database="other") == []

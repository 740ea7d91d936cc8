"""What is fanned out is told apart wherever people read of it."""

from __future__ import annotations

import logging
from datetime import UTC, datetime

import pytest
from django.contrib.auth.models import Permission
from django.test import Client
from django.urls import reverse

from project.accounts.models import User
from tests.features.fan_out.settlement import fan_out_two, row_of, settlement
from timeline import Discard
from timeline.features.plans.drift import drifted
from timeline.features.sweep.verbs import begin_round, sweep
from timeline.models import ScheduledTask, TimelineRun
from timeline.reading.text_pictures import picture
from timeline.shortcuts import explain, foreseen, start
from timeline.signals import tasks_ended
from timeline.testing import only_timelines


def fail_the_second(job):
    if job.task.occurrence == "002":
        raise Discard("no such account")


@pytest.fixture
def split(clock, order):
    """A month that is split in two batches, neither settled."""
    with only_timelines(settlement(fan_out_two, fail_the_second)):
        start("settlement", order)
        clock.advance(days=1)
        yield order


@pytest.fixture
def due(clock, order, run_at):
    """The same, when neither batch has been run."""
    with only_timelines(settlement(fan_out_two, fail_the_second)):
        start("settlement", order, started_at=clock.now)
        clock.set(row_of("split").scheduled_at)
        run_at(row_of("split"), clock.now)
        yield order


class TestNames:
    def test_are_those_of_the_task_and_which_one(self, split):
        row = row_of("settle", "001")

        assert (row.full_key, str(row)) == (
            "settlement.settle#001",
            f"settlement.settle#001 of testapp.order {split.pk}",
        )
        assert (row_of("split").full_key, row_of("split").is_fanned_out) == ("settlement.split", False)

    def test_of_an_ad_hoc_task_are_those_of_its_kind(self, make_task):
        assert make_task(occurrence="key").full_key == "trial.remind"


class TestTexts:
    def test_picture_them_one_by_one(self, split, clock):
        lines = picture(split, now=clock.now, using="default").splitlines()

        assert [line.split()[3] for line in lines if "settle#" in line] == [
            "settlement.settle#001",
            "settlement.settle#002",
        ]

    def test_say_what_follows_all_of_them(self, due):
        told = explain(row_of("settle", "001")).splitlines()

        assert told[0].startswith("settlement.settle#001 for testapp.order")
        assert told[1].endswith(" UTC: for each that split fans out.")
        assert told[-2:] == [
            "When each settle has completed, settlement.report follows.",
            "Once each settle has ended, settlement.clean_up follows.",
        ]

    def test_foresee_what_waits_for_them(self, due):
        assert [outlook.task_key for outlook in foreseen(due)] == ["settlement.clean_up", "settlement.report"]

    def test_say_before_what_is_fanned_out(self, clock, order):
        with only_timelines(settlement()):
            start("settlement", order)

            assert explain(row_of("split")).endswith(
                "If it completes, settlement.settle follows for each that it fans out."
            )

    def test_say_of_another_end_that_it_is_followed_all_the_same(self, split):
        lines = explain(row_of("settle", "002")).splitlines()

        assert lines[-1] == "So settlement.report, which follows when each settle has completed, has no row."

    def test_of_the_log_of_the_process_name_the_one_that_failed(self, clock, order, caplog, transactional_db):
        caplog.set_level(logging.DEBUG, "timeline")
        with only_timelines(settlement(fan_out_two, fail_the_second)):
            start("settlement", order)
            clock.advance(days=1)

        [line] = [record.getMessage() for record in caplog.records if record.name == "timeline.endings"]
        assert line.startswith(f"settlement.settle#002 of testapp.order {order.pk} is discarded")


class TestSignals:
    def test_tell_which_one_has_ended(self, clock, order, transactional_db):
        heard = []

        def listen(*, endings, **signal):
            heard.extend((ending.task_key, ending.occurrence) for ending in endings)

        tasks_ended.connect(listen)
        try:
            with only_timelines(settlement()):
                start("settlement", order)
                clock.advance(days=1)
        finally:
            tasks_ended.disconnect(listen)

        assert heard[:3] == [("settlement.split", ""), ("settlement.settle", "001"), ("settlement.settle", "002")]


class TestPages:
    @pytest.fixture
    def admin(self, db):
        start = datetime(2026, 1, 1, 9, tzinfo=UTC)
        moments = {"signed_up_at": start, "trial_ends_at": start}
        person = User.objects.create(email="root@example.com", website="", is_staff=True, **moments)
        person.user_permissions.set(Permission.objects.filter(content_type__app_label="timeline"))
        client = Client()
        client.force_login(person)
        return client

    def test_list_them(self, admin, due):
        text = admin.get(reverse("admin:timeline_scheduledtask_changelist")).content.decode().replace("<wbr>", "")

        for name in ("settlement.settle#001", "settlement.settle#002"):
            assert f">{name}</a>" in text
            assert f'aria-label="Choose {name} of ' in text

    def test_show_one(self, admin, due):
        row = row_of("settle", "001")

        text = (
            admin.get(reverse("admin:timeline_scheduledtask_change", args=[row.pk]))
            .content.decode()
            .replace("<wbr>", "")
        )

        assert "<h1>settlement.settle#001 " in text

    def test_draw_them_in_one_lane(self, admin, split):
        where = reverse("admin:timeline_scheduledtask_entity")

        response = admin.get(where, {"label": "testapp.order", "id": str(split.pk)})

        text = response.content.decode()
        assert "<title>settlement.settle#001, " in text
        assert "<title>settlement.settle#002, " in text
        assert [lane.key for lane in response.context["drawing"].lanes].count("settlement.settle") == 1

    def test_of_the_api_have_the_occurrence(self, admin, due):
        row = row_of("settle", "001")

        shown = admin.get(f"/api/v1/tasks/{row.pk}/").json()

        assert (shown["task"], shown["occurrence"]) == ("settlement.settle", "001")


class TestTheSweep:
    def test_finds_nothing_to_mend(self, due, clock):
        assert drifted(TimelineRun.objects.all(), now=clock.now, using="default") == []

    def test_makes_again_what_another_version_has_cancelled_as_it_was(self, due, clock):
        """A worker that still had the code of before would have cancelled it."""
        row = row_of("settle", "001")
        ended = {"state": "cancelled", "finished_at": clock.now, "reason_code": "superseded"}
        ScheduledTask.objects.filter(pk=row.pk).update(**ended)

        begin_round(using="default")
        sweep(now=clock.now, using="default")

        again = row_of("settle", "001")
        assert (again.revision, again.previous_id, again.payload) == (2, row.pk, {"first": 1})
        assert again.anchor_value == row.anchor_value

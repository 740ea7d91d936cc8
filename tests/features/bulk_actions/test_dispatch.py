"""Acting in bulk: batches, whose rights count, and what is left as it is. How it is asked for: api/test_bulk."""

from __future__ import annotations

from datetime import timedelta

import pytest
from django.contrib.auth.models import Permission
from django.db import connection
from django.test.utils import CaptureQueriesContext

from project.accounts.models import User
from tests.features.bulk_actions.bulk import bulk_action
from timeline.features.bulk_actions import poll as bulk_actions_poll
from timeline.features.bulk_actions.poll import KEPT, act_in_bulk, begin_bulk, forget_bulk_actions, stop_bulk
from timeline.lifecycle import State
from timeline.models import BulkAction, ScheduledTask
from timeline.policy import TimelinePolicy
from timeline.shortcuts import cancel, redrive

HOUR = timedelta(hours=1)


@pytest.fixture
def staff(db, now):
    made = User.objects.create(email="ada@example.com", signed_up_at=now, trial_ends_at=now, is_staff=True)
    names = [f"{verb}_scheduledtask" for verb in ("view", "cancel", "move", "run_now", "redrive")]
    made.user_permissions.set(Permission.objects.filter(codename__in=names))
    return made


@pytest.fixture
def begun(staff, now):
    """Ask for something: ``begun("cancel")``."""

    def begin(action, **columns):
        bulk = bulk_action(action, asker=staff.pk, created_at=now, **{"filters": {"task": "trial.remind"}, **columns})
        return begin_bulk(bulk, ScheduledTask.objects.all(), using="default")

    return begin


@pytest.fixture
def polls(now):
    """Go on for so many polls."""

    def poll(times=1):
        return sum(act_in_bulk(now=now, using="default") for _ in range(times))

    return poll


class TestActInBulk:
    def test_cancels_all_that_were_meant_and_says_who_asked(self, begun, polls, make_task, now):
        tasks = [make_task(scheduled_at=now + HOUR) for _ in range(3)]
        other = make_task(task_key="trial.expire")
        bulk = begun("cancel")
        later = make_task(scheduled_at=now + HOUR)

        assert polls() == 3

        bulk.refresh_from_db()
        assert (bulk.state, bulk.matched, bulk.done, bulk.skipped, bulk.ended_at) == ("done", 3, 3, {}, now)
        for task in tasks:
            task.refresh_from_db()
            assert (task.state, task.reason, task.actor) == (State.CANCELLED, "all of them", "ada")
        assert set(ScheduledTask.objects.open()) == {other, later}

    def test_moves_each_once_also_those_that_are_made_anew(self, begun, polls, make_task, now):
        waiting, due = make_task(scheduled_at=now + HOUR), make_task(state=State.AVAILABLE)
        bulk = begun("move", at=now + 9 * HOUR)

        assert polls(2) == 2

        bulk.refresh_from_db()
        assert (bulk.done, bulk.skipped) == (2, {})
        found = ScheduledTask.objects.open()
        assert set(found.values_list("scheduled_at", flat=True)) == {now + 9 * HOUR}
        assert waiting in found
        assert due not in found

    def test_makes_due_now(self, begun, polls, make_task, now):
        task = make_task(scheduled_at=now + HOUR)
        begun("run_now")

        polls()

        task.refresh_from_db()
        assert task.state == State.AVAILABLE

    def test_redrives_within_a_time_and_leaves_what_another_revision_carries_on_for(self, begun, polls, make_task, now):
        tasks = [make_task(state=State.DISCARDED) for _ in range(3)]
        [again] = redrive(tasks[0], reason="by hand")
        cancel(again, reason="by hand")
        bulk = begun("redrive", spread=HOUR, filters={"state": ["discarded"]})

        polls()

        bulk.refresh_from_db()
        assert (bulk.done, bulk.skipped) == (2, {"carried_on": 1})
        due = ScheduledTask.objects.filter(previous__in=tasks[1:]).values_list("scheduled_at", flat=True)
        assert all(now <= at <= now + HOUR for at in due)

    def test_counts_what_changed_before_its_turn(self, begun, polls, make_task, now):
        tasks = [make_task(scheduled_at=now + HOUR) for _ in range(3)]
        bulk = begun("cancel")
        cancel(tasks[1], reason="by hand")

        polls()

        bulk.refresh_from_db()
        assert (bulk.done, bulk.skipped) == (2, {"changed": 1})
        tasks[1].refresh_from_db()
        assert tasks[1].reason == "by hand"

    def test_lets_one_that_is_refused_keep_back_no_other(self, begun, polls, make_task, monkeypatch, now):
        tasks = [make_task(scheduled_at=now + HOUR) for _ in range(5)]
        bulk = begun("cancel")
        chosen = bulk_actions_poll._chosen

        def changed_since(*args):
            ids = chosen(*args)
            cancel(tasks[3], reason="between the look and the lock")
            return ids

        monkeypatch.setattr(bulk_actions_poll, "_chosen", changed_since)
        polls()

        bulk.refresh_from_db()
        assert (bulk.done, bulk.skipped) == (4, {"changed": 1})

    def test_goes_on_where_it_was_killed_and_does_nothing_twice(self, begun, polls, make_task, monkeypatch, now):
        """A process that dies within a batch leaves the batches before it, and where they had come to."""
        monkeypatch.setattr(bulk_actions_poll, "BATCH", 2)
        tasks = [make_task(state=State.DISCARDED) for _ in range(5)]
        bulk = begun("redrive")
        act, calls = bulk_actions_poll._act, []

        def dying(*args):
            calls.append(args)
            done = act(*args)
            if len(calls) == 2:
                raise KeyboardInterrupt
            return done

        monkeypatch.setattr(bulk_actions_poll, "_act", dying)
        with pytest.raises(KeyboardInterrupt):
            polls()
        bulk.refresh_from_db()
        before = bulk.done
        polls()

        bulk.refresh_from_db()
        assert before == 2
        assert (bulk.state, bulk.done) == ("done", 5)
        assert ScheduledTask.objects.filter(previous__in=tasks).count() == 5

    def test_stops_where_the_right_is_taken_away(self, begun, polls, make_task, staff, now):
        make_task(scheduled_at=now + HOUR)
        bulk = begun("cancel")
        staff.user_permissions.clear()

        assert polls() == 0

        bulk.refresh_from_db()
        assert (bulk.state, bulk.stopped_by, bulk.done) == ("stopped", "", 0)

    def test_stops_where_nobody_asks_any_more(self, begun, polls, make_task, staff, now):
        make_task(scheduled_at=now + HOUR)
        bulk = begun("cancel")
        staff.delete()

        assert polls() == 0

        bulk.refresh_from_db()
        assert bulk.state == "stopped"

    def test_asks_the_policy_about_each_task(self, begun, polls, make_task, settings, now):
        settings.TIMELINE = {"POLICY": f"{__name__}.Careful"}
        make_task(scheduled_at=now + HOUR, priority=1)
        make_task(scheduled_at=now + HOUR)
        bulk = begun("cancel")

        polls()

        bulk.refresh_from_db()
        assert (bulk.done, bulk.skipped) == (1, {"forbidden": 1})

    def test_does_nothing_once_it_is_stopped(self, begun, polls, make_task, now):
        make_task(scheduled_at=now + HOUR)
        bulk = begun("cancel")

        stopped = stop_bulk(bulk.pk, actor="eve", now=now, using="default")
        again = stop_bulk(bulk.pk, actor="bob", now=now + HOUR, using="default")

        assert polls() == 0
        assert (stopped.state, stopped.stopped_by, stopped.done) == ("stopped", "eve", 0)
        assert (again.stopped_by, again.ended_at) == ("eve", now)

    def test_that_cannot_go_on_keeps_no_poll_back(self, begun, polls, make_task, settings, caplog, now):
        settings.TIMELINE = {"POLICY": f"{__name__}.Broken"}
        make_task(scheduled_at=now + HOUR)
        bulk = begun("cancel")

        assert polls() == 0

        assert "cannot go on now" in caplog.text
        settings.TIMELINE = {}
        assert polls() == 1
        bulk.refresh_from_db()
        assert bulk.state == "done"

    def test_takes_as_many_statements_for_many_as_for_few(self, begun, polls, make_task, now):
        counts = []
        for number in (10, 100):
            for _ in range(number):
                make_task(scheduled_at=now + HOUR)
            begun("run_now")
            with CaptureQueriesContext(connection) as caught:
                assert polls() == number
            counts.append(len(caught))

        assert counts[0] == counts[1]

    def test_is_over_at_once_where_nothing_is_meant(self, begun, now):
        assert (begun("cancel").state, begun("cancel").matched) == ("done", 0)


class TestForget:
    def test_deletes_what_ended_long_ago(self, begun, make_task, now):
        old = begun("cancel")
        make_task(scheduled_at=now + HOUR)
        running = begun("cancel")

        assert forget_bulk_actions(now=now + KEPT, using="default") == 0
        assert forget_bulk_actions(now=now + KEPT + HOUR, using="default") == 1
        assert list(BulkAction.objects.all()) == [running]
        assert old.pk != running.pk


class Careful(TimelinePolicy):
    """Lets nobody change what is of another priority than that of most."""

    def actions(self, user, task):
        return [] if task.priority == 1 else super().actions(user, task)


class Broken(TimelinePolicy):
    """Cannot answer."""

    def visible(self, tasks, user):
        raise RuntimeError("no answer")

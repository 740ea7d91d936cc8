"""A month is settled in batches: what follows all of them, whatever becomes of one."""

from __future__ import annotations

from datetime import timedelta

import pytest

from timeline import Discard, Timeline, after, each_of, task
from timeline.models import ScheduledTask, TimelineRun
from timeline.shortcuts import cancel, emit, explain, foreseen, move, redrive, start
from timeline.testing import expect, only_timelines

WANTED: dict[str, dict[str, int]] = {}
BROKEN: set[str] = set()


class Settlement(Timeline):
    entity = "testapp.Order"
    exits = {"order.closed": "closed"}

    @task(after(days=1))
    def split(self, order):
        self.fan_out(self.settle, WANTED)

    @task(each_of(split), atomic=False)
    def settle(self, order):
        if self.task.occurrence in BROKEN:
            raise Discard("no such account")
        return self.task.payload["first"]

    @task(after(settle))
    def report(self, order): ...

    @task(after(settle, ended=True))
    def clean_up(self, order): ...


@pytest.fixture
def month(clock, order):
    """A run that begins today; in a day it is split in three."""
    WANTED.clear()
    BROKEN.clear()
    WANTED.update({"001": {"first": 1}, "002": {"first": 101}, "003": {"first": 201}})
    with only_timelines(Settlement):
        start("settlement", order)
        yield order


def batch(name):
    return ScheduledTask.objects.filter(occurrence=name).latest("revision")


def latest(name):
    return ScheduledTask.objects.filter(task_key=f"settlement.{name}").latest("revision")


class TestAllOfThem:
    def test_are_settled_and_reported_once(self, month, clock):
        clock.advance(days=1)

        expect(month).completed("settle", times=3).completed("report").completed("clean_up")
        assert TimelineRun.objects.get().is_finished
        assert [row.result for row in ScheduledTask.objects.exclude(occurrence="").order_by("occurrence")] == [
            1,
            101,
            201,
        ]

    def test_are_foreseen_before(self, month):
        said = {outlook.task_key: outlook.why for outlook in foreseen(month)}

        assert said == {
            "settlement.settle": "for each that split fans out",
            "settlement.report": "when each settle has completed",
            "settlement.clean_up": "when each settle has ended",
        }

    def test_may_be_none(self, month, clock):
        WANTED.clear()

        clock.advance(days=1)

        expect(month).completed("report").completed("clean_up")
        assert TimelineRun.objects.get().is_finished


class TestOneThatFails:
    @pytest.fixture(autouse=True)
    def _broken(self, month, clock):
        BROKEN.add("002")
        clock.advance(days=1)

    def test_keeps_the_report_from_coming_but_not_the_cleaning_up(self, month):
        expect(month).completed("settle", times=2).completed("clean_up").never("report")
        assert TimelineRun.objects.get().is_finished

    def test_is_named_where_one_asks_why(self):
        told = explain(batch("002"))

        assert told.startswith("settlement.settle#002 for testapp.order")
        assert "So settlement.report, which follows when each settle has completed, has no row." in told
        assert "settlement.clean_up" not in told

    def test_has_the_report_come_after_all_once_it_is_redriven(self, month, clock):
        BROKEN.clear()
        clock.advance(days=1)

        redrive(batch("002"), reason="the account is there", actor="ada")
        assert not TimelineRun.objects.get().is_finished
        clock.advance(days=1)

        expect(month).completed("settle", times=3).completed("report").completed("clean_up", times=2)
        assert (batch("002").revision, batch("002").payload) == (2, {"first": 101})
        assert TimelineRun.objects.get().is_finished


class TestWhatAPersonDoes:
    @pytest.fixture
    def split(self, month, clock, run_at):
        """The month is split, and no batch is settled yet."""
        clock.set(clock.now + timedelta(days=1))
        run_at(latest("split"), clock.now)
        return month

    def test_may_call_off_one(self, split, clock):
        cancel(batch("002"), reason="settled by hand", actor="ada")
        clock.run_due()

        expect(split).completed("settle", times=2).completed("clean_up").never("report")

    def test_may_call_off_all(self, split, clock):
        for name in WANTED:
            cancel(batch(name), reason="settled by hand", actor="ada")
        clock.run_due()

        expect(split).completed("clean_up").never("report")

    def test_may_move_one_and_all_that_waits_for_it(self, split, clock):
        """It is due already, so that its next revision carries on, with what it was given."""
        [moved] = move(batch("002"), at=clock.now + timedelta(days=3), reason="the bank is closed", actor="ada")

        clock.run_due()
        expect(split).completed("settle", times=2)
        assert not ScheduledTask.objects.filter(task_key="settlement.report").exists()
        clock.advance(days=3)

        assert (moved.occurrence, moved.revision, moved.payload) == ("002", 2, {"first": 101})
        expect(split).completed("settle", times=3).completed("report")
        assert latest("report").anchor_value == clock.now

    def test_may_end_the_run_in_the_middle(self, split, clock, run_at):
        run_at(batch("001"), clock.now)

        emit("order.closed", split)
        clock.advance(days=1)

        states = dict(ScheduledTask.objects.exclude(occurrence="").values_list("occurrence", "state"))
        assert states == {"001": "completed", "002": "cancelled", "003": "cancelled"}
        expect(split).never("report").never("clean_up")

    def test_may_have_it_split_anew(self, split, clock, run_at):
        """What was fanned out before is called off where it is open, and nothing waits for it."""
        run_at(batch("001"), clock.now)
        WANTED.clear()
        WANTED.update({"001": {"first": 7}, "new": {"first": 8}})
        clock.set(clock.now + timedelta(hours=1))

        redrive(latest("split"), reason="the list was old", actor="ada")
        before = dict(ScheduledTask.objects.exclude(occurrence="").values_list("occurrence", "reason"))
        clock.run_due()

        assert before["002"] == before["003"] == "split is to run again first"
        assert [(batch(name).revision, batch(name).state) for name in ("001", "002", "003", "new")] == [
            (2, "completed"),
            (1, "cancelled"),
            (1, "cancelled"),
            (1, "completed"),
        ]
        assert batch("001").result == 7
        expect(split).completed("report").completed("clean_up")
        assert TimelineRun.objects.get().is_finished

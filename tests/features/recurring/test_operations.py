"""Recur: the clock begins runs, and one of each timeline is always there, ahead of now."""

from datetime import UTC, datetime, timedelta
from operator import attrgetter

import pytest
from django.db import connection
from django.test import override_settings
from django.test.utils import CaptureQueriesContext

from tests.engine.watching import Killed
from tests.timing.moments import berlin
from timeline import Timeline, after, cron, daily, hourly, monthly, step, task
from timeline.dispatch.rescue import rescue
from timeline.features.maintenance.prune import prune
from timeline.features.recurring.slots import Slots
from timeline.features.recurring.verbs import NextBeginnings, recur
from timeline.lifecycle import Reason, State
from timeline.models import ScheduledTask, TimelineRun
from timeline.operations.cancel import cancel
from timeline.operations.move import move
from timeline.store.alerts import TELL
from timeline.testing import autostart, only_timelines
from timeline.timelines import Alerts

DAY, HOUR = timedelta(days=1), timedelta(hours=1)
START = datetime(2026, 3, 1, 9, 0, tzinfo=UTC)


def settlement(at="02:00", starts=None, **options):
    """A timeline that settles each night."""

    class Settlement(Timeline):
        name = "settlement"
        starts_on = starts or daily(at, zone="UTC", **options)

        @task(after())
        def settle(self):
            return self.run.key

        @task(after(hours=3))
        def look(self):
            return None

    return Settlement


@pytest.fixture(autouse=True)
def _only_these(db):
    with only_timelines(settlement()):
        yield


def poll(now, ahead=None):
    return recur(ahead or NextBeginnings(), now=now, using="default")


def runs():
    return list(TimelineRun.objects.order_by("started_at").values_list("key", flat=True))


def rows():
    tasks = ScheduledTask.objects.filter(task_key="settlement.settle").select_related("run").order_by("run__started_at")
    return [(known.run.key[:10], known.state, known.reason_code) for known in tasks]


def _keys_and_states():
    tasks = ScheduledTask.objects.filter(task_key="settlement.settle").order_by("run__started_at")
    return list(tasks.values_list("run__key", "state"))


def begin_all(run_at, now):
    for known in ScheduledTask.objects.open().filter(scheduled_at__lte=now):
        run_at(known, now)


class TestRecur:
    def test_keeps_the_next_run_ahead(self):
        assert poll(START) == 1

        run = TimelineRun.objects.get()
        assert (run.started_at, run.key, run.once) == (datetime(2026, 3, 2, 2, tzinfo=UTC), "2026-03-02T02:00Z", True)
        assert {known.state for known in ScheduledTask.objects.all()} == {State.SCHEDULED}

    def test_makes_one_run_a_slot_however_many_poll(self):
        assert [poll(START) for _ in range(3)] == [1, 0, 0]
        assert [poll(START + DAY) for _ in range(3)] == [1, 0, 0]

        assert runs() == ["2026-03-02T02:00Z", "2026-03-03T02:00Z"]

    def test_does_nothing_when_a_clock_is_set_back(self):
        poll(START + DAY)

        assert poll(START - 7 * DAY) == 0
        assert poll(START + DAY) == 0

    def test_asks_nothing_between_slots(self):
        names = [f"job_{number}" for number in range(100)]
        with only_timelines(*(_job(name) for name in names)):
            ahead = NextBeginnings()
            poll(START, ahead)

            with CaptureQueriesContext(connection) as caught:
                poll(START + HOUR / 2, ahead)

        assert TimelineRun.objects.count() == 100
        assert not caught.captured_queries

    def test_begins_any_number_in_as_many_statements(self):
        def count(names):
            with only_timelines(*(_job(name) for name in names)), CaptureQueriesContext(connection) as caught:
                poll(START)
            return len(caught)

        few, many = count([f"a{number}" for number in range(2)]), count([f"b{number}" for number in range(60)])

        assert few == many

    def test_begins_none_where_starts_are_off(self):
        with autostart(False):
            assert poll(START) == 0

    def test_leaves_a_slot_out_that_somebody_cancelled(self, run_at):
        poll(START)
        ids = list(ScheduledTask.objects.values_list("pk", flat=True))
        cancel(task_ids=ids, reason=Reason.operator("holiday"), now=START, using="default")

        poll(START + HOUR)
        poll(START + DAY)

        assert rows() == [("2026-03-02", "cancelled", "operator"), ("2026-03-03", "scheduled", "")]

    def test_goes_on_beside_a_run_that_somebody_moved(self):
        poll(START)
        first = ScheduledTask.objects.get(task_key="settlement.settle")
        move(task_ids=[first.pk], at=START + 3 * DAY, reason=Reason.operator("later"), now=START, using="default")

        poll(START + DAY)

        assert runs() == ["2026-03-02T02:00Z", "2026-03-03T02:00Z"]

    def test_goes_on_after_its_last_run_was_pruned(self, run_at):
        poll(START)
        poll(START + DAY)
        begin_all(run_at, START + DAY)

        prune(ended_before=START + 9 * DAY, using="default")

        assert poll(START + DAY) == 0
        assert runs()[-1] == "2026-03-03T02:00Z"

    def test_lets_runs_be_pruned_but_for_the_last(self, run_at):
        for day in range(5):
            poll(START + day * DAY)
            begin_all(run_at, START + day * DAY)

        pruned = prune(ended_before=START + 9 * DAY, using="default")

        assert (pruned.runs, runs()) == (3, ["2026-03-05T02:00Z", "2026-03-06T02:00Z"])
        assert not any(prune(ended_before=START + 9 * DAY, using="default"))

    def test_has_its_rule_for_clock_changes(self):
        class Night(Timeline):
            starts_on = daily("02:30", zone="Europe/Berlin")

            @task(after())
            def go(self):
                return None

        with only_timelines(Night):
            poll(berlin(2026, 3, 28, 12))

        assert TimelineRun.objects.get().key == "2026-03-29T01:30Z"


class TestOncePer:
    def test_has_one_run_a_day_also_when_the_time_is_changed(self, run_at):
        with only_timelines(settlement(once_per="day")):
            poll(START)
            poll(START + DAY)
            begin_all(run_at, START + DAY)
        with only_timelines(settlement("18:00", once_per="day")):
            poll(START + DAY)

        assert runs() == ["2026-03-02", "2026-03-03"]
        assert TimelineRun.objects.get(key="2026-03-03").started_at == datetime(2026, 3, 3, 18, tzinfo=UTC)

    def test_keeps_the_first_of_a_day(self):
        class Often(Timeline):
            starts_on = hourly(zone="UTC", once_per="day")

            @task(after())
            def go(self):
                return None

        with only_timelines(Often):
            poll(START)
            poll(START + 2 * HOUR)
            poll(START + DAY)

        assert runs() == ["2026-03-01", "2026-03-02", "2026-03-03"]


class TestChangedSchedule:
    def test_moves_the_run_ahead(self):
        poll(START)
        with only_timelines(settlement("03:00")):
            poll(START)
            poll(START + HOUR)

        assert runs() == ["2026-03-02T03:00Z"]
        first = ScheduledTask.objects.get(task_key="settlement.settle")
        assert first.scheduled_at == datetime(2026, 3, 2, 3, tzinfo=UTC)

    def test_moves_it_back_with_the_deploy_that_is_undone(self):
        poll(START)
        with only_timelines(settlement("03:00")):
            poll(START)

        poll(START)

        assert runs() == ["2026-03-02T02:00Z"]

    def test_leaves_it_where_the_other_slot_had_its_run(self):
        """A clock was set back by days: the slot that comes next has been."""
        for day in range(3):
            poll(START + day * DAY)
        with only_timelines(settlement("03:00")):
            poll(START + 2 * DAY)

        poll(START)

        assert runs() == ["2026-03-02T02:00Z", "2026-03-03T02:00Z", "2026-03-04T03:00Z"]

    def test_moves_it_to_a_slot_that_comes_earlier_now(self):
        """The old slot is one of the new schedule, too."""
        with only_timelines(settlement(starts=monthly(15, "02:00", zone="UTC"))):
            poll(START)
            poll(START + HOUR)

        poll(START + 2 * HOUR)
        poll(START + DAY)

        assert runs() == ["2026-03-02T02:00Z", "2026-03-03T02:00Z"]

    def test_leaves_it_where_a_clock_was_set_back_and_more_slots_come(self):
        with only_timelines(settlement(starts=monthly(15, "02:00", zone="UTC"))):
            poll(START + 20 * DAY)

        poll(START)

        assert runs() == ["2026-04-15T02:00Z"]

    def test_leaves_a_run_that_has_begun(self, run_at):
        poll(START)
        begin_all(run_at, START + DAY)
        with only_timelines(settlement("11:00")):
            poll(START + DAY)

        assert runs() == ["2026-03-02T02:00Z", "2026-03-02T11:00Z"]


# Overlap, catch-up, slots missed → run and its row, in order; the last is ahead.
PASSED, RAN, AHEAD = "cancelled", "available", "scheduled"
MATRIX = [
    ("latest", 1, [RAN, AHEAD]),
    ("latest", 3, [PASSED, RAN, AHEAD]),
    ("latest", 400, [PASSED, RAN, AHEAD]),
    ("none", 1, [PASSED, AHEAD]),
    ("none", 3, [PASSED, AHEAD]),
    ("none", 400, [PASSED, AHEAD]),
    ("all", 1, [RAN, AHEAD]),
    ("all", 3, [RAN, RAN, RAN, AHEAD]),
    ("all", 400, [PASSED, *[RAN] * 366, AHEAD]),
]


class TestCatchUp:
    @pytest.mark.parametrize("overlap", ["skip", "queue", "allow"])
    @pytest.mark.parametrize(("catch_up", "missed", "wanted"), MATRIX)
    def test_makes_up_for_what_was_missed(self, overlap, catch_up, missed, wanted):
        if (overlap, catch_up) == ("skip", "all"):
            return
        within = 366 * DAY if catch_up == "all" else DAY
        with only_timelines(settlement(overlap=overlap, catch_up=catch_up, within=within)):
            poll(START)

            poll(START + missed * DAY)

        due = ScheduledTask.objects.filter(task_key="settlement.settle", scheduled_at__lte=START + missed * DAY)
        assert [_as_due(known, due) for known in _in_order()] == wanted

    def test_names_the_range_that_is_passed_over(self):
        poll(START)
        poll(START + 3 * DAY)

        [passed] = ScheduledTask.objects.filter(task_key="settlement.settle", state=State.CANCELLED)
        assert passed.reason_code == "expired"
        assert "from 2026-03-02 02:00 UTC to 2026-03-03 02:00 UTC" in passed.reason
        assert not passed.run.is_open

    def test_names_it_on_a_row_of_its_own_where_the_last_run_has_ended(self, run_at):
        poll(START)
        begin_all(run_at, START + DAY)
        poll(START + 4 * DAY)

        assert [(key, state) for key, state, _code in rows()] == [
            ("2026-03-02", "completed"),
            ("2026-03-04", "cancelled"),
            ("2026-03-05", "available"),
            ("2026-03-06", "scheduled"),
        ]

    @override_settings(TIMELINE={"ALERTS": ["ops@example.com"]})
    def test_tells_people_what_is_passed_over(self):
        with only_timelines(settlement(), Alerts):
            poll(START)
            assert not ScheduledTask.objects.filter(task_key=TELL).exists()
            poll(START + 3 * DAY)
            poll(START + 3 * DAY)

        [told] = ScheduledTask.objects.filter(task_key=TELL)
        assert (told.payload["kind"], told.payload["about"]) == ("missed", "settlement")
        assert "from 2026-03-02 02:00 UTC to 2026-03-03 02:00 UTC" in told.payload["text"]

    @override_settings(TIMELINE={"ALERTS": ["ops@example.com"]})
    def test_tells_of_any_number_in_one_statement(self):
        def taken(count):
            with only_timelines(*(_job(f"job_{count}_{number}") for number in range(count)), Alerts):
                poll(START)
                with CaptureQueriesContext(connection) as asked:
                    poll(START + 3 * DAY)
            return len(asked)

        assert taken(2) == taken(20)
        assert ScheduledTask.objects.filter(task_key=TELL).count() == 22

    def test_makes_up_for_nothing_that_is_too_long_ago(self):
        with only_timelines(settlement(within=HOUR)):
            poll(START)
            poll(START + 3 * DAY)

        assert [state for _key, state, _code in rows()] == ["cancelled", "scheduled"]

    def test_is_bounded(self):
        class Often(Timeline):
            name = "settlement"
            starts_on = cron("* * * * *", zone="UTC", overlap="allow", catch_up="all", within=7 * DAY)

            @task(after())
            def settle(self):
                return None

        with only_timelines(Often):
            poll(START)
            poll(START + 3 * DAY)

        assert ScheduledTask.objects.filter(state=State.AVAILABLE).count() == 1000

    def test_looks_at_few_slots_however_long_nobody_polled(self, monkeypatch):
        """PostgreSQL ends the transaction of a poll that works out slots for ten seconds, and then the next one's as well."""
        looked, since = [0], Slots.since

        def counted(self, instant, zone):
            for slot in since(self, instant, zone):
                looked[0] += 1
                yield slot

        monkeypatch.setattr(Slots, "since", counted)
        with only_timelines(settlement(starts=cron("* * * * *", zone="UTC"))):
            poll(START)
            poll(START + 60 * DAY)

        assert looked[0] < 10_000
        assert [(key[:16], state) for key, state in _keys_and_states()] == [
            ("2026-03-01T09:01", "cancelled"),
            ("2026-04-30T09:00", "available"),
            ("2026-04-30T09:01", "scheduled"),
        ]
        passed = ScheduledTask.objects.get(state=State.CANCELLED, task_key="settlement.settle")
        assert "to 2026-04-30 08:59 UTC" in passed.reason

    def test_takes_a_poll_that_is_a_little_late_as_it_is(self):
        poll(START)
        poll(datetime(2026, 3, 2, 2, 0, 1, tzinfo=UTC))

        assert [state for _key, state, _code in rows()] == ["scheduled", "scheduled"]


class TestOverlap:
    def test_skips_a_run_while_an_earlier_one_is_open(self, run_at):
        poll(START)
        poll(START + DAY)
        run_at(_settle("2026-03-02"), START + DAY)  # Its second task is still to come.

        run_at(_settle("2026-03-03"), START + DAY + 17 * HOUR)
        run_at(_settle("2026-03-03", "look"), START + 2 * DAY)

        assert rows()[1] == ("2026-03-03", "cancelled", "overlap")
        assert "2026-03-02T02:00Z" in _settle("2026-03-03").reason
        assert _settle("2026-03-03", "look").reason_code == "overlap"

    def test_lets_it_run_where_that_is_allowed(self, run_at):
        with only_timelines(settlement(overlap="allow")):
            poll(START)
            poll(START + DAY)
            run_at(_settle("2026-03-02"), START + DAY)

            run_at(_settle("2026-03-03"), START + DAY + 17 * HOUR)

        assert rows()[1] == ("2026-03-03", "completed", "done")

    def test_lets_it_run_when_the_earlier_one_has_ended(self, run_at):
        poll(START)
        poll(START + DAY)
        begin_all(run_at, START + DAY)

        run_at(_settle("2026-03-03"), START + DAY + 17 * HOUR)

        assert rows()[1] == ("2026-03-03", "completed", "done")

    def test_looks_at_no_run_that_was_moved_far_ahead(self, run_at):
        poll(START)
        poll(START + DAY)
        ids = [_settle("2026-03-02").pk, _settle("2026-03-02", "look").pk]
        move(task_ids=ids, at=START + 9 * DAY, reason=Reason.operator("later"), now=START, using="default")

        run_at(_settle("2026-03-03"), START + DAY + 17 * HOUR)

        assert rows()[1] == ("2026-03-03", "completed", "done")

    def test_is_asked_again_where_nobody_came_to_ask(self, run_at, let_lease_run_out, monkeypatch):
        class Settlement(Timeline):
            name = "settlement"
            starts_on = daily("02:00", zone="UTC")

            @task(after(), atomic=False)
            def settle(self):
                return None

            @task(after(hours=3))
            def look(self):
                return None

        def die(attempts, **given):
            raise Death

        with only_timelines(Settlement):
            poll(START)
            poll(START + DAY)
            run_at(_settle("2026-03-02"), START + DAY)
            monkeypatch.setattr("timeline.features.recurring.hooks.overlapping", die)
            with pytest.raises(Death):
                run_at(_settle("2026-03-03"), START + DAY + 17 * HOUR)
            monkeypatch.undo()
            let_lease_run_out(_settle("2026-03-03"))
            rescue(now=START + DAY + 18 * HOUR, using="default")
            assert _settle("2026-03-03").state == State.RETRYABLE

            run_at(_settle("2026-03-03"), START + DAY + 19 * HOUR)

        assert rows()[1] == ("2026-03-03", "cancelled", "overlap")

    def test_is_not_asked_again_where_a_step_is_done(self, run_at, let_lease_run_out):
        class Settlement(Timeline):
            name = "settlement"
            starts_on = daily("02:00", zone="UTC")

            @task(after(), atomic=False)
            def settle(self):
                self.pay()
                if self.task.attempt == 1:
                    raise Death

            @step(atomic=False)
            def pay(self):
                return None

        with only_timelines(Settlement):
            poll(START)
            poll(START + DAY)
            moved, later = _settle("2026-03-02"), START + 9 * DAY
            move(task_ids=[moved.pk], at=later, reason=Reason.operator("later"), now=START, using="default")
            with pytest.raises(Death):
                run_at(_settle("2026-03-03"), START + DAY + 17 * HOUR, watch=Killed())
            let_lease_run_out(_settle("2026-03-03"))
            rescue(now=START + DAY + 18 * HOUR, using="default")
            assert _settle("2026-03-03").state == State.RETRYABLE
            with pytest.raises(Death):
                run_at(_settle("2026-03-02"), later, watch=Killed())

            run_at(_settle("2026-03-03"), START + DAY + 19 * HOUR)

        assert rows()[1] == ("2026-03-03", "completed", "done")

    def test_is_not_asked_again_once_a_run_has_begun(self, run_at):
        poll(START)
        poll(START + DAY)
        begin_all(run_at, START + DAY)
        run_at(_settle("2026-03-03"), START + DAY + 17 * HOUR)
        TimelineRun.objects.filter(key="2026-03-02T02:00Z").update(ended_at=None, end_code="", end_reason="")

        run_at(_settle("2026-03-03", "look"), START + 2 * DAY)

        assert _settle("2026-03-03", "look").state == State.COMPLETED


class Death(BaseException):
    """The process dies here."""


def _job(name):
    def go(self):
        return None

    return type("Job", (Timeline,), {"name": name, "starts_on": hourly(zone="UTC"), "go": task(after())(go)})


def _settle(day, name="settle"):
    return ScheduledTask.objects.get(run__key__startswith=day, task_key=f"settlement.{name}")


def _in_order():
    tasks = ScheduledTask.objects.filter(task_key="settlement.settle").select_related("run")
    return sorted(tasks, key=attrgetter("run.started_at"))


def _as_due(known, due):
    """Whether it was passed over, is due, or is ahead: who waits to be staged is due as well."""
    return RAN if known.state == State.SCHEDULED and known in due else known.state

"""The last look: what is no longer true does not run, and says why."""

from datetime import timedelta

import pytest
from django.db.models import Q

from tests.testapp.models import Invoice, Order
from timeline import Timeline, after, at, task
from timeline.engine.attempts import begin_attempts
from timeline.engine.groups import begin_given, run_begun
from timeline.engine.precheck import look
from timeline.features.maintenance.prune import prune
from timeline.lifecycle import Reason, State
from timeline.models import Event, ScheduledTask, TimelineRun
from timeline.operations.cancel import cancel
from timeline.operations.start import start
from timeline.testing import only_timelines

OPERATOR = Reason.operator("asked for", "ada")


class TestGuards:
    HOLDS = [lambda order: True, lambda order: 1, Q(paid=True)]
    FAILS = [lambda order: False, lambda order: None, Q(paid=False), ~Q(paid=True)]

    @pytest.fixture(autouse=True)
    def _paid(self, order):
        Order.objects.update(paid=True)

    @pytest.mark.parametrize(
        "guards",
        [
            *({"only_if": guard} for guard in HOLDS),
            *({"unless": guard} for guard in FAILS),
            {"only_if": Q(paid=True), "unless": lambda order: not order.paid},
        ],
    )
    def test_let_the_handler_be_entered(self, work, run_at, later, guards):
        assert run_at(work(**guards), later).state == State.COMPLETED

    @pytest.mark.parametrize(
        "guards",
        [
            *({"only_if": guard} for guard in FAILS),
            *({"unless": guard} for guard in HOLDS),
            {"only_if": Q(paid=True), "unless": lambda order: order.paid},
        ],
    )
    @pytest.mark.parametrize("atomic", [True, False])
    def test_keep_the_handler_from_being_entered(self, work, run_at, later, guards, atomic):
        seen = []
        row = work(lambda job, order: seen.append(1), atomic=atomic, **guards)

        done = run_at(row, later)

        assert (done.state, done.reason_code, done.failures) == (State.CANCELLED, "guard", 0)
        assert seen == []
        assert TimelineRun.objects.get().is_finished


class TestTheLastLook:
    @pytest.mark.parametrize("label", ["shop.client", "testapp.invoice"])
    def test_lets_what_has_the_old_name_of_a_model_rest_until_it_has_the_new_one(
        self, work, run_at, later, order, label
    ):
        """Its entity is not gone: a worker of the new code, or of the old one, only cannot know where it is."""
        row = work(lambda job, order: "done")
        Invoice.objects.create(pk=order.pk)
        ScheduledTask.objects.update(entity_label=label)

        resting = run_at(row, later)
        ScheduledTask.objects.update(entity_label="testapp.order")

        assert (resting.state, resting.reason_code, resting.failures) == (State.RETRYABLE, "definition", 0)
        assert "timeline_relabel" in resting.reason
        assert TimelineRun.objects.get().is_open
        assert run_at(row, resting.scheduled_at).result == "done"

    def test_sees_that_the_run_ended(self, work, run_at, later):
        """The row was left open by a write that no code of ours made."""
        row = work()
        TimelineRun.objects.update(ended_at=later, end_reason="closed")

        done = run_at(row, later)

        assert (done.state, done.reason_code, done.reason) == (State.CANCELLED, "exit", "closed")

    @pytest.mark.parametrize("options", [{}, {"atomic": False}, {"atomic": "shared"}])
    def test_sees_that_the_run_was_deleted(self, work, later, options):
        """Its worker was not heard of for so long that the task ended elsewhere and was pruned."""
        seen = []
        row = work(lambda job, order: seen.append(1), **options)
        [attempts] = begin_given(task_ids=[row.pk], clock=lambda: later, using="default")
        cancel(task_ids=[row.pk], reason=OPERATOR, now=later, using="default")
        prune(ended_before=later + timedelta(days=1), using="default")

        ended = run_begun(attempts, clock=lambda: later, using="default")

        assert (ended, seen) == ([], [])
        assert not ScheduledTask.objects.exists()

    @pytest.mark.parametrize("after_start", [timedelta(0), timedelta(hours=1)])
    def test_sees_an_exit_that_no_code_saw(self, work, run_at, later, order, now, after_start):
        """Of what happened at the very moment of the start, what was recorded after it counts."""
        seen = []
        row = work(lambda job, order: seen.append(1))
        self.insert(order, now + after_start)

        done = run_at(row, later)

        assert (done.state, done.reason_code, done.reason) == (State.CANCELLED, "exit", "closed")
        assert seen == []

    @pytest.mark.parametrize("change", [{"name": "order.other"}, {"entity_id": "999"}, {"hours": -1}])
    def test_passes_over_an_event_that_is_no_exit_of_this_run(self, work, run_at, later, order, now, change):
        row = work()
        self.insert(order, now + timedelta(hours=change.pop("hours", 1)), **change)

        assert run_at(row, later).state == State.COMPLETED

    def insert(self, order, at, happened=None, **columns):
        named = {"name": "order.closed", "entity_label": "testapp.order", "entity_id": str(order.pk)} | columns
        Event.objects.create(**named, occurred_at=happened or at, recorded_at=at)

    @pytest.mark.parametrize("happened", [-30, 0, 30])
    def test_passes_over_an_exit_recorded_before_the_start(self, work, run_at, order, now, later, emit_at, happened):
        """Who left and came back stays, whenever that happened, and whatever the times of the new run count from."""
        with_exit = now + timedelta(days=happened)
        emit_at("order.closed", order, now - timedelta(days=1), occurred_at=with_exit)
        work()
        row = self.begun_again(order, now, started_at=now - timedelta(days=60))

        done = run_at(row, later)

        assert done.state == State.COMPLETED

    @pytest.mark.parametrize("happened", [-90, 0, 30])
    def test_sees_an_exit_recorded_after_the_start_whenever_it_happened(
        self, work, run_at, order, now, later, happened
    ):
        """Of a timeline that had no such exit when it was recorded, say."""
        work()
        row = self.begun_again(order, now, started_at=now - timedelta(days=60))
        self.insert(order, now + timedelta(hours=1), happened=now + timedelta(days=happened))

        done = run_at(row, later)

        assert (done.state, done.reason_code, done.reason) == (State.CANCELLED, "exit", "closed")

    def test_tells_the_order_of_what_was_recorded_at_the_same_moment(self, work, run_at, order, now, later, emit_at):
        """Clocks of tests stand still: then what was recorded first came first."""
        work()
        emit_at("order.closed", order, now)
        row = self.begun_again(order, now)

        assert run_at(row, later).state == State.COMPLETED

    def test_reads_when_a_run_of_an_earlier_version_started(self, work, run_at, order, now, later):
        """It says not when it was recorded."""
        row = work()
        TimelineRun.objects.update(recorded_at=None)
        self.insert(order, now + timedelta(hours=1))

        assert run_at(row, later).state == State.CANCELLED

    def begun_again(self, order, now, **given):
        TimelineRun.objects.open().update(ended_at=now, end_reason="over")
        given = {"key": "", "params": {}, "started_at": None, "using": "default"} | given
        return start(timeline="job", entity=order, now=now, **given).run.tasks.get(task_key="job.work")

    def test_sees_that_the_entity_is_gone(self, work, run_at, later, order):
        row = work()
        Order.objects.filter(pk=order.pk)._raw_delete("default")
        Order.objects.create()

        done = run_at(row, later)

        assert (done.state, done.reason_code) == (State.CANCELLED, "entity_gone")
        assert TimelineRun.objects.get().ended_at == later

    def test_lets_a_task_rest_whose_entity_may_only_not_be_seen(self, work, run_at, later, order):
        """On a replica that is empty, in another schema: a table that shows nothing proves nothing."""
        row = work(lambda job, order: "done")
        Order.objects.filter(pk=order.pk)._raw_delete("default")

        resting = run_at(row, later)
        order.save(force_insert=True)

        assert (resting.state, resting.reason_code, resting.failures) == (State.RETRYABLE, "definition", 0)
        assert TimelineRun.objects.get().is_open
        assert run_at(resting, resting.scheduled_at).state == State.COMPLETED

    def test_sees_that_the_anchor_changed(self, work, run_at, order, now):
        """A bulk update fires no signal: what was due then is superseded, and its next revision is at the new time."""
        seen = []
        Order.objects.update(ships_at=now + timedelta(days=1))
        row = work(lambda job, order: seen.append(job.now), at("ships_at"))
        Order.objects.update(ships_at=now + timedelta(days=9))

        done = run_at(row, now + timedelta(days=1))

        assert (done.state, done.reason_code, seen) == (State.CANCELLED, "superseded", [])
        again = ScheduledTask.objects.get(revision=2)
        assert (again.previous, again.state, again.scheduled_at) == (row, State.SCHEDULED, now + timedelta(days=9))
        assert run_at(again, now + timedelta(days=9)).state == State.COMPLETED

    def test_sees_that_the_anchor_is_not_set_any_more(self, work, run_at, now):
        Order.objects.update(ships_at=now)
        row = work(when=at("ships_at"))
        Order.objects.update(ships_at=None)

        done = run_at(row, now)

        assert (done.state, done.reason_code) == (State.CANCELLED, "superseded")
        assert not ScheduledTask.objects.open().exists()
        assert TimelineRun.objects.get().is_open

    def test_lets_run_what_was_moved_ahead_though_its_declaration_has_changed_since(self, work, run_at, order, now):
        """What it is for is as it was: only the time within which it expires is another."""
        row = work(when=after(days=9), expires=timedelta(hours=1))
        ScheduledTask.objects.update(scheduled_at=now, definition_hash="of another")

        assert run_at(row, now).state == State.COMPLETED

    def test_sees_that_its_schedule_has_changed_to_a_later_one(self, work, run_at, order, now):
        row = work(when=after(days=9))
        earlier = now + timedelta(days=1)
        ScheduledTask.objects.update(scheduled_at=earlier, nominal_at=earlier, definition_hash="of another")

        done = run_at(row, earlier)

        assert (done.state, done.reason) == (State.CANCELLED, "its schedule was changed to a later one")

    def test_sees_that_it_is_too_late(self, work, run_at, later):
        seen = []
        row = work(lambda job, order: seen.append(1), expires=timedelta(hours=2))

        done = run_at(row, later + timedelta(hours=2))

        assert (done.state, done.reason_code, seen) == (State.CANCELLED, "expired", [])
        assert TimelineRun.objects.get().is_finished

    def test_lets_run_what_is_late_but_not_too_late(self, work, run_at, later):
        row = work(expires=timedelta(hours=2))

        assert run_at(row, later + timedelta(hours=1, minutes=59)).state == State.COMPLETED

    def test_sees_that_the_schedule_was_changed_to_a_later_one(self, work, run_at, later, now):
        row = work()
        work(when=after(days=8))

        done = run_at(row, later)

        assert (done.state, done.reason_code) == (State.CANCELLED, "superseded")
        assert ScheduledTask.objects.get(revision=2).scheduled_at == now + timedelta(days=8)

    def test_lets_run_what_was_changed_to_an_earlier_time(self, work, run_at, later):
        row = work()
        work(when=after(hours=1))

        assert run_at(row, later).state == State.COMPLETED

    def test_asks_an_ad_hoc_task_for_no_anchor(self, work, run_at, later, order, emit_at, schedule_at):
        work()
        row = schedule_at("job.ad_hoc", order, later, later).task
        emit_at("order.closed", order, later)

        assert run_at(row, later).state == State.COMPLETED


class TestQueries:
    def test_of_the_last_look_are_as_many_for_a_thousand_as_for_ten(self, later, now, statements_of, start_each_at):
        """Nothing is read row by row before a handler is entered: not exits, entities or guards."""

        class Job(Timeline):
            entity = "testapp.Order"
            exits = {"order.closed": "closed"}

            @task(after(days=1), unless=Q(paid=True))
            def work(self, order):
                return None

        asked = []
        with only_timelines(Job):
            for count in (10, 1000):
                start_each_at("job", Order.objects.bulk_create([Order() for _ in range(count)]), now)
                ids = list(ScheduledTask.objects.filter(state=State.SCHEDULED).values_list("pk", flat=True))
                attempts = begin_attempts(ids, token=None, worker="", now=later, using="default")
                asked.append(statements_of(lambda attempts=attempts: look(attempts, now=later, using="default")))
                assert len(attempts) == count

        assert asked[0] == asked[1]

"""Cancel: call tasks off, all or none, and record why."""

from datetime import timedelta
from uuid import uuid4

import pytest

from tests.testapp.models import Order
from timeline import Timeline, after, task
from timeline.exceptions import TransitionNotAllowed
from timeline.lifecycle import FINAL, OPEN, Reason, State
from timeline.models import LogEntry, ScheduledTask, TimelineRun, ref_of
from timeline.operations.cancel import cancel, cancel_all
from timeline.testing import only_timelines

REASON = Reason.operator("trial converted", "ada")


def cancel_rows(rows, now):
    return cancel(task_ids=[row.pk for row in rows], reason=REASON, now=now, using="default")


class Delivery(Timeline):
    entity = "testapp.Order"

    @task(after(days=1))
    def pack(self, order):
        return None

    @task(after(pack, days=1))
    def ship(self, order):
        return None

    @task(after(days=5))
    def bill(self, order):
        return None


class TestCancel:
    @pytest.mark.parametrize("state", sorted(OPEN))
    def test_ends_the_task_and_logs_why(self, make_task, now, state):
        row = make_task(state=state)

        [cancelled] = cancel_rows([row], now)

        row.refresh_from_db()
        assert cancelled == row
        assert (row.state, row.finished_at) == (State.CANCELLED, now)
        assert (row.reason_code, row.reason, row.actor) == ("operator", "trial converted", "ada")
        entry = row.log.get()
        assert (entry.seq, entry.from_state, entry.to_state, entry.at) == (1, state, State.CANCELLED, now)
        assert (entry.reason_code, entry.reason, entry.actor) == ("operator", "trial converted", "ada")

    def test_takes_many_in_the_order_given(self, make_task, now):
        rows = [make_task() for _ in range(5)][::-1]

        assert cancel_rows([*rows, rows[0]], now) == rows

    def test_takes_none_at_all(self, db, now):
        assert cancel_rows([], now) == []

    @pytest.mark.parametrize("state", sorted(FINAL))
    def test_refuses_what_has_ended_and_changes_nothing(self, make_task, now, state):
        rows = [make_task(), make_task(state=state), make_task()]

        with pytest.raises(TransitionNotAllowed) as refused:
            cancel_rows(rows, now)

        assert (refused.value.state, refused.value.task) == (state, rows[1].pk)
        assert ScheduledTask.objects.filter(state=State.SCHEDULED).count() == 2
        assert not LogEntry.objects.exists()

    def test_refuses_an_id_that_is_not_there_and_changes_nothing(self, make_task, now):
        row, gone = make_task(), ScheduledTask(pk=uuid4())

        with pytest.raises(ScheduledTask.DoesNotExist, match=str(gone.pk)):
            cancel_rows([row, gone], now)

        row.refresh_from_db()
        assert row.state == State.SCHEDULED

    def test_asks_as_much_for_a_thousand_as_for_ten(self, now, start_each_at, statements_of):
        asked = []
        with only_timelines(Delivery):
            for count in (10, 1000):
                start_each_at("delivery", Order.objects.bulk_create([Order() for _ in range(count)]), now)
                rows = list(ScheduledTask.objects.filter(state=State.SCHEDULED, task_key="delivery.pack"))
                assert len(rows) == count
                asked.append(statements_of(lambda rows=rows: cancel_rows(rows, now)))

        assert asked[0] == asked[1]


class TestCancelInARun:
    @pytest.fixture(autouse=True)
    def _started(self, order, start_at, now):
        with only_timelines(Delivery):
            start_at("delivery", order, now)
            yield

    def test_lets_nothing_follow(self, now):
        cancel_rows(ScheduledTask.objects.filter(task_key="delivery.pack"), now)

        assert not ScheduledTask.objects.filter(task_key="delivery.ship").exists()
        assert TimelineRun.objects.get().is_open

    def test_finishes_the_run_of_which_nothing_is_left(self, now):
        cancel_rows(ScheduledTask.objects.all(), now)

        assert (TimelineRun.objects.get().end_reason, TimelineRun.objects.get().ended_at) == ("finished", now)

    def test_leaves_what_does_not_hang_on_it(self, now, run_at):
        cancel_rows(ScheduledTask.objects.filter(task_key="delivery.pack"), now)

        done = run_at(ScheduledTask.objects.get(task_key="delivery.bill"), now + timedelta(days=5))

        assert done.state == State.COMPLETED
        assert TimelineRun.objects.get().is_finished


class Closing(Timeline):
    """Its first task calls everything off."""

    entity = "testapp.Order"

    @task(after(days=1))
    def close(self, order):
        cancel_all(ref=ref_of(order), reason=REASON, now=self.now, using="default")

    @task(after(days=2))
    def bill(self, order):
        return None


class TestCancelAll:
    def test_calls_off_what_is_open_of_an_entity_in_runs_and_without(self, make_task, start_at, order, now):
        mine = {"entity_label": "testapp.order", "entity_id": str(order.pk)}
        alone = [make_task(state=state, **mine) for state in sorted(OPEN)]
        ended = [make_task(state=state, **mine) for state in sorted(FINAL)]
        others = [make_task(), make_task(entity_label="testapp.order", entity_id=str(order.pk + 1))]
        with only_timelines(Delivery):
            run = start_at("delivery", order, now).run
            of_run = list(run.tasks.order_by("pk"))

            cancelled = cancel_all(ref=ref_of(order), reason=REASON, now=now, using="default")

        assert cancelled == sorted([*alone, *of_run], key=lambda row: row.pk)
        assert {(row.state, row.finished_at, row.reason, row.actor) for row in cancelled} == {
            (State.CANCELLED, now, "trial converted", "ada")
        }
        assert all(row.log.last().to_state == State.CANCELLED for row in cancelled)
        for row in [*ended, *others]:
            before = row.state
            row.refresh_from_db()
            assert row.state == before
        run.refresh_from_db()
        assert (run.end_reason, run.ended_at) == ("finished", now)

    def test_lets_the_run_of_another_go_on(self, start_at, now):
        mine, another = Order.objects.create(), Order.objects.create()
        with only_timelines(Delivery):
            start_at("delivery", mine, now)
            run = start_at("delivery", another, now).run

            cancel_all(ref=ref_of(mine), reason=REASON, now=now, using="default")

        run.refresh_from_db()
        assert run.is_open
        assert run.tasks.open().count() == 2

    def test_finds_what_is_about_no_entity(self, make_task, now):
        row, about_one = make_task(), make_task(entity_label="testapp.order", entity_id="1")

        assert cancel_all(ref=ref_of(None), reason=REASON, now=now, using="default") == [row]

        about_one.refresh_from_db()
        assert about_one.is_open

    def test_finds_what_an_entity_left_that_is_gone(self, make_task, order, now):
        ref = ref_of(order)
        Order.objects.all().delete()
        row = make_task(entity_label=ref.label, entity_id=ref.id)

        assert cancel_all(ref=ref, reason=REASON, now=now, using="default") == [row]

    def test_takes_it_that_nothing_is_open(self, order, now):
        assert cancel_all(ref=ref_of(order), reason=REASON, now=now, using="default") == []

    def test_spares_the_task_whose_handler_says_it(self, start_at, run_at, order, now):
        with only_timelines(Closing):
            run = start_at("closing", order, now).run

            done = run_at(run.tasks.get(task_key="closing.close"), now + timedelta(days=1))

        assert done.state == State.COMPLETED
        assert run.tasks.get(task_key="closing.bill").state == State.CANCELLED
        run.refresh_from_db()
        assert run.is_finished

    def test_asks_as_much_for_a_hundred_as_for_one(self, make_task, now, statements_of):
        asked = []
        for count in (1, 100):
            order = Order.objects.create()
            for _ in range(count):
                make_task(entity_label="testapp.order", entity_id=str(order.pk))
            ref = ref_of(order)
            asked.append(statements_of(lambda ref=ref: cancel_all(ref=ref, reason=REASON, now=now, using="default")))

        assert asked[0] == asked[1]

"""Groups: what is started together, how far a group goes before it looks again, and what of it is alone."""

from datetime import timedelta

import pytest

from tests.databases import VENDOR
from tests.testapp.models import Effect, Order
from timeline import Retry, Timeline, at, task
from timeline.dispatch.poll import stage
from timeline.engine.groups import Watch, begin_ready, run, run_begun
from timeline.lifecycle import Reason, State
from timeline.models import ScheduledTask
from timeline.operations.cancel import cancel
from timeline.testing import only_timelines


class Groups(Watch):
    """Notes which tasks were held at a time."""

    def __init__(self):
        self.held = []
        self.groups = []

    def entered(self, *tasks):
        self.held.extend(task.pk for task in tasks)

    def left(self, *tasks):
        if self.held:
            self.groups.append(self.held)
        self.held = []


def tell(job, order):
    Effect.objects.create(name=str(order.pk))


def told():
    return [int(name) for name in Effect.objects.order_by("pk").values_list("name", flat=True)]


def run_ready(later, **which):
    attempts = begin_ready(clock=lambda: later, using="default", **which)
    return run_begun(attempts, clock=lambda: later, using="default") if attempts else []


def ends(rows):
    return [(row.state, row.reason) for row in rows]


class TestQueries:
    @pytest.mark.parametrize("ad_hoc", [True, False])
    def test_of_a_whole_group_are_as_many_for_500_as_for_10(self, crowd, run_all, statements_of, patient, ad_hoc):
        """Start, last look, outcomes, follow-ups, the ends of runs: a fixed number of statements."""
        asked = []
        for count in (10, 500):
            rows = crowd(count, atomic=False, ad_hoc=ad_hoc)
            asked.append(statements_of(lambda rows=rows: run_all(rows)))

        assert asked[0] == asked[1]
        assert ScheduledTask.objects.filter(task_key="crowd.work", state="completed").count() == 510
        assert ScheduledTask.objects.filter(task_key="crowd.follow").count() == (0 if ad_hoc else 510)


class TestAGroupPastItsTime:
    """Another's deed while the first handler runs: what it makes untrue must not run any more."""

    def deed(self, act):
        """A handler whose first call has somebody else act."""

        def handler(job, order):
            tell(job, order)
            if len(told()) == 1:
                act()

        return handler

    @pytest.mark.parametrize("atomic", [True, False])
    def test_has_written_the_outcomes_so_far(self, crowd, run_all, hasty, atomic):
        seen = []
        states = ScheduledTask.objects.filter(task_key="crowd.work").order_by("pk").values_list("state", flat=True)
        rows = crowd(3, lambda job, order: seen.append(list(states.all())), atomic=atomic)

        run_all(rows)

        assert seen == [["active"] * 3, ["completed"] + ["active"] * 2, ["completed"] * 2 + ["active"]]

    def test_has_written_none_before(self, crowd, run_all, patient):
        seen = []
        states = ScheduledTask.objects.filter(task_key="crowd.work").values_list("state", flat=True)
        rows = crowd(3, lambda job, order: seen.extend(states.all()), atomic=False)

        run_all(rows)

        assert set(seen) == {"active"}

    @pytest.mark.parametrize("atomic", [True, False])
    def test_leaves_what_an_exit_has_ended(self, crowd, run_all, emit_at, later, hasty, atomic):
        first, _second, third = rows = crowd(
            3, self.deed(lambda: emit_at("order.closed", self.orders[1], later)), atomic=atomic
        )
        self.orders = [row.entity_ref for row in rows]

        done = run_all(rows)

        assert ends(done) == [("completed", ""), ("cancelled", "closed"), ("completed", "")]
        assert told() == [int(first.entity_id), int(third.entity_id)]

    def test_leaves_what_an_exit_will_end_that_nobody_acted_on(self, crowd, run_all, later, hasty):
        """An event that was only recorded: the last look sees it by itself, and ends the task with its reason."""
        rows = crowd(2, self.deed(lambda: self.record(rows[1], later)), atomic=False)

        done = run_all(rows)

        assert ends(done) == [("completed", ""), ("cancelled", "closed")]
        assert done[1].reason_code == "exit"
        assert told() == [int(rows[0].entity_id)]

    def record(self, row, at):
        label, key = row.entity_ref
        row.run.tasks.model.cause.field.related_model.objects.create(
            name="order.closed", entity_label=label, entity_id=key, key="k", payload={}, occurred_at=at, recorded_at=at
        )

    @pytest.mark.parametrize("atomic", [True, False])
    def test_leaves_what_a_person_has_called_off(self, crowd, run_all, later, hasty, atomic):
        """It has no run that could have ended: its row is all that tells."""
        first, second, third = rows = crowd(
            3,
            self.deed(lambda: cancel(task_ids=[rows[1].pk], reason=Reason.operator("no"), now=later, using="default")),
            atomic=atomic,
            ad_hoc=True,
        )

        run_all(rows)

        assert told() == [int(first.entity_id), int(third.entity_id)]
        second.refresh_from_db()
        assert (second.state, second.reason) == ("cancelled", "no")

    @pytest.mark.parametrize("atomic", [True, False])
    def test_leaves_what_a_moved_anchor_has_made_another_time(self, crowd, run_all, now, hasty, atomic):
        def move():
            Order.objects.filter(pk=rows[1].entity_id).update(ships_at=now + timedelta(days=40))

        rows = crowd(3, self.deed(move), when=at("ships_at"), atomic=atomic)

        done = run_all(rows)

        assert ends(done) == [("completed", ""), ("cancelled", "ships_at changed"), ("completed", "")]
        assert done[1].reason_code == "superseded"
        assert told() == [int(rows[0].entity_id), int(rows[2].entity_id)]

    def test_within_its_time_enters_what_it_has_looked_at(self, crowd, run_all, emit_at, later, patient):
        """The other side of it: within those 50 ms a plain handler is entered; the exit stands all the same."""
        rows = crowd(2, self.deed(lambda: emit_at("order.closed", rows[1].entity_ref, later)), atomic=False)

        done = run_all(rows)

        assert ends(done) == [("completed", ""), ("cancelled", "closed")]
        assert len(told()) == 2

    def test_within_its_time_undoes_what_an_atomic_handler_wrote(self, crowd, run_all, emit_at, later, patient):
        rows = crowd(2, self.deed(lambda: emit_at("order.closed", rows[1].entity_ref, later)))

        done = run_all(rows)

        assert ends(done) == [("completed", ""), ("cancelled", "closed")]
        assert told() == [int(rows[0].entity_id)]


class TestSecondAttempts:
    def test_run_alone_after_the_others(self, crowd, run_all, later):
        rows = crowd(4, lambda job, order: job.task.attempt)
        ScheduledTask.objects.filter(pk=rows[1].pk).update(attempt=1)
        watch = Groups()

        done = run_all(rows, watch=watch)

        ids = [row.pk for row in rows]
        assert [row.result for row in done] == [1, 2, 1, 1]
        assert watch.groups == [[ids[0], ids[2], ids[3]], [ids[1]]]

    def test_are_taken_alone_by_a_worker_without_a_broker(self, crowd, later):
        """The longest due first: one that was tried before goes by itself, and those behind it go together."""
        rows = crowd(4, retry=Retry(max_attempts=9))
        for number, row in enumerate(rows):
            ScheduledTask.objects.filter(pk=row.pk).update(
                scheduled_at=row.scheduled_at - timedelta(minutes=9 - number), attempt=1 if number in (0, 2) else 0
            )
        stage(now=later, using="default")
        groups = []

        while done := run_ready(later, task_key="crowd.work", priority=0, most=10):
            groups.append([row.pk for row in done])

        ids = [row.pk for row in rows]
        together = [[ids[0]], [ids[1], ids[3]], [ids[2]]]
        assert groups == (together if VENDOR == "postgresql" else [[pk] for pk in ids])

    def test_are_not_taken_twice_when_named_twice(self, crowd, run_all):
        rows = crowd(2, tell)

        run_all([*rows, *rows])

        assert len(told()) == 2


class TestRunReady:
    def test_starts_only_what_is_of_the_kind_and_priority(self, crowd, later):
        rows = crowd(3)
        ScheduledTask.objects.filter(pk=rows[0].pk).update(priority=3)
        stage(now=later, using="default")

        done = run_ready(later, task_key="crowd.work", priority=3, most=10)

        assert [row.pk for row in done] == [rows[0].pk]
        assert run_ready(later, task_key="crowd.follow", priority=0, most=9) == []

    def test_starts_no_more_than_asked_for(self, crowd, later):
        crowd(5)
        stage(now=later, using="default")

        run_ready(later, task_key="crowd.work", priority=0, most=2)

        done = ScheduledTask.objects.filter(task_key="crowd.work", state="completed").count()
        assert done == (2 if VENDOR == "postgresql" else 1)


class TestTasksOfOneEntity:
    @pytest.mark.parametrize("atomic", [True, "shared", False])
    def test_are_given_it_as_the_ones_before_left_it(self, crowd, run_all, schedule_at, now, later, patient, atomic):
        """Saved whole by each, it keeps what another saved; what was undone, none of them sees."""

        def sign(job, order):
            order.note += f"{job.task.occurrence} "
            order.save()
            if job.task.occurrence == "b" and atomic:
                raise ValueError("undone")

        [row] = crowd(1, sign, atomic=atomic)
        others = [
            schedule_at("crowd.work", row.entity_ref, now + timedelta(hours=hour), now, key=name).task
            for hour, name in enumerate("abc")
        ]

        run_all(others)

        assert Order.objects.get(pk=row.entity_id).note == ("a c " if atomic else "a b c ")


class TestGroupsOfManyKinds:
    def test_run_each_kind_its_own_way(self, now, later, order, schedule_at):
        class Mixed(Timeline):
            entity = "testapp.Order"

            @task()
            def one(self, order):
                return f"one {order.pk}"

            @task(bulk=10)
            def many(self, orders):
                return {order: f"many {order.pk}" for order in orders}

            @task(atomic=False)
            async def side(self, order):
                return f"side {order.pk}"

        with only_timelines(Mixed):
            kinds = ["mixed.one", "mixed.many", "mixed.side"] * 2
            ids = [schedule_at(kind, order, later, now).task.pk for kind in kinds]
            done = run(task_ids=ids, clock=lambda: later, using="default")

        assert [row.pk for row in done] == ids
        assert [row.result for row in done] == [f"{kind[6:]} {order.pk}" for kind in kinds]
        assert {row.state for row in done} == {State.COMPLETED}

"""Then: outcome, event and move are one transaction, and the outcome is the fence."""

import json
from contextlib import ExitStack
from datetime import timedelta
from typing import ClassVar

import pytest
from django.db import OperationalError

from tests.engine.watching import AtEntry
from tests.machines import is_whole
from tests.testapp.models import Effect, Order
from timeline import IGNORE, Machine, Retry, Then, Timeline, after, task
from timeline.engine.groups import run
from timeline.lifecycle import Reason, State
from timeline.models import Event, RunEntry, ScheduledTask, TimelineRun
from timeline.operations.cancel import cancel
from timeline.shortcuts import emit, schedule, start
from timeline.testing import only_timelines
from timeline.worker.embedded import Worker

pytestmark = pytest.mark.django_db(transaction=True)

WAYS = [
    pytest.param({"atomic": True}, id="atomic"),
    pytest.param({"atomic": "own"}, id="own"),
    pytest.param({"atomic": "shared"}, id="shared"),
    pytest.param({"atomic": False}, id="plain"),
    pytest.param({"atomic": False, "timeout": timedelta(minutes=1)}, id="plain, in time"),
    pytest.param({"bulk": 10}, id="bulk"),
    pytest.param({"bulk": 10, "atomic": False}, id="plain bulk"),
    pytest.param({"atomic": False, "is_async": True}, id="async"),
]
TABLE = {
    "working": {"work.done": "over", "work.waits": "waiting", "work.seen": IGNORE},
    "waiting": {"work.done": "over"},
    "over": {"work.closed": "closed"},
    "closed": {},
}


def job(say, *, bulk=None, is_async=False, key=(), base=Machine, **options):
    """A machine whose one task is due after a day and returns what ``say`` gives."""
    retry = options.pop("retry", Retry(max_attempts=2))
    run_key = key

    if bulk:

        def work(self, orders):
            return {order: say(self.tasks[order], order) for order in orders}

        options["bulk"] = bulk
    elif is_async:

        async def work(self, order):
            return say(self, order)
    else:

        def work(self, order):
            return say(self, order)

    declared = {"entity": "testapp.Order", "work": task(after(days=1), retry=retry, **options)(work)}
    if base is Machine:
        declared |= {"initial": "working", "table": TABLE, "key": run_key, "starts_on": "job.wanted"}
    return type("Job", (base,), declared)


@pytest.fixture
def declared():
    with ExitStack() as known:

        def declare(say, count=1, **options):
            cls = job(say, **options)
            known.enter_context(only_timelines(cls))
            orders = [Order.objects.create() for _ in range(count)]
            for order in orders:
                start(cls, order)
            return orders

        yield declare


def run_all(at=None, **given):
    rows = list(ScheduledTask.objects.filter(state__in=["scheduled", "available"]).order_by("pk"))
    moment = at or max(row.scheduled_at for row in rows)
    return run(task_ids=[row.pk for row in rows], clock=lambda: moment, using="default", **given)


def states():
    return sorted(TimelineRun.objects.values_list("state", flat=True))


class TestThen:
    @pytest.mark.parametrize("options", WAYS)
    def test_moves_the_machine_with_the_outcome(self, declared, options):
        orders = declared(lambda context, order: Then("work.done", by=str(order.pk)), count=3, **options)

        run_all()

        assert set(ScheduledTask.objects.values_list("state", flat=True)) == {"completed"}
        assert states() == ["over"] * 3
        for order in orders:
            event = Event.objects.for_entity(order).get()
            entry = RunEntry.objects.get(run__entity_id=str(order.pk), seq=1)
            assert (event.name, event.payload, event.actor) == ("work.done", {"by": str(order.pk)}, "job.work")
            assert (entry.cause_id, entry.event, entry.actor) == (event.pk, "work.done", "job.work")
            result = ScheduledTask.objects.get(entity_id=str(order.pk)).result
            assert result == {"then": "work.done", "payload": {"by": str(order.pk)}}
        assert all(map(is_whole, TimelineRun.objects.all()))
        assert all(run.is_open for run in TimelineRun.objects.all())

    def test_is_kept_from_it_by_no_other_machine_that_has_ended(self):
        class Earlier(Machine):
            entity = "testapp.Order"
            starts_on = "earlier.wanted"
            initial = "on"
            table: ClassVar = {"on": {"work.done": "off"}, "off": {}}

        cls = job(lambda context, order: Then("work.done"))
        with only_timelines(cls, Earlier):
            order = Order.objects.create()
            emit("earlier.wanted", order)
            emit("work.done", order)
            start(cls, order)

            run_all()

        assert states() == ["off", "over"]
        assert ScheduledTask.objects.get().state == State.COMPLETED

    def test_into_an_end_ends_the_run_with_the_outcome(self, declared, clock):
        def say(context, order):
            emit("work.done", order)
            return Then("work.closed")

        declared(say)

        run_all()

        [run_] = TimelineRun.objects.all()
        assert (run_.state, run_.end_code, run_.end_reason) == ("closed", "exit", "closed")
        assert ScheduledTask.objects.get().state == State.COMPLETED

    @pytest.mark.parametrize("options", WAYS)
    def test_that_the_state_does_not_take_is_a_failed_attempt_with_nothing_written(self, declared, options):
        def say(context, order):
            if options.get("atomic", True) is not False and not options.get("is_async"):
                Effect.objects.create(name=f"{order.pk}")
            return Then("work.closed")

        declared(say, count=2, **options)

        run_all()

        assert states() == ["working", "working"]
        assert not Event.objects.exists()
        assert not Effect.objects.exists()
        for row in ScheduledTask.objects.all():
            # Whose fault it was in a call for many, shows when each is called alone.
            assert (row.state, row.failures) == (State.RETRYABLE, 0 if options == {"bulk": 10} else 1)
            assert "MoveNotAllowed" in row.error or "does not take 'work.closed'" in row.error

    def test_with_the_event_of_erasing_is_a_failed_attempt_that_says_what_to_call(self, declared):
        declared(lambda context, order: Then("timeline.erased"))

        run_all()

        assert not Event.objects.filter(name="timeline.erased").exists()
        assert "is written where something is erased. Call erase." in ScheduledTask.objects.get().error

    def test_of_a_neighbour_that_is_refused_moves_all_the_same(self, declared):
        said = iter(["work.closed", "work.done", "work.done"])
        declared(lambda context, order: Then(next(said)), count=3, atomic=False)

        run_all()

        assert states() == ["over", "over", "working"]
        assert sorted(ScheduledTask.objects.values_list("state", flat=True)) == ["completed", "completed", "retryable"]

    @pytest.mark.parametrize("options", [{"atomic": True}, {"atomic": False}])
    def test_is_dropped_where_the_attempt_was_cancelled_meanwhile(self, declared, options, now):
        def say(context, order):
            if not options["atomic"]:
                cancel(task_ids=[context.task.pk], reason=Reason.operator("no"), now=now, using="default")
            return Then("work.done")

        if options["atomic"]:
            watch = AtEntry(
                lambda row: cancel(task_ids=[row.pk], reason=Reason.operator("no"), now=now, using="default")
            )
            declared(say, **options)
            run_all(watch=watch)
        else:
            with pytest.MonkeyPatch.context() as patch:
                patch.setattr("timeline.operations.cancel.refuse_own", lambda *_given: None)
                declared(say, **options)
                run_all()

        assert ScheduledTask.objects.get().state == State.CANCELLED
        assert states() == ["working"]
        assert not Event.objects.exists()

    def test_moves_the_run_of_the_task_where_there_are_several(self, declared):
        [order] = declared(lambda context, order: Then("work.done"))
        start("job", order, key="other")
        mine = ScheduledTask.objects.get(run__key="")

        run(task_ids=[mine.pk], clock=lambda: mine.scheduled_at, using="default")

        assert dict(TimelineRun.objects.values_list("key", "state")) == {"": "over", "other": "working"}

    def test_of_a_run_with_a_key_need_not_say_it(self, declared):
        [order] = declared(lambda context, order: Then("work.done"), key=("number",))
        start("job", order, key="7")
        mine = ScheduledTask.objects.get(run__key="7")

        run(task_ids=[mine.pk], clock=lambda: mine.scheduled_at, using="default")

        assert dict(TimelineRun.objects.values_list("key", "state")) == {"": "working", "7": "over"}

    def test_of_a_task_without_a_run_moves_the_machine_of_its_entity(self, declared, now):
        [order] = declared(lambda context, order: Then("work.done"))
        row = schedule("job.work", order, at=now).task

        run(task_ids=[row.pk], clock=lambda: now, using="default")

        assert (ScheduledTask.objects.get(pk=row.pk).state, states()) == (State.COMPLETED, ["over"])

    @pytest.mark.parametrize("options", [{}, {"atomic": False}])
    def test_into_an_end_lets_nothing_follow(self, options, order):
        class Job(Machine):
            entity = "testapp.Order"
            initial = "working"
            table = {"working": {"work.closed": "closed"}, "closed": {}}

            @task(after(days=1), **options)
            def work(self, order):
                return Then("work.closed")

            @task(after(work))
            def tell(self, order): ...

        with only_timelines(Job):
            start(Job, order)
            run_all()

        assert list(ScheduledTask.objects.values_list("task_key", "state")) == [("job.work", "completed")]
        assert not TimelineRun.objects.get().is_open

    @pytest.mark.parametrize("options", [{}, {"atomic": False}])
    def test_of_the_systems_machine_needs_no_entity(self, options):
        class Light(Machine):
            initial = "off"
            table = {"off": {"light.on": "on"}, "on": {"light.broken": "broken"}, "broken": {}}

            @task(after(days=1), **options)
            def switch(self):
                return Then("light.on")

        with only_timelines(Light):
            start(Light)
            run_all()

        assert states() == ["on"]

    @pytest.mark.parametrize(
        "options", [{}, {"atomic": "shared"}, {"atomic": False}, {"atomic": False, "is_async": True}]
    )
    def test_is_written_by_a_worker_of_many(self, declared, options, clock):
        declared(lambda context, order: Then("work.done"), count=30, **options)
        clock.set(clock.now + timedelta(days=2))
        worker = Worker("default", "moving")

        for _ in range(10):
            if worker.poll() == 0 and states() == ["over"] * 30:
                break

        assert states() == ["over"] * 30
        assert all(map(is_whole, TimelineRun.objects.all()))

    def test_that_is_ignored_completes_all_the_same(self, declared):
        declared(lambda context, order: Then("work.seen"))

        [done] = run_all()

        assert (done.state, states()) == (State.COMPLETED, ["working"])
        assert Event.objects.get().name == "work.seen"

    @pytest.mark.parametrize(
        ("then", "said"),
        [
            (Then("work.dne"), "takes the event 'work.dne'"),
            (Then("work.done", at={1}), "payload: has a set"),
            (Then("work.done", text="x" * 70_000), "payload: is "),
        ],
    )
    def test_that_cannot_be_is_a_failed_attempt(self, declared, then, said):
        declared(lambda context, order: then)

        [failed] = run_all()

        assert failed.state == State.RETRYABLE
        assert said in failed.error

    def test_of_a_timeline_without_a_table_is_a_failed_attempt(self, declared):
        declared(lambda context, order: Then("work.done"), base=Timeline)

        [failed] = run_all()

        assert "result: is Then(…), and job is no machine" in failed.error

    def test_is_asked_again_by_the_next_attempt(self, declared, monkeypatch):
        """The outcome could not be written: nothing has moved, and the handler is entered again with the same key."""
        keys = []

        def say(context, order):
            keys.append(context.idempotency_key)
            if len(keys) == 1:
                raise OperationalError("away")
            return Then("work.done")

        declared(say)

        run_all()
        row = ScheduledTask.objects.get()
        run(task_ids=[row.pk], clock=lambda: row.scheduled_at, using="default")

        assert keys[0] == keys[1]
        assert (states(), Event.objects.count()) == (["over"], 1)

    def test_has_as_many_statements_for_many_as_for_few(self, declared, django_assert_max_num_queries):
        declared(lambda context, order: Then("work.done"), count=40, atomic=False)

        with django_assert_max_num_queries(60):
            run_all()

        assert states() == ["over"] * 40

    def test_keeps_its_result_as_plain_data(self, declared):
        declared(lambda context, order: Then("work.done"))

        [done] = run_all()

        assert json.dumps(done.result) in ('{"then": "work.done"}', json.dumps('{"then": "work.done"}'))

"""What is kept about somebody is blanked: all of it, theirs alone, and nothing that something needs."""

from __future__ import annotations

from datetime import timedelta

import pytest
from django.core import serializers
from django.db import connection

from tests.testapp.models import Order
from timeline import Discard, Machine, Retry, Timeline, after, after_run, at, on, step, task, wait_for
from timeline.exceptions import InvalidInput
from timeline.features.maintenance.erase import ERASED, erasable, erase
from timeline.lifecycle import Reason
from timeline.models import Event, Hold, LogEntry, RunEntry, ScheduledTask, StepRecord, TimelineRun, ref_of
from timeline.shortcuts import cancel, emit, forget_step, go_on, hold, leave, redrive, release, schedule, start
from timeline.testing import autostart, only_timelines

WHO = "ada lovelace"
EVERYTHING = (ScheduledTask, LogEntry, StepRecord, TimelineRun, RunEntry, Event, Hold)
DAY = timedelta(days=1)


class Care(Timeline):
    entity = "testapp.Order"
    starts_on = "order.placed"

    @step(atomic=False)
    def look_up(self, order):
        return {"name": WHO}

    @task(after(days=1), atomic=False)
    def greet(self, order):
        self.look_up(order)
        return f"wrote to {WHO}"

    @task(after(days=2), retry=Retry(max_attempts=1))
    def fail(self, order):
        raise RuntimeError(f"{WHO} is not there")

    @task(after(days=3))
    def close(self, order): ...

    @task()
    def call(self, order): ...


class Talk(Machine):
    entity = "testapp.Order"
    starts_on = "talk.begun"
    initial = "open"
    table = {"open": {"talk.over": "over"}, "over": {}}
    timers = {"talk.over": on("open", days=40)}


def lived(order, clock):
    """Says something in every place that there is."""
    clock.set(clock.now)
    emit("order.placed", order, payload={"who": WHO}, actor=WHO)
    start("care", order, key="again", params={"who": WHO})
    emit("talk.begun", order, actor=WHO)
    emit("talk.over", order, actor=WHO)
    cancel(schedule("care.call", order, at=clock.now + DAY, payload={"who": WHO}).task, reason=WHO, actor=WHO)
    release(hold(order, reason=WHO, actor=WHO), actor=WHO)
    leave("care", order, key="again", reason=WHO, actor=WHO)
    for _day in range(3):
        clock.set(clock.now + DAY)
        clock.run_due()


@pytest.fixture
def orders(db, clock, now):
    with only_timelines(Care, Talk):
        clock.set(now)
        orders = Order.objects.create(), Order.objects.create()
        lived(orders[0], clock)
        lived(orders[1], clock)
        yield orders


def dump(*models):
    """All that the tables say, as text; a row a line."""
    return [
        serializers.serialize("json", [row]) for model in models or EVERYTHING for row in model.objects.order_by("pk")
    ]


def erased(order, clock, **more):
    reason = Reason.operator("she asked for it", "eva")
    return erase(ref=ref_of(order), reason=reason, now=clock.now, using="default", **more)


class Killed(BaseException):
    pass


@pytest.mark.timeline(raises=False)
class TestErase:
    def test_leaves_nothing_that_anybody_wrote_about_them(self, orders, clock):
        keys = {str(pk) for pk in ScheduledTask.objects.for_entity(orders[0]).values_list("pk", flat=True)}
        keys |= {str(pk) for pk in TimelineRun.objects.for_entity(orders[0]).values_list("pk", flat=True)}
        assert sum(WHO in line for line in dump()) > 40

        done = erased(orders[0], clock)

        said = [line for line in dump() if WHO in line]
        assert not [line for line in said if any(key in line for key in keys)]
        assert set(done.rows) == {"scheduledtask", "logentry", "steprecord", "timelinerun", "runentry", "event", "hold"}

    def test_leaves_others_as_they_were(self, orders, clock):
        before = dump()

        erased(orders[0], clock)

        assert len(set(before) - set(dump())) <= len(before) // 2
        assert sum(WHO in line for line in dump()) == sum(WHO in line for line in before) // 2

    def test_keeps_times_states_codes_and_keys(self, orders, clock):
        columns = ("pk", "state", "seq", "attempt", "scheduled_at", "finished_at", "reason_code", "task_key")
        before = list(ScheduledTask.objects.order_by("pk").values_list(*columns))
        moves = list(RunEntry.objects.order_by("pk").values_list("pk", "from_state", "to_state", "at", "cause_id"))
        log = list(LogEntry.objects.order_by("pk").values_list("pk", "at", "from_state", "to_state", "reason_code"))

        erased(orders[0], clock)

        assert list(ScheduledTask.objects.order_by("pk").values_list(*columns)) == before
        assert (
            list(RunEntry.objects.order_by("pk").values_list("pk", "from_state", "to_state", "at", "cause_id")) == moves
        )
        assert (
            list(LogEntry.objects.order_by("pk").values_list("pk", "at", "from_state", "to_state", "reason_code"))
            == log
        )

    def test_says_who_erased_and_why_and_does_it_once(self, orders, clock):
        erased(orders[0], clock)
        again = erased(orders[0], clock)

        [event] = Event.objects.filter(name=ERASED)
        assert (event.entity_ref, event.actor, event.payload) == (
            ref_of(orders[0]),
            "eva",
            {"reason": "she asked for it"},
        )
        assert again.total == 0

    def test_takes_a_reason_and_a_name_of_any_length(self, orders, clock):
        reason = Reason.operator("x\0" * 300, "y\0" * 300)

        assert erase(ref=ref_of(orders[0]), reason=reason, now=clock.now, using="default").total > 20

        event = Event.objects.get(name=ERASED)
        assert (event.payload, event.actor) == ({"reason": f"{'x' * 199}…"}, f"{'y' * 149}…")

    def test_is_of_what_is_not_there_any_more(self, orders, clock):
        ref = ref_of(orders[0])
        Order.objects.filter(pk=orders[0].pk).delete()

        assert erase(ref=ref, reason=Reason.operator("gone"), now=clock.now, using="default").total > 0

    def test_goes_on_after_a_crash(self, orders, clock):
        def die(execute, sql, *given):
            if "UPDATE" in sql and "timeline_event" in sql:
                raise Killed
            return execute(sql, *given)

        with connection.execute_wrapper(die), pytest.raises(Killed):
            erased(orders[0], clock)
        assert Event.objects.filter(name=ERASED).count() == 1

        assert set(erased(orders[0], clock).rows) == {"event", "hold"}
        assert Event.objects.filter(name=ERASED).count() == 2

    def test_is_never_left_unsaid_by_a_crash(self, orders, clock):
        """A call that finds all blanked cannot know by whom: so it is said with the first that is."""

        def die(execute, sql, *given):
            if "INSERT" in sql and "timeline_event" in sql:
                raise Killed
            return execute(sql, *given)

        before = dump()
        with connection.execute_wrapper(die), pytest.raises(Killed):
            erased(orders[0], clock)

        assert dump() == before
        assert erased(orders[0], clock).total > 20


TOLD: list[object] = []


class Paying(Timeline):
    """Is given up half-way: in the middle of a loop, or before its last step."""

    entity = "testapp.Order"

    @task(after(), atomic=False)
    def pay(self, order):
        return self.each(self.pay_some, Order.objects.exclude(pk=order.pk), size=1)

    @step(atomic=False)
    def pay_some(self, batch):
        if len(TOLD) == 1:
            TOLD.append(None)
            raise Discard("the bank is closed")
        TOLD.append(batch[0].pk)
        return {"paid": 1}

    @task(after(), atomic=False)
    def write(self, order):
        self.send(self.look_up())

    @step(atomic=False)
    def look_up(self):
        return {"name": WHO}

    @step(atomic=False)
    def send(self, who):
        TOLD.append(who)
        raise Discard("the server is down")

    @task(wait_for("order.paid", within=DAY), atomic=False)
    def confirm(self, order):
        given = self.wait_for("code.given", within=DAY, key="k")
        if self.task.revision == 1:
            raise Discard("the server is down")
        return given and given.name


class TestWhatIsHalfDone:
    @pytest.fixture(autouse=True)
    def _known(self, db):
        TOLD.clear()
        with only_timelines(Paying):
            yield

    def given_up(self, name, order, clock):
        start("paying", order)
        emit("code.given", order, key="k", payload={"who": WHO})
        emit("order.paid", order)
        clock.advance(minutes=1)
        row = ScheduledTask.objects.get(task_key=f"paying.{name}")
        assert row.state == "discarded"
        assert erased(order, clock, cancel=True).total
        return row

    def again(self, row, clock):
        [row] = redrive(row, reason="the bank is open")
        clock.advance(minutes=1)
        row.refresh_from_db()
        return row

    def test_loops_do_not_begin_anew(self, order, clock):
        """What is paid is not paid twice because nobody knows any more that it is."""
        Order.objects.bulk_create(Order() for _ in range(3))
        row = self.given_up("pay", order, clock)
        TOLD.clear()

        row = self.again(row, clock)

        assert (row.state, row.reason_code, TOLD) == ("retryable", "definition", [])
        assert row.reason == "what step pay_some returned was erased; somebody has to decide"

    def test_loops_go_on_for_nobody(self, order, clock):
        """Where they were is erased, too: they can only be begun anew."""
        Order.objects.bulk_create(Order() for _ in range(3))
        row = self.again(self.given_up("pay", order, clock), clock)
        go_on(row, reason="it is well")
        clock.advance(minutes=1)
        row.refresh_from_db()
        assert (row.state, row.reason_code) == ("retryable", "definition")
        TOLD[:] = [None, None]

        forget_step(row, "pay_some", reason="nothing was paid")
        clock.advance(minutes=1)

        row.refresh_from_db()
        assert (row.state, row.result) == ("completed", {"paid": 3})

    def test_steps_do_not_go_on_with_nothing(self, order, clock):
        row = self.given_up("write", order, clock)
        TOLD.clear()

        row = self.again(row, clock)

        assert (row.state, row.reason_code, TOLD) == ("retryable", "definition", [])
        assert StepRecord.objects.get(name="look_up").result is None

    def test_goes_on_if_somebody_says_so(self, order, clock):
        row = self.again(self.given_up("write", order, clock), clock)
        TOLD.clear()

        go_on(row, reason="they need no name")
        clock.advance(minutes=1)

        assert TOLD == [None]

    def test_knows_which_event_came(self, order, clock):
        """That it came is kept; what it said is not."""
        row = self.given_up("confirm", order, clock)

        row = self.again(row, clock)

        assert (row.state, row.result) == ("completed", "code.given")
        assert not [line for line in dump(Event, StepRecord) if WHO in line]


class Forgetting(Timeline):
    entity = "testapp.Order"

    @task(retry=Retry(max_attempts=1))
    def forget(self, order):
        erase(ref=ref_of(order), reason=Reason.operator("a month is over"), cancel=True, now=self.now, using="default")

    @task(atomic=False, retry=Retry(max_attempts=1))
    def forget_plainly(self, order):
        erase(ref=ref_of(order), reason=Reason.operator("a month is over"), cancel=True, now=self.now, using="default")


def dump_of(model):
    return list(model.objects.order_by("pk").values())


@pytest.mark.timeline(raises=False)
class TestWhatIsOpen:
    @pytest.fixture
    def open_one(self, orders, clock):
        emit("order.placed", orders[0])
        emit("talk.begun", orders[0])
        return orders[0]

    def test_is_in_the_way(self, open_one, clock):
        before = dump()

        with pytest.raises(
            InvalidInput,
            match=r"entity: what is open of it needs what it holds: tasks 4, runs 2.*Cancel them, or say cancel",
        ):
            erased(open_one, clock)

        assert dump() == before
        counts = erasable(ref_of(open_one), using="default")
        assert (counts["open_tasks"], counts["open_runs"]) == (4, 2)

    def test_is_cancelled_first_where_that_is_said(self, open_one, clock):
        erased(open_one, clock, cancel=True)

        assert not ScheduledTask.objects.open().exists()
        assert not TimelineRun.objects.open().exists()
        assert {run.end_reason for run in TimelineRun.objects.for_entity(open_one)} <= {"finished", "left", "over"}

    @pytest.mark.parametrize("how", ["any", "left"])
    def test_is_cancelled_with_what_begins_after_it(self, order, clock, now, how):
        class Shipping(Timeline):
            entity = "testapp.Order"

            @task(at("ships_at"))
            def ship(self, order): ...

        class Farewell(Timeline):
            entity = "testapp.Order"
            starts_on = after_run(Shipping, ended=how)

            @task(after())
            def write(self, order): ...

        clock.set(now)
        with only_timelines(Shipping, Farewell), autostart(True):
            start("shipping", order, params={"who": WHO})

            assert erased(order, clock, cancel=True).total > 0

            assert not ScheduledTask.objects.open().exists()
            assert not TimelineRun.objects.open().exists()

    @pytest.mark.parametrize("name", ["forget", "forget_plainly"])
    def test_may_not_be_the_task_that_erases(self, order, clock, now, name):
        """Its own row cannot be blanked. It learns so before anything was changed, and is told what to do."""
        clock.set(now)
        with only_timelines(Forgetting, Care):
            start("care", order, params={"who": WHO})
            known = schedule(f"forgetting.{name}", order, at=now).task
            others = [dump_of(model) for model in (TimelineRun, Event, Hold)]

            clock.run_due()

            known.refresh_from_db()
            assert known.state == "discarded"
            assert "its own task" in known.error
            assert "Cancel them" not in known.error
            assert [dump_of(model) for model in (TimelineRun, Event, Hold)] == others
            assert ScheduledTask.objects.open().count() == 3

    def test_is_never_the_system(self, orders, clock):
        with pytest.raises(InvalidInput, match="the system is nobody"):
            erase(ref=ref_of(None), reason=Reason.operator("x"), now=clock.now, using="default")

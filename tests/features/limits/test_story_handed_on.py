"""A place that is held until the end stays with what is half done, however often that goes on as another revision."""

from __future__ import annotations

from datetime import timedelta

import pytest

from tests.features.limits.limited import begin, finish, held, stage_all
from tests.testapp.models import Order
from timeline import Discard, Limit, Retry, RetryAfter, Timeline, after, at, each_of, task
from timeline.engine.groups import give_back, run
from timeline.lifecycle import Reason, State
from timeline.models import ScheduledTask
from timeline.operations.cancel import cancel
from timeline.operations.move import move
from timeline.operations.redrive import redrive
from timeline.shortcuts import hold, open_limit, schedule, start
from timeline.testing import only_timelines

pytestmark = pytest.mark.django_db(transaction=True)

SECOND = timedelta(seconds=1)
KIND, KEY = "settling.settle", "settlement"
WHY = Reason.operator("because")
errors: list[Exception] = []
allowed = [True]


def is_allowed(_order):
    return allowed[0]


class Settling(Timeline):
    """One at a time until its end."""

    entity = "testapp.Order"

    @task(limit=Limit(1, "settlement", until="end"), atomic=False, retry=Retry(max_attempts=9), only_if=is_allowed)
    def settle(self, order):
        if errors:
            raise errors.pop(0)


@pytest.fixture(autouse=True)
def known():
    errors.clear()
    allowed[0] = True
    with only_timelines(Settling):
        yield


@pytest.fixture
def half_done(now):
    """Monday's settlement is half done, and due again; Tuesday's waits for its end."""
    monday = schedule(KIND, Order.objects.create(), at=now - 2 * SECOND).task
    schedule(KIND, Order.objects.create(), at=now - SECOND)
    errors.append(RetryAfter(SECOND))
    finish(begin(KIND, now), now)
    stage_all(now + SECOND)
    monday.refresh_from_db()
    assert (monday.state, monday.slot) == (State.AVAILABLE, 1)
    return monday


@pytest.fixture
def later(now):
    return now + 2 * SECOND


def moved(task, now):
    [revision] = move(task_ids=[task.pk], at=now, reason=WHY, now=now, using="default")
    return revision


@pytest.fixture
def run_all():
    """Run what needs no place."""

    def ran(now):
        stage_all(now)
        free = ScheduledTask.objects.filter(state=State.AVAILABLE, limit_key="")
        return run(task_ids=list(free.values_list("pk", flat=True)), clock=lambda: now, using="default")

    return ran


def read(task):
    return ScheduledTask.objects.get(pk=task.pk)


class TestMoved:
    def test_twice_it_keeps_its_place(self, half_done, later):
        """The second time it has not been started since the first: what came before it is half done all the same."""
        last = moved(moved(half_done, later), later)

        assert (read(last).slot, held(KEY)) == (1, [1])
        [attempt] = begin(KIND, later)
        assert attempt.task.pk == last.pk

    def test_and_cancelled_before_it_is_started_it_keeps_its_key_closed(self, half_done, later):
        revision = moved(half_done, later)

        cancel(task_ids=[revision.pk], reason=WHY, now=later, using="default")

        assert (read(revision).slot, begin(KIND, later)) == (1, [])

    def test_and_given_back_before_it_is_entered_it_keeps_its_place(self, half_done, later):
        revision = moved(half_done, later)

        give_back(begin(KIND, later), now=later, using="default")

        assert (read(revision).state, read(revision).slot) == (State.RETRYABLE, 1)

    def test_and_put_on_hold_since_it_began_it_keeps_its_place(self, half_done, later):
        revision = moved(half_done, later)
        attempts = begin(KIND, later)
        hold(task=KIND, reason="wait")

        finish(attempts, later)

        assert (read(revision).reason_code, read(revision).slot) == ("hold", 1)

    def test_and_called_off_by_its_guard_it_keeps_its_key_closed(self, half_done, later):
        revision = moved(half_done, later)
        allowed[0] = False

        finish(begin(KIND, later), later)

        assert (read(revision).state, read(revision).slot) == (State.CANCELLED, 1)

    def test_and_completed_it_gives_its_place_up(self, half_done, later):
        moved(half_done, later)

        finish(begin(KIND, later), later)

        assert held(KEY) == []
        assert len(begin(KIND, later)) == 1

    def test_one_that_was_never_started_has_nothing_to_keep(self, now, later):
        only = schedule(KIND, Order.objects.create(), at=now).task

        last = moved(moved(only, later), later)

        assert (read(last).slot, held(KEY)) == (0, [])


class TestRedriven:
    @pytest.fixture
    def again(self, half_done, later):
        """Monday's is discarded, and redriven."""
        errors.append(Discard("the bank says no"))
        finish(begin(KIND, later), later)
        [again] = redrive(task_ids=[half_done.pk], reason=WHY, now=later, using="default")
        return again

    def test_and_cancelled_before_it_is_started_it_keeps_its_key_closed_until_a_person_opens_it(self, again, later):
        cancel(task_ids=[again.pk], reason=WHY, now=later, using="default")

        assert begin(KIND, later) == []
        [opened] = open_limit(KEY, reason="paid by hand")
        assert opened.pk == again.pk
        assert len(begin(KIND, later)) == 1

    def test_and_moved_it_keeps_its_place(self, again, later):
        last = moved(again, later)

        assert [attempt.task.pk for attempt in begin(KIND, later)] == [last.pk]

    def test_after_a_person_opened_its_key_it_waits_as_any_other(self, half_done, later):
        errors.append(Discard("the bank says no"))
        finish(begin(KIND, later), later)
        open_limit(KEY, reason="paid by hand")

        [again] = redrive(task_ids=[half_done.pk], reason=WHY, now=later, using="default")

        assert (read(again).slot, read(again).held_until) == (0, "opened")
        [attempt] = begin(KIND, later)
        cancel(task_ids=[again.pk], reason=WHY, now=later, using="default")
        assert attempt.task.pk != again.pk
        assert read(again).slot == 0


class Shipping(Timeline):
    """A run whose task moves with a date of its order."""

    entity = "testapp.Order"

    @task(at("ships_at"), limit=Limit(1, "shipment", until="end"), atomic=False)
    def ship(self, order):
        if errors:
            raise errors.pop(0)


def test_planned_anew_twice_it_keeps_its_place(now):
    with only_timelines(Shipping):
        order = Order.objects.create(ships_at=now - SECOND)
        start(Shipping, order)
        errors.append(RetryAfter(SECOND))
        finish(begin("shipping.ship", now), now)
        stage_all(now + SECOND)

        for number in range(2):
            order.ships_at = now - timedelta(hours=number)
            order.save()

        revisions = ScheduledTask.objects.order_by("revision")
        assert [task.slot for task in revisions] == [0, 0, 1]
        assert held("shipment") == [1]


class Splitting(Timeline):
    """Splits an order into parts, of which one may be under way until its end."""

    entity = "testapp.Order"

    @task(after(), atomic=False)
    def split(self, order):
        self.fan_out(self.part, {"a": {}})

    @task(each_of(split), limit=Limit(1, "part", until="end"), atomic=False)
    def part(self, order):
        if errors:
            raise errors.pop(0)


class Following(Timeline):
    """Something that is to come to its end follows something else."""

    entity = "testapp.Order"

    @task(after(), atomic=False)
    def first(self, order): ...

    @task(after(first), limit=Limit(1, "second", until="end"), atomic=False)
    def second(self, order):
        if errors:
            raise errors.pop(0)


def test_what_follows_what_is_run_again_goes_on_with_its_place(now, run_all):
    with only_timelines(Following):
        start(Following, Order.objects.create())
        late = ScheduledTask.objects.get().scheduled_at + timedelta(days=1)
        run_all(late)
        errors.append(RetryAfter(timedelta(days=9)))
        finish(begin("following.second", late), late)
        first = ScheduledTask.objects.get(task_key="following.first")

        redrive(task_ids=[first.pk], reason=WHY, now=late, using="default")
        meanwhile = held("second")
        run_all(late)

        before, again = ScheduledTask.objects.filter(task_key="following.second").order_by("revision")
        assert meanwhile == [1]
        assert (before.state, before.slot, again.state, again.slot) == ("cancelled", 0, "available", 1)
        assert [attempt.task.pk for attempt in begin("following.second", late)] == [again.pk]


def test_fanned_out_anew_it_keeps_its_place(now, run_all):
    """What stands in the place of a half done part goes on with it, and waits for nobody to open what that has closed."""
    with only_timelines(Splitting):
        start(Splitting, Order.objects.create())
        late = ScheduledTask.objects.get().scheduled_at + timedelta(days=1)
        run_all(late)
        errors.append(RetryAfter(timedelta(days=9)))
        finish(begin("splitting.part", late), late)
        split = ScheduledTask.objects.get(task_key="splitting.split")

        redrive(task_ids=[split.pk], reason=WHY, now=late, using="default")
        run_all(late)

        before, part = ScheduledTask.objects.filter(task_key="splitting.part").order_by("revision")
        assert (before.state, before.slot, part.state, part.slot) == ("cancelled", 0, "available", 1)
        assert [attempt.task.pk for attempt in begin("splitting.part", late)] == [part.pk]

"""A destructive task of which suddenly very many are due: its brake stops it, tells people, and waits for a person."""

from __future__ import annotations

from datetime import timedelta

import pytest

from tests.testapp.models import Effect, Order
from timeline import Retry, Timeline, task
from timeline.exceptions import InvalidInput
from timeline.features.maintenance.prune import prune
from timeline.lifecycle import State
from timeline.models import Admission, Hold, LogEntry, ScheduledTask
from timeline.shortcuts import cancel, explain, hold, move, release, schedule
from timeline.signals import alerted
from timeline.testing import only_timelines
from timeline.timelines import Alerts

pytestmark = pytest.mark.django_db(transaction=True)

MINUTE, HOUR = timedelta(minutes=1), timedelta(hours=1)


class Closing(Timeline):
    """Closes accounts, which nobody can undo."""

    entity = "testapp.Order"

    @task(destructive=True, park_above=3, retry=Retry(max_attempts=9, base=10 * MINUTE, jitter=0.0))
    def close(self, order: Order) -> None:
        if Effect.objects.filter(name="down").exists():
            raise ConnectionError("the bank is down")
        Effect.objects.create(name="close")

    @task(destructive=True, park_above=3, unless=lambda order: order.pk)
    def spare(self, order: Order) -> None: ...

    @task()
    def note(self, order: Order) -> None:
        Effect.objects.create(name="note")


class Trying(Closing):
    """The same, in shadow."""

    shadow = True


@pytest.fixture(autouse=True)
def known():
    with only_timelines(Closing, Trying, Alerts):
        yield


@pytest.fixture
def order():
    return Order.objects.create()


def due(order, number, at, name="closing.close", begin=0):
    return [schedule(name, order, at=at, key=f"{begin + key}").task for key in range(number)]


def closed():
    return Effect.objects.filter(name="close").count()


def the_brake():
    return Hold.objects.get(park_above__isnull=False, released_at=None)


@pytest.mark.timeline(raises=False)
class TestMoreThanAllowed:
    def test_is_held_as_a_whole_and_nothing_of_it_has_run(self, clock, order):
        rows = due(order, 4, clock.now + HOUR)
        due(order, 2, clock.now + HOUR, "closing.note")

        clock.advance(hours=2)

        held = the_brake()
        assert (closed(), Effect.objects.filter(name="note").count()) == (0, 2)
        assert (held.target, held.actor, held.park_above, held.park_within) == ("closing.close", "", 3, HOUR)
        assert held.reason.startswith("more than 3 of it would have started within 1 hour")
        rows[0].refresh_from_db()
        assert rows[0].state in (State.AVAILABLE, State.RETRYABLE)
        assert Admission.objects.count() == 0

    def test_is_told_once_to_whoever_listens_and_by_mail(self, clock, order, settings, mailoutbox):
        settings.TIMELINE = {**settings.TIMELINE, "ALERTS": ["ops@example.com"]}
        told = []

        def hear(*, alert, **signal):
            told.append((alert.kind, alert.about, alert.message))

        alerted.connect(hear)
        try:
            due(order, 10, clock.now)
            clock.run_due()
            clock.run_due()
        finally:
            alerted.disconnect(hear)

        [mail] = mailoutbox
        assert "closing.close is on hold: its brake has stopped it" in mail.subject
        assert f"timeline_hold --release {the_brake().pk} --actor" in mail.body
        assert told == [("parked", "closing.close", the_brake().why)]

    def test_says_why_it_rests_and_what_to_do(self, clock, order):
        row = due(order, 4, clock.now)[0]
        clock.run_due()
        row.refresh_from_db()

        said = explain(row)

        assert "its brake has stopped it" in said
        assert said.index("cancel what must not run, then release it") < said.index("All that is due by then runs.")
        assert "Then what is due runs" not in said

    def test_counts_what_started_within_the_time(self, clock, order):
        for number in range(6):
            due(order, 1, clock.now, begin=number)
            clock.run_due()
            clock.advance(minutes=5)

        assert closed() == 3
        assert the_brake().target == "closing.close"

    def test_leaves_what_is_spread_over_a_longer_time_alone(self, clock, order):
        """The counter-story: as many, but never more than three within an hour."""
        for number in range(9):
            due(order, 1, clock.now + number * 21 * MINUTE, begin=number)

        clock.advance(hours=4)

        assert closed() == 9
        assert not Hold.objects.exists()

    def test_lets_as_many_run_as_are_allowed(self, clock, order):
        due(order, 3, clock.now)

        clock.run_due()

        assert closed() == 3
        assert not Hold.objects.exists()

    def test_counts_a_task_once_however_often_it_is_tried(self, clock, order):
        Effect.objects.create(name="down")
        due(order, 3, clock.now)
        clock.advance(minutes=50)
        Effect.objects.all().delete()

        clock.advance(hours=5)

        assert closed() == 3
        assert not Hold.objects.exists()

    def test_enters_again_what_was_let_in_before_beside_as_many_new_ones(self, clock, order):
        """What is bounded is how many are let in for the first time: of attempts there may be more."""
        Effect.objects.create(name="down")
        begun = clock.now
        old = due(order, 3, begun)
        new = due(order, 3, begun + 61 * MINUTE, begin=3)

        clock.advance(minutes=75)

        hour = LogEntry.objects.filter(to_state=State.ACTIVE, at__gt=begun + 15 * MINUTE, at__lte=begun + 75 * MINUTE)
        assert set(hour.values_list("task", flat=True)) == {row.pk for row in (*old, *new)}
        assert not Hold.objects.exists()

    def test_does_not_count_what_a_guard_calls_off(self, clock, order):
        for number in range(6):
            due(order, 1, clock.now, "closing.spare", begin=number)
            clock.run_due()

        assert not Hold.objects.exists()
        assert ScheduledTask.objects.filter(state=State.CANCELLED, reason_code="guard").count() == 6

    def test_does_not_count_what_waits_as_its_entity_is_on_hold(self, clock, order):
        held = hold(order, reason="a dispute")
        due(order, 9, clock.now)
        due(Order.objects.create(), 1, clock.now)

        clock.run_due()

        assert closed() == 1
        assert list(Hold.objects.open()) == [held]

    def test_is_nothing_to_what_is_in_shadow(self, clock, order):
        due(order, 9, clock.now, "trying.close")

        clock.run_due()

        assert ScheduledTask.objects.would_have_run().count() == 9
        assert not Hold.objects.exists()


@pytest.mark.timeline(raises=False)
class TestARelease:
    @pytest.fixture
    def parked(self, clock, order):
        rows = due(order, 5, clock.now)
        clock.run_due()
        return rows

    @pytest.mark.parametrize(
        ("said", "field"), [({"actor": "ada"}, "reason"), ({"reason": "it is right"}, "actor"), ({}, "reason")]
    )
    def test_is_a_persons_who_says_why(self, clock, parked, said, field):
        with pytest.raises(InvalidInput, match="person's to release") as caught:
            release(the_brake(), **said)

        assert caught.value.field == field
        assert the_brake().lifted_at is None

    def test_lets_go_what_was_due_and_is_not_parked_at_once(self, clock, parked):
        held = release(the_brake(), actor="ada", reason="they have all left")

        clock.run_due()

        assert closed() == 5
        assert not Hold.objects.open().exists()
        assert (held.released_by, held.release_reason) == ("ada", "they have all left")

    def test_lets_it_go_also_where_that_takes_longer_than_the_time_and_is_tried_again(self, clock, parked):
        Effect.objects.create(name="down")
        release(the_brake(), actor="ada", reason="they have all left")
        clock.advance(minutes=90)
        Effect.objects.all().delete()

        clock.advance(hours=5)

        assert closed() == 5
        assert not Hold.objects.open().exists()

    def test_counts_anew_what_becomes_due_after_it(self, clock, order, parked):
        first = release(the_brake(), actor="ada", reason="they have all left")
        clock.run_due()
        due(order, 3, clock.now + MINUTE, begin=10)
        clock.advance(minutes=2)
        assert closed() == 8

        due(order, 1, clock.now, begin=20)
        clock.run_due()

        assert closed() == 8
        assert the_brake().pk != first.pk

    def test_lets_go_nothing_that_is_given_a_time_before_it_later(self, clock, order, parked):
        """A wrong import sets dates that are long over: of what is new, and of what was far ahead at the release."""
        ahead = due(order, 4, clock.now + 100 * HOUR, begin=10)
        released = release(the_brake(), actor="ada", reason="they have all left")
        clock.run_due()
        clock.advance(hours=2)

        due(order, 4, released.lifted_at - HOUR, begin=20)
        move(ahead, at=released.lifted_at - HOUR, reason="an import")
        clock.run_due()

        assert closed() == 5
        assert the_brake().pk != released.pk

    def test_lets_go_nothing_that_was_cancelled_before(self, clock, parked):
        cancel(parked[:4], reason="a wrong import", actor="ada")

        release(the_brake(), actor="ada", reason="the rest is right")
        clock.run_due()

        assert closed() == 1


class TestPruning:
    def test_takes_what_nobody_counts_any_more(self, clock, order):
        due(order, 2, clock.now)
        clock.run_due()

        prune(ended_before=clock.now, using="default")
        assert Admission.objects.count() == 2
        clock.advance(days=8)
        prune(ended_before=clock.now, using="default")

        assert Admission.objects.count() == 0

"""Somebody says that nothing runs for this customer, of this kind, this timeline, this queue, this tag, or at all."""

from __future__ import annotations

from datetime import timedelta

import pytest

from tests.testapp.models import Effect, Order
from timeline import Timeline, after, task
from timeline.dispatch.claim import claim
from timeline.dispatch.poll import stage
from timeline.engine.attempts import begin_attempts
from timeline.engine.groups import run, run_begun
from timeline.exceptions import AlreadyReleased
from timeline.features.holds import release as holds_release
from timeline.features.holds.release import release_due
from timeline.lifecycle import State
from timeline.models import Hold, LogEntry, ScheduledTask
from timeline.shortcuts import emit, explain, hold, move, redrive, release, run_now, schedule, start
from timeline.testing import only_timelines

pytestmark = pytest.mark.django_db(transaction=True)

HOUR = timedelta(hours=1)


class Dunning(Timeline):
    """A reminder, and what follows from it."""

    entity = "testapp.Order"
    starts_on = "order.placed"
    exits = {"order.paid": "paid"}

    @task(after(hours=2))
    def remind(self, order: Order) -> None:
        Effect.objects.create(name=f"remind {order.pk}")

    @task(after(remind, days=1), queue="letters", tags=("paper",))
    def write(self, order: Order) -> None:
        Effect.objects.create(name=f"write {order.pk}")

    @task(tags=("mail", "paper"))
    def note(self, order: Order) -> None:
        Effect.objects.create(name=f"note {order.pk}")


@pytest.fixture(autouse=True)
def known():
    with only_timelines(Dunning):
        yield


@pytest.fixture
def ours():
    return Order.objects.create()


@pytest.fixture
def theirs():
    return Order.objects.create()


def notes(order, at, number=10):
    return [schedule("dunning.note", order, at=at, key=str(key)).task for key in range(number)]


def effects(order=None):
    names = Effect.objects.values_list("name", flat=True)
    return [name for name in names if order is None or name.endswith(f" {order.pk}")]


def read(row):
    return ScheduledTask.objects.get(pk=row.pk)


class TestACustomerOnHold:
    def test_has_nothing_run_while_others_go_on(self, clock, ours, theirs):
        notes(ours, clock.now + HOUR)
        notes(theirs, clock.now + HOUR)

        hold(ours, reason="their system is down", actor="ada")
        clock.advance(hours=5)

        assert effects(ours) == []
        assert len(effects(theirs)) == 10
        assert set(ScheduledTask.objects.for_entity(ours).values_list("attempt", flat=True)) == {0}

    def test_runs_when_it_is_released(self, clock, ours):
        rows = notes(ours, clock.now + HOUR)
        held = hold(ours, reason="their system is down")
        clock.advance(hours=5)

        release(held, actor="bob")
        clock.run_due()

        assert len(effects(ours)) == 10
        held.refresh_from_db()
        assert (held.released_by, held.released_at) == ("bob", clock.now)
        assert {read(row).scheduled_at for row in rows} == {rows[0].scheduled_at}

    def test_moves_on_with_shift_what_was_due_and_what_is_ahead(self, clock, ours, theirs):
        due, ahead = notes(ours, clock.now + HOUR, 1)[0], notes(theirs, clock.now + HOUR, 1)[0]
        [ahead] = [schedule("dunning.note", ours, at=clock.now + 10 * HOUR, key="ahead").task]
        began = clock.now
        held = hold(ours, reason="a dispute", then="shift")
        clock.advance(hours=5)

        release(held, actor="bob")
        clock.run_due()

        moved = ScheduledTask.objects.get(previous=due)
        assert (read(due).state, read(due).reason_code, read(due).actor) == (State.CANCELLED, "moved", "bob")
        assert moved.scheduled_at == began + 6 * HOUR
        assert read(ahead).scheduled_at == began + 15 * HOUR
        assert read(ahead).nominal_at == began + 10 * HOUR
        assert "on hold from" in LogEntry.objects.get(task=ahead).reason
        assert effects(ours) == []
        clock.advance(hours=1)
        assert len(effects(ours)) == 1

    def test_cancels_with_expire_what_was_due_and_leaves_what_is_ahead(self, clock, ours):
        rows = notes(ours, clock.now + HOUR)
        ahead = schedule("dunning.note", ours, at=clock.now + 10 * HOUR, key="ahead").task
        held = hold(ours, reason="a dispute", then="expire")
        clock.advance(hours=5)

        release(held)
        clock.run_due()

        ended = [read(row) for row in rows]
        assert {(row.state, row.reason_code) for row in ended} == {(State.CANCELLED, "expired")}
        assert "while testapp.order" in ended[0].reason
        assert read(ahead).state == State.SCHEDULED
        assert effects(ours) == []
        held.refresh_from_db()
        assert held.settled == 10

    def test_finishes_a_run_of_which_nothing_is_left(self, clock, ours):
        began = start(Dunning, ours).run
        held = hold(ours, reason="a dispute", then="expire")
        clock.advance(hours=5)

        release(held)
        clock.run_due()

        began.refresh_from_db()
        assert began.is_finished

    def test_has_its_run_ended_by_an_exit_all_the_same(self, clock, ours):
        emit("order.placed", ours)
        hold(ours, reason="a dispute")
        clock.advance(hours=5)

        emit("order.paid", ours)

        assert ScheduledTask.objects.get(task_key="dunning.remind").reason_code == "exit"

    def test_holds_a_run_that_is_started_meanwhile(self, clock, ours):
        held = hold(ours, reason="a dispute", then="shift")
        clock.advance(hours=1)
        emit("order.placed", ours)
        placed = clock.now

        clock.advance(hours=5)
        release(held)
        clock.run_due()

        assert effects() == []
        row = ScheduledTask.objects.get(task_key="dunning.remind", state=State.SCHEDULED)
        assert row.scheduled_at == placed + 7 * HOUR  # It was held for five hours of its life.

    def test_holds_what_is_moved_made_due_or_redriven_meanwhile(self, clock, ours):
        rows = notes(ours, clock.now + HOUR, 2)
        clock.advance(hours=1)
        later = schedule("dunning.note", ours, at=clock.now + HOUR, key="later").task
        soon = schedule("dunning.note", ours, at=clock.now + HOUR, key="soon").task
        held = hold(ours, reason="a dispute")

        move(later, at=clock.now + 2 * HOUR, reason="they asked")
        run_now(soon, reason="they asked")
        redrive(rows[0], reason="they asked")
        clock.advance(hours=5)

        assert len(effects(ours)) == 2
        release(held)
        clock.run_due()
        assert len(effects(ours)) == 5


class TestAKindOnHold:
    @pytest.mark.parametrize(
        ("what", "remind", "write"),
        [
            ({"task": "dunning.remind"}, 0, 0),
            ({"timeline": Dunning}, 0, 0),
            ({"everything": True}, 0, 0),
            ({"queue": "letters"}, 1, 0),
            ({"task": "dunning.write"}, 1, 0),
            ({"task": "dunning.note"}, 1, 1),
            ({"queue": "default"}, 0, 0),
            ({"tag": "paper"}, 1, 0),
            ({"tag": "mail"}, 1, 1),
        ],
    )
    def test_is_not_run_whatever_it_is_about(self, clock, ours, what, remind, write):
        start(Dunning, ours)

        hold(**what, reason="maintenance")
        clock.advance(days=3)

        assert [effects().count(f"{name} {ours.pk}") for name in ("remind", "write")] == [remind, write]

    def test_has_the_tag_by_the_definition_as_it_is_now(self, clock, ours):
        notes(ours, clock.now, 1)
        held = hold(tag="mail", reason="the mail server is down")
        assert f"({held.what})" in explain(ScheduledTask.objects.get())

        class Changed(Timeline):
            entity, name = "testapp.Order", "dunning"

            @task()
            def note(self, order: Order) -> None:
                Effect.objects.create(name=f"note {order.pk}")

        with only_timelines(Changed):
            clock.run_due()

        assert len(effects()) == 1

    @pytest.mark.parametrize("what", [{"task": "dunning.note"}, {"queue": "default"}, {"tag": "mail"}])
    def test_is_not_claimed_for_a_broker(self, clock, ours, theirs, what):
        notes(ours, clock.now)
        schedule("dunning.write", theirs, at=clock.now)
        hold(**what, reason="maintenance")

        batches = claim(now=clock.now, using="default")

        assert [batch.task_key for batch in batches] == ["dunning.write"]


class TestUntil:
    @pytest.mark.parametrize("then", ["run", "shift"])
    def test_passes_while_nobody_polls(self, clock, ours, then):
        """What counts is until when it was to hold, not when somebody noticed."""
        began = clock.now
        due = notes(ours, began + HOUR, 1)[0]
        held = hold(ours, until=began + 3 * HOUR, reason="until noon", then=then)

        clock.set(began + 9 * HOUR)
        clock.run_due()

        held.refresh_from_db()
        assert (held.lifted_at, held.released_at, held.released_by) == (began + 3 * HOUR, began + 9 * HOUR, "")
        assert len(effects(ours)) == 1
        if then == "shift":
            assert (read(due).state, read(due).scheduled_at) == (State.COMPLETED, began + 4 * HOUR)

    def test_ends_it_by_itself(self, clock, ours):
        notes(ours, clock.now + HOUR, 1)
        hold(ours, until=clock.now + 3 * HOUR, reason="until noon")

        clock.advance(hours=2)
        assert effects(ours) == []
        clock.advance(hours=1)
        assert len(effects(ours)) == 1

    def test_may_be_released_before(self, clock, ours):
        held = hold(ours, until=clock.now + 3 * HOUR, reason="until noon")

        release(held)

        with pytest.raises(AlreadyReleased):
            release(held)


class TestWhatIsUnderWay:
    def test_is_given_back_if_it_was_in_the_broker(self, clock, ours):
        rows = notes(ours, clock.now)
        [*batches] = claim(now=clock.now, using="default")
        held = hold(ours, reason="a dispute")

        for batch in batches:
            run(task_ids=batch.task_ids, clock=lambda: clock.now, token=batch.token, using="default")

        assert effects() == []
        assert sum(len(batch.task_ids) for batch in batches) > 0
        back = ScheduledTask.objects.filter(state=State.RETRYABLE)
        assert back.count() == sum(len(batch.task_ids) for batch in batches)
        assert set(back.values_list("reason_code", "failures", "lost", "scheduled_at")) == {
            ("hold", 0, 0, rows[0].scheduled_at)
        }
        clock.run_due()
        assert effects() == []
        release(held)
        clock.run_due()
        assert len(effects()) == 10

    def test_is_given_back_if_it_was_begun_and_not_looked_at(self, clock, ours, theirs):
        begun = [notes(ours, clock.now, 1)[0], notes(theirs, clock.now, 1)[0]]
        attempts = begin_attempts([row.pk for row in begun], token=None, worker="w", now=clock.now, using="default")
        hold(ours, reason="a dispute")

        run_begun(attempts, clock=lambda: clock.now, using="default")

        assert effects() == [f"note {theirs.pk}"]
        assert read(begun[0]).reason_code == "hold"
        assert "was given back" in explain(read(begun[0]))

    def test_runs_together_after_it_was_given_back(self, clock, ours, theirs):
        """A rest is no failure: they need not go one by one."""
        rows = notes(ours, clock.now, 5)
        attempts = begin_attempts([row.pk for row in rows], token=None, worker="w", now=clock.now, using="default")
        held = hold(task="dunning.note", reason="a dispute")
        run_begun(attempts, clock=lambda: clock.now, using="default")
        release(held)
        stage(now=clock.now, using="default")

        again = begin_attempts([row.pk for row in rows], token=None, worker="w", now=clock.now, using="default")

        assert len(again) == 5
        assert {attempt.lost for attempt in again} == {False}


class TestTwoHolds:
    def test_hold_until_the_second_is_released(self, clock, ours):
        notes(ours, clock.now + HOUR)
        first, second = hold(ours, reason="a dispute"), hold(timeline=Dunning, reason="maintenance")
        clock.advance(hours=5)

        release(first)
        clock.run_due()
        assert effects() == []

        release(second)
        clock.run_due()
        assert len(effects()) == 10

    @pytest.mark.parametrize("order", [(1, 2), (2, 1)])
    def test_count_the_time_they_have_in_common_once(self, clock, ours, order):
        ahead = schedule("dunning.note", ours, at=clock.now + 100 * HOUR).task
        began = clock.now
        holds = {1: hold(ours, reason="a dispute", then="shift")}
        clock.advance(hours=1)
        holds[2] = hold(timeline=Dunning, reason="maintenance", then="shift")

        for hours, number in zip((1, 1), order, strict=True):
            clock.advance(hours=hours)
            release(holds[number])
            clock.run_due()

        assert read(ahead).scheduled_at == began + 103 * HOUR


class TestAReleaseThatIsKilled:
    @pytest.mark.parametrize("then", ["shift", "expire"])
    def test_goes_on_where_it_was(self, clock, ours, monkeypatch, then):
        """Each batch is committed with its place: what was moved is not moved again, and nothing runs before the end."""
        monkeypatch.setattr(holds_release, "BATCH", 4)
        rows = notes(ours, clock.now + HOUR)
        began = clock.now
        held = hold(ours, reason="a dispute", then=then)
        clock.advance(hours=5)
        release(held)
        settled, calls = holds_release._settle_some, []

        def die_at_the_second(*args, **kwargs):
            calls.append(args)
            done = settled(*args, **kwargs)
            if len(calls) == 2:
                raise KeyboardInterrupt
            return done

        monkeypatch.setattr(holds_release, "_settle_some", die_at_the_second)
        with pytest.raises(KeyboardInterrupt):
            release_due(now=clock.now, using="default")
        held.refresh_from_db()
        assert (held.settled, held.released_at) == (4, None)
        assert begin_attempts([rows[-1].pk], token=None, worker="w", now=clock.now, using="default") != []
        monkeypatch.setattr(holds_release, "_settle_some", settled)
        ScheduledTask.objects.filter(pk=rows[-1].pk).update(lease_expires_at=clock.now)

        assert release_due(now=clock.now, using="default") == 5

        held.refresh_from_db()
        assert (held.settled, held.released_at) == (9, clock.now)  # One was being run, and goes on.
        open_rows = ScheduledTask.objects.open().exclude(state=State.ACTIVE)
        if then == "shift":
            assert list(open_rows.values_list("scheduled_at", flat=True)) == [began + 6 * HOUR] * 9
        else:
            assert not open_rows.exists()

    def test_is_over_at_once_if_nothing_is_under_it(self, clock, ours):
        held = hold(ours, reason="a dispute", then="shift")
        clock.advance(hours=1)

        release(held)
        release_due(now=clock.now, using="default")

        assert not Hold.objects.open().exists()


class TestExplain:
    def test_tells_who_holds_it_since_when_until_when_and_why(self, clock, ours):
        row = notes(ours, clock.now, 1)[0]
        hold(ours, until=clock.now + HOUR, reason="their system is down", actor="ada", then="shift")

        told = explain(row)

        assert "On hold from" in told
        assert f"testapp.order {ours.pk}" in told
        assert "by ada: their system is down" in told
        assert "moves on" in told
        assert "is a worker running" not in told

    def test_says_nothing_of_a_hold_that_is_over(self, clock, ours):
        row = notes(ours, clock.now, 1)[0]
        release(hold(ours, reason="their system is down", actor="ada"))

        assert "old" not in explain(row)

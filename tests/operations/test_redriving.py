"""Redrive: run again what has ended, as the next revision of its row."""

from contextlib import contextmanager
from datetime import timedelta
from uuid import uuid4

import pytest
from django.db.models import QuerySet
from django.db.models.signals import post_init

from tests.testapp.models import Order
from timeline import Timeline, after, at, task
from timeline.exceptions import AlreadyOpen, RunEnded, TransitionNotAllowed
from timeline.lifecycle import FINAL, OPEN, Reason, State
from timeline.models import ScheduledTask, TimelineRun
from timeline.operations.cancel import cancel
from timeline.operations.redrive import redrive
from timeline.testing import only_timelines

REASON = Reason.operator("once more", "ada")


class Parcelling(Timeline):
    """Too late after three hours."""

    entity = "testapp.Order"

    @task(expires=timedelta(hours=3))
    def pack(self, order): ...


@contextmanager
def signal_heard(signal, receiver, **connected):
    signal.connect(receiver, **connected)
    try:
        yield
    finally:
        signal.disconnect(receiver, sender=connected["sender"])


def again(rows, now):
    return redrive(task_ids=[row.pk for row in rows], reason=REASON, now=now, using="default")


class TestRedrive:
    @pytest.mark.parametrize("state", sorted(FINAL))
    def test_makes_the_next_revision_due_at_once(self, make_task, now, later, state):
        row = make_task(state=state, payload={"n": 1}, attempt=5, failures=5, lost=2, result={"n": 2}, error="boom")
        ended = ScheduledTask.objects.values().get()

        [new] = again([row], later)

        new.refresh_from_db()
        assert (new.previous, new.revision, new.state) == (row, 2, State.AVAILABLE)
        assert (new.scheduled_at, new.payload, new.occurrence) == (later, {"n": 1}, row.occurrence)
        assert (new.attempt, new.failures, new.lost, new.result, new.error) == (0, 0, 0, None, "")
        assert (new.reason_code, new.reason, new.actor) == ("operator", "once more", "ada")
        assert ScheduledTask.objects.values().get(pk=row.pk) == ended

    def test_notes_in_the_log_who_decided_it_and_why(self, make_task, now):
        """What is on the row gives way to the reason of its end."""
        [new] = again([make_task(state=State.DISCARDED)], now)

        entry = new.log.get()
        assert (entry.seq, entry.from_state, entry.to_state, entry.at) == (1, State.AVAILABLE, State.AVAILABLE, now)
        assert (entry.reason_code, entry.reason, entry.actor) == ("operator", "once more", "ada")

    def test_takes_many_in_the_order_given(self, make_task, now):
        rows = [make_task(state=State.DISCARDED) for _ in range(4)][::-1]

        assert [new.previous_id for new in again(rows, now)] == [row.pk for row in rows]

    def test_of_an_earlier_revision_makes_the_one_after_the_latest(self, make_task, now):
        first = make_task(state=State.DISCARDED)
        make_task(state=State.DISCARDED, occurrence=first.occurrence, revision=2, previous=first)

        [new] = again([first], now)

        assert (new.revision, new.previous) == (3, first)

    def test_leaves_as_long_until_it_is_too_late_as_is_declared(self, make_task, now, later):
        row = make_task(task_key="parcelling.pack", state=State.CANCELLED, expires_at=now + timedelta(hours=3))

        with only_timelines(Parcelling):
            [new] = again([row], later)

        assert new.expires_at == later + timedelta(hours=3)

    def test_makes_what_failed_no_less_late(self, make_task, now, later):
        """A reminder that failed is not sent when its time is over: a worker cancels it, and says why."""
        row = make_task(task_key="parcelling.pack", state=State.DISCARDED, expires_at=now + timedelta(minutes=5))

        with only_timelines(Parcelling):
            [new] = again([row], later)

        assert new.expires_at == now + timedelta(minutes=5)

    def test_asks_as_much_of_the_database_for_many_as_for_few(self, make_task, now, statements_of):
        few = [make_task(state=State.DISCARDED) for _ in range(2)]
        many = [make_task(state=State.DISCARDED) for _ in range(40)]

        assert statements_of(lambda: again(few, now)) == statements_of(lambda: again(many, now))

    def test_asks_as_much_for_many_runs_as_for_few(self, now, later, start_at, statements_of):
        with only_timelines(Delivery):
            for _ in range(42):
                start_at("delivery", Order.objects.create(), now)
            packs = list(ScheduledTask.objects.all())
            cancel(task_ids=[pack.pk for pack in packs], reason=REASON, now=now, using="default")

            assert statements_of(lambda: again(packs[:2], later)) == statements_of(lambda: again(packs[2:], later))

    def test_reads_nothing_of_other_entities(self, make_task, now):
        """Whose tasks may have the same key."""
        columns = {"entity_label": "testapp.order", "occurrence": "welcome", "state": State.DISCARDED}
        rows = [make_task(entity_id=str(Order.objects.create().pk), **columns) for _ in range(3)]
        read = []

        def note(*, instance, **_extra):
            read.append(instance.entity_id)

        with signal_heard(post_init, note, sender=ScheduledTask):
            again(rows[:1], now)

        assert set(read) == {rows[0].entity_id}

    @pytest.mark.parametrize("state", sorted(OPEN))
    def test_refuses_what_has_not_ended_and_changes_nothing(self, make_task, now, state):
        ended, other = make_task(state=State.DISCARDED), make_task(state=state)

        with pytest.raises(TransitionNotAllowed) as refused:
            again([ended, other], now)

        assert refused.value.task == other.pk
        assert ScheduledTask.objects.count() == 2

    def test_refuses_what_has_an_open_revision(self, make_task, now):
        first = make_task(state=State.DISCARDED)
        again([first], now)

        with pytest.raises(AlreadyOpen) as refused:
            again([make_task(state=State.DISCARDED), first], now)

        assert refused.value.task == first.pk
        assert ScheduledTask.objects.filter(revision=2).count() == 1

    def test_refuses_two_revisions_of_the_same_task(self, make_task, now):
        first = make_task(state=State.DISCARDED)
        second = make_task(state=State.DISCARDED, occurrence=first.occurrence, revision=2, previous=first)

        with pytest.raises(AlreadyOpen):
            again([first, second], now)

        assert ScheduledTask.objects.count() == 2

    def test_refuses_an_id_that_is_not_there_and_changes_nothing(self, make_task, now):
        with pytest.raises(ScheduledTask.DoesNotExist):
            again([make_task(state=State.DISCARDED), ScheduledTask(pk=uuid4())], now)

        assert ScheduledTask.objects.count() == 1

    def test_works_for_a_key_that_is_not_known_any_more(self, make_task, now):
        """The row comes back; it rests, to be seen, until a process knows its key."""
        [new] = again([make_task(state=State.DISCARDED, task_key="gone.work", max_attempts=7)], now)

        assert (new.state, new.max_attempts) == (State.AVAILABLE, 7)


class Delivery(Timeline):
    entity = "testapp.Order"
    exits = {"order.closed": "closed"}

    @task(after(days=1))
    def pack(self, order):
        return None

    @task(after(pack, days=1))
    def ship(self, order):
        return None


class TestRedriveInARun:
    @pytest.fixture(autouse=True)
    def _only_these(self, db):
        with only_timelines(Delivery):
            yield

    @pytest.fixture
    def pack(self, order, start_at, now):
        return start_at("delivery", order, now) and ScheduledTask.objects.get()

    def test_opens_a_finished_run_again(self, pack, now, later, run_at):
        cancel(task_ids=[pack.pk], reason=REASON, now=now, using="default")
        assert TimelineRun.objects.get().is_finished

        [new] = again([pack], later)

        assert TimelineRun.objects.get().is_open
        run_at(new, later)
        assert ScheduledTask.objects.get(task_key="delivery.ship").scheduled_at == later + timedelta(days=1)

    def test_takes_back_what_followed(self, pack, later, run_at):
        """What is to run again comes first; once it completes, its follow-up is planned from its new end."""
        run_at(pack, later)
        first_ship = ScheduledTask.objects.get(task_key="delivery.ship")

        [new] = again([pack], later)

        first_ship.refresh_from_db()
        assert (first_ship.state, first_ship.reason_code) == (State.CANCELLED, "superseded")
        run_at(new, later + timedelta(hours=1))
        ship = ScheduledTask.objects.get(task_key="delivery.ship", revision=2)
        assert ship.scheduled_at == later + timedelta(days=1, hours=1)

    def test_refuses_when_the_run_ended_by_an_exit(self, pack, now, emit_at, make_task):
        emit_at("order.closed", Order.objects.get(), now)

        with pytest.raises(RunEnded) as refused:
            again([make_task(state=State.DISCARDED), pack], now)

        assert (refused.value.task, refused.value.end_reason) == (pack.pk, "closed")
        assert not ScheduledTask.objects.filter(revision=2).exists()
        assert not TimelineRun.objects.get().is_open

    def test_refuses_when_an_exit_came_after_the_run_was_finished(self, pack, now, later, emit_at, order):
        """The last look before running would refuse it: whoever redrives it is told at once."""
        cancel(task_ids=[pack.pk], reason=REASON, now=now, using="default")
        emit_at("order.closed", order, later)

        with pytest.raises(RunEnded) as refused:
            again([pack], later)

        assert (refused.value.task, refused.value.end_reason) == (pack.pk, "closed")
        assert not ScheduledTask.objects.filter(revision=2).exists()
        assert TimelineRun.objects.get().is_finished

    def test_refuses_when_an_exit_ended_a_later_run(self, pack, order, now, later, start_at, emit_at):
        cancel(task_ids=[pack.pk], reason=REASON, now=now, using="default")
        start_at("delivery", order, now)
        emit_at("order.closed", order, later)

        with pytest.raises(RunEnded):
            again([pack], later)

    def test_passes_over_an_exit_that_came_before_the_run(self, order, now, later, start_at, emit_at):
        emit_at("order.closed", order, now)
        start_at("delivery", order, later)
        pack = ScheduledTask.objects.get()
        cancel(task_ids=[pack.pk], reason=REASON, now=later, using="default")

        [new] = again([pack], later)

        assert new.state == State.AVAILABLE

    def test_refuses_when_another_run_is_open(self, pack, order, now, start_at):
        cancel(task_ids=[pack.pk], reason=REASON, now=now, using="default")
        start_at("delivery", order, now)

        with pytest.raises(AlreadyOpen):
            again([pack], now)

        assert TimelineRun.objects.open().count() == 1
        assert not ScheduledTask.objects.filter(revision=2).exists()

    @pytest.mark.parametrize("is_gone", [False, True])
    def test_gives_each_as_it_is_stored(self, pack, now, later, run_at, is_gone):
        """Also where its run ends at once, as its entity is gone."""
        run_at(pack, later)
        if is_gone:
            QuerySet(Order).filter()._raw_delete("default")
            Order.objects.create()

        [new] = again([pack], later)

        stored = ScheduledTask.objects.get(pk=new.pk)
        columns = [column.attname for column in ScheduledTask._meta.concrete_fields]
        assert {name: getattr(new, name) for name in columns} == {name: getattr(stored, name) for name in columns}
        assert stored.is_open is not is_gone
        assert new.run.is_open is not is_gone

    def test_tells_when_its_anchor_has_another_time_by_now(self, order, now, later, start_at, run_at):
        """It is not wanted at once any more: its next revision is made for the new time, and the answer says so."""

        class Shipping(Timeline):
            entity = "testapp.Order"

            @task(at("ships_at"))
            def ship(self, order):
                return None

        Order.objects.update(ships_at=now)
        with only_timelines(Shipping):
            start_at("shipping", order, now)
            done = run_at(ScheduledTask.objects.get(), now)
            Order.objects.update(ships_at=later)
            [new] = again([done], now)

        assert (new.state, new.reason_code) == (State.CANCELLED, "superseded")
        assert ScheduledTask.objects.open().get().scheduled_at == later

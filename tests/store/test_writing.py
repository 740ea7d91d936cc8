"""The one way a task changes. Every (state, trigger), the guard of the write, and the log that tells the same."""

import itertools
from dataclasses import replace
from datetime import datetime, timedelta
from uuid import uuid4

import pytest
from django.db import connection
from django.test.utils import CaptureQueriesContext

from timeline import Discard, Retry, RetryAfter, Timeline, after, task
from timeline.dispatch.claim import claim
from timeline.dispatch.poll import stage
from timeline.dispatch.rescue import rescue
from timeline.engine.groups import run
from timeline.exceptions import TransitionNotAllowed
from timeline.lifecycle import ALLOWED_PAIRS, COMPOSED, FINAL, LEASED, TRANSITIONS, Reason, ReasonCode, State, Trigger
from timeline.models import LogEntry, ScheduledTask
from timeline.operations.cancel import cancel
from timeline.operations.move import move, run_now
from timeline.operations.redrive import redrive
from timeline.store.transition import MAX_REASON, Write, apply
from timeline.testing import only_timelines
from timeline.timing import EARLIEST

REASON = Reason(ReasonCode.OPERATOR, "asked for", "ada")
SECOND_TRIGGERS = {
    pair: next(
        (one, two)
        for one, two in itertools.product(Trigger, Trigger)
        if TRANSITIONS.get((pair[0], one)) and TRANSITIONS.get((TRANSITIONS[pair[0], one], two)) == pair[1]
    )
    for pair in COMPOSED
}


def replay(row):
    """What the log makes of a row, from what it was when it was made."""
    entries = list(row.log.order_by("seq"))
    assert [entry.seq for entry in entries] == list(range(1, row.seq + 1))
    moves = [entry.detail for entry in entries if "scheduled_at" in entry.detail]
    first = moves[0]["scheduled_at_before"] if moves else row.scheduled_at.isoformat()
    reasons = [entry.reason_code for entry in entries if entry.reason_code]
    told = {
        "state": entries[0].from_state if entries else row.state,
        "attempt": 0,
        "scheduled_at": datetime.fromisoformat(first),
        "finished_at": None,
        "reason_code": "" if reasons else row.reason_code,
    }
    for entry in entries:
        assert entry.from_state == told["state"]
        told |= {"state": entry.to_state, "attempt": entry.attempt}
        told["finished_at"] = entry.at if entry.to_state in FINAL else None
        told["reason_code"] = entry.reason_code or told["reason_code"]
        if at := entry.detail.get("scheduled_at"):
            told["scheduled_at"] = datetime.fromisoformat(at)
    return told


class TestApply:
    @pytest.mark.parametrize(("state", "trigger"), TRANSITIONS)
    def test_makes_each_move_of_the_table(self, make_task, now, state, trigger):
        row = make_task(state=state)
        reason = REASON if TRANSITIONS[state, trigger] in FINAL else None

        [changed] = apply([Write(task=row, triggers=(trigger,), reason=reason)], now=now, using="default")

        stored = ScheduledTask.objects.get()
        assert stored.state == TRANSITIONS[state, trigger]
        assert [(entry.seq, entry.from_state, entry.to_state) for entry in stored.log.all()] == [
            (1, state, TRANSITIONS[state, trigger])
        ]
        assert changed is row
        assert (row.state, row.seq, row.finished_at) == (stored.state, 1, stored.finished_at)

    @pytest.mark.parametrize(
        ("state", "trigger"), [pair for pair in itertools.product(State, Trigger) if pair not in TRANSITIONS]
    )
    def test_refuses_every_other_before_any_sql(self, make_task, now, state, trigger):
        row = make_task(state=state)

        with (
            CaptureQueriesContext(connection) as queries,
            pytest.raises(TransitionNotAllowed) as refused,
        ):
            apply([Write(task=row, triggers=(trigger,), reason=REASON)], now=now, using="default")

        assert len(queries) == 0
        assert (refused.value.state, refused.value.trigger, refused.value.task) == (state, trigger, row.pk)
        assert ScheduledTask.objects.get().state == state

    @pytest.mark.parametrize("pair", sorted(COMPOSED))
    def test_logs_both_moves_of_a_composed_one(self, make_task, now, pair):
        row = make_task(state=pair[0])
        between = TRANSITIONS[pair[0], SECOND_TRIGGERS[pair][0]]

        apply(
            [Write(task=row, triggers=SECOND_TRIGGERS[pair], claim_token=uuid4(), reason=REASON)],
            now=now,
            using="default",
        )

        assert (row.state, row.seq) == (pair[1], 2)
        assert list(row.log.order_by("seq").values_list("seq", "from_state", "to_state", "reason_code")) == [
            (1, pair[0], between, ""),
            (2, between, pair[1], "operator"),
        ]

    @pytest.mark.parametrize(
        "triggers", [(Trigger.DUE, Trigger.CANCEL), (Trigger.DUE, Trigger.CLAIM, Trigger.START, Trigger.COMPLETE)]
    )
    def test_composes_no_other_moves(self, make_task, now, triggers):
        row = make_task(state=State.SCHEDULED)

        with pytest.raises(TransitionNotAllowed, match="one move at a time"):
            apply([Write(task=row, triggers=triggers, reason=REASON)], now=now, using="default")

        assert LogEntry.objects.count() == 0

    def test_writes_nothing_if_one_of_many_is_refused(self, make_task, now):
        good, bad = make_task(), make_task(state=State.COMPLETED)

        with pytest.raises(TransitionNotAllowed):
            apply(
                [Write(task=row, triggers=(Trigger.CANCEL,), reason=REASON) for row in (good, bad)],
                now=now,
                using="default",
            )

        good.refresh_from_db()
        assert good.state == State.SCHEDULED

    def test_asks_nothing_for_nothing(self, db, now, django_assert_num_queries):
        with django_assert_num_queries(0):
            assert apply([], now=now, using="default") == []

    def test_leaves_a_row_whose_state_changed_since_it_was_read(self, make_task, now):
        stale, fresh = make_task(), make_task()
        seen = ScheduledTask.objects.get(pk=stale.pk)
        apply([Write(task=seen, triggers=(Trigger.CANCEL,), reason=REASON)], now=now, using="default")

        writes = [Write(task=row, triggers=(Trigger.DUE,)) for row in (stale, fresh)]
        changed = apply(writes, now=now, using="default")

        assert changed == [fresh]
        assert (stale.state, stale.seq) == (State.SCHEDULED, 0)
        assert ScheduledTask.objects.get(pk=stale.pk).state == State.CANCELLED
        assert LogEntry.objects.filter(task=stale).count() == 1

    def test_leaves_a_row_whose_attempt_is_another(self, make_task, now):
        """Active again, but not with our attempt: the number is what fences."""
        stale = make_task(state=State.ACTIVE, attempt=1)
        ScheduledTask.objects.update(attempt=2)

        write = Write(task=stale, triggers=(Trigger.COMPLETE,), reason=Reason(ReasonCode.DONE), result="1")
        changed = apply([write], now=now, using="default")

        assert changed == []
        stored = ScheduledTask.objects.get()
        assert (stored.state, stored.seq, stored.result) == (State.ACTIVE, 0, None)
        assert LogEntry.objects.count() == 0

    def test_answers_in_the_order_given(self, make_task, now):
        rows = [make_task() for _ in range(5)][::-1]

        changed = apply([Write(task=row, triggers=(Trigger.DUE,)) for row in rows], now=now, using="default")

        assert changed == rows

    @pytest.mark.parametrize(("source", "end"), sorted(ALLOWED_PAIRS))
    def test_gives_a_lease_and_a_token_just_to_those_held(self, make_task, now, source, end):
        row = make_task(state=source, claim_token=uuid4() if source == State.PENDING else None)
        triggers = SECOND_TRIGGERS.get((source, end)) or next(
            (trigger,) for (state, trigger), to in TRANSITIONS.items() if (state, to) == (source, end)
        )

        apply([Write(task=row, triggers=triggers, claim_token=uuid4(), reason=REASON)], now=now, using="default")

        assert (row.lease_expires_at is not None) == (end in LEASED)
        assert end in LEASED or row.claim_token is None

    def test_keeps_the_token_of_the_claim_while_it_runs(self, make_task, now):
        token = uuid4()
        row = make_task(state=State.PENDING, claim_token=token)

        apply([Write(task=row, triggers=(Trigger.START,))], now=now, using="default")

        assert (row.state, row.claim_token) == (State.ACTIVE, token)

    def test_counts_an_attempt_only_at_a_start(self, make_task, now):
        row = make_task(state=State.ACTIVE, attempt=3)

        apply([Write(task=row, evidence={"beat": 1})], now=now, using="default")
        assert (row.attempt, row.started_at) == (3, None)

        apply([Write(task=row, triggers=(Trigger.RETRY,), reason=REASON)], now=now, using="default")
        apply([Write(task=row, triggers=(Trigger.DUE, Trigger.START))], now=now, using="default")
        assert (row.attempt, row.started_at) == (4, now)
        assert list(row.log.order_by("seq").values_list("attempt", flat=True)) == [3, 3, 3, 4]

    def test_logs_the_time_before_and_after_a_move(self, make_task, now):
        row = make_task()

        apply([Write(task=row, scheduled_at=now + timedelta(days=1), reason=REASON)], now=now, using="default")

        entry = row.log.get()
        assert (entry.from_state, entry.to_state) == (State.SCHEDULED, State.SCHEDULED)
        assert entry.detail == {
            "scheduled_at": (now + timedelta(days=1)).isoformat(),
            "scheduled_at_before": now.isoformat(),
        }

    def test_keeps_what_a_write_leaves_out(self, make_task, now):
        row = make_task(reason_code="moved", reason="once", actor="ada", expires_at=now, worker="w", error="boom")

        apply([Write(task=row, triggers=(Trigger.DUE,))], now=now, using="default")

        row.refresh_from_db()
        assert (row.reason_code, row.reason, row.actor) == ("moved", "once", "ada")
        assert (row.expires_at, row.worker, row.error) == (now, "w", "boom")

    def test_cuts_texts_to_their_columns(self, make_task, now):
        row = make_task()
        reason = Reason(ReasonCode.OPERATOR, "x" * 999 + "\x00", "y" * 999)

        apply([Write(task=row, triggers=(Trigger.CANCEL,), reason=reason)], now=now, using="default")

        row.refresh_from_db()
        assert (len(row.reason), len(row.actor)) == (MAX_REASON, 150)
        assert row.reason.endswith("x…")

    def test_stores_odd_texts_as_they_are(self, make_task, now):
        """No part of a value reaches the statement as SQL or as its JSON."""
        odd = """it's "so"; -- %s {final} \\ ☃"""
        row = make_task()

        apply([Write(task=row, triggers=(Trigger.CANCEL,), reason=replace(REASON, text=odd))], now=now, using="default")

        row.refresh_from_db()
        assert row.reason == odd

    def test_asks_as_much_for_a_thousand_as_for_ten(self, make_tasks, now, statements_of):
        few, many = (make_tasks([{}] * count) for count in (10, 1000))

        asked = [
            statements_of(
                lambda rows=rows: apply(
                    [Write(task=row, triggers=(Trigger.DUE,)) for row in rows], now=now, using="default"
                )
            )
            for rows in (few, many)
        ]

        assert asked[0] == asked[1]
        assert {row.state for row in few + many} == {State.AVAILABLE}


class Busy(Timeline):
    """Ends in every way there is, depending on the task."""

    entity = "testapp.Order"
    starts_on = "order.placed"
    exits = {"order.closed": "closed"}

    @task(after(days=1))
    def completes(self, order):
        return {"sent": True}

    @task(after(completes, hours=1))
    def follows(self, order):
        return None

    @task(after(days=1), retry=Retry(max_attempts=2))
    def fails(self, order):
        raise ValueError("no")

    @task(after(days=1))
    def asks_for_later(self, order):
        if self.task.attempt == 1:
            raise RetryAfter(timedelta(minutes=5))

    @task(after(days=1))
    def is_hopeless(self, order):
        raise Discard("never")

    @task(after(days=2), only_if=lambda order: False)
    def is_guarded(self, order):
        return None

    @task(after(days=300))
    def is_left(self, order):
        return None

    @task(after(days=300))
    def is_moved(self, order):
        return None

    @task(after(days=300))
    def is_hastened(self, order):
        return None

    @task(after(days=300), atomic=False)
    def is_lost(self, order):
        return None


class TestTheLog:
    def test_gives_each_row_when_it_is_replayed(self, order, now, emit_at):
        with only_timelines(Busy):
            self.live(order, now, emit_at)

        rows = list(ScheduledTask.objects.all())
        for row in rows:
            assert replay(row) == {name: getattr(row, name) for name in replay(row)}, row
        assert {row.state for row in rows} >= FINAL
        assert {entry.to_state for entry in LogEntry.objects.all()} >= set(State) - {State.SCHEDULED}

    def live(self, order, now, emit_at):
        """A busy story: moves, claims, retries, losses, redrives, an exit."""
        using = "default"
        emit_at("order.placed", order, now)
        rows = {row.task_name: row for row in ScheduledTask.objects.all()}
        move(task_ids=[rows["is_moved"].pk], at=now + timedelta(days=3), reason=REASON, now=now, using=using)
        run_now(task_ids=[rows["is_hastened"].pk, rows["is_lost"].pk], reason=REASON, now=now, using=using)
        [batch] = [batch for batch in claim(now=now, using=using) if batch.task_key == "busy.is_hastened"]
        move(task_ids=batch.task_ids, at=now + timedelta(days=2), reason=REASON, now=now, using=using)
        claimed = ScheduledTask.objects.filter(state=State.PENDING)
        claimed.update(lease_expires_at=EARLIEST)
        [lost] = rescue(now=now, using=using).resend
        apply([Write(task=lost, triggers=(Trigger.START,))], now=now, using=using)
        ScheduledTask.objects.filter(pk=lost.pk).update(lease_expires_at=EARLIEST)
        rescue(now=now, using=using)
        for day in range(1, 5):
            then = now + timedelta(days=day)
            stage(now=then, using=using)
            ready = list(ScheduledTask.objects.ready().values_list("pk", flat=True))
            run(task_ids=ready, clock=lambda then=then: then, using=using)
        end = now + timedelta(days=5)
        redrive(task_ids=[rows["fails"].pk], reason=REASON, now=end, using=using)
        cancel(task_ids=[rows["is_left"].pk], reason=REASON, now=end, using=using)
        emit_at("order.closed", order, end, actor="ada")

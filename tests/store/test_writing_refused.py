"""What the lifecycle does not have: the writer refuses it, and nothing is written of it or of what came with it."""

from __future__ import annotations

import pytest
from django.db import DatabaseError, transaction

from tests.store.checking import Stored
from tests.store.making import write_of
from tests.store.moves import ILLEGAL, NOW, SINGLE, UNCOMPOSED
from tests.store.rules import Move
from timeline.exceptions import TransitionNotAllowed
from timeline.lifecycle import FINAL, Reason, State, Trigger, target
from timeline.models import ScheduledTask
from timeline.store.transition import apply

REASON = Reason.operator("asked for", "ada")
ENDINGS = [kind for kind in SINGLE if target(kind.state, *kind.triggers) in FINAL]

alone_or_not = pytest.mark.parametrize("others", [0, 2], ids=["alone", "among others"])


@pytest.fixture
def write(make_task):
    """Write moves of rows that are made for that: ``write(kind, others, …)``, beside others that are called off."""

    def written(kind, others, **given):
        rows = [make_task(state=kind.state), *(make_task() for _ in range(others))]
        moves = [Move(triggers=kind.triggers, **given), *[Move(triggers=(Trigger.CANCEL,), reason=REASON)] * others]
        before = Stored.of(row.pk for row in rows)
        writes = [write_of(row, move) for row, move in zip(rows, moves, strict=True)]
        return before, lambda: apply(writes, now=NOW, using="default")

    return written


class TestRefused:
    @alone_or_not
    @pytest.mark.parametrize("kind", [*ILLEGAL, *UNCOMPOSED], ids=str)
    def test_is_each_move_that_the_table_does_not_have(self, write, kind, others):
        before, act = write(kind, others, reason=REASON)

        with pytest.raises(TransitionNotAllowed) as refused:
            act()

        assert refused.value.task == next(iter(before.rows))
        assert Stored.of(before.rows) == before

    @alone_or_not
    @pytest.mark.parametrize("kind", ENDINGS, ids=str)
    def test_is_an_end_without_a_reason(self, write, kind, others):
        before, act = write(kind, others)

        with pytest.raises(DatabaseError, match="timeline_task_end_has_reason"), transaction.atomic():
            act()

        assert Stored.of(before.rows) == before

    @alone_or_not
    @pytest.mark.parametrize("state", sorted(FINAL))
    def test_is_any_change_of_what_has_ended(self, make_task, state, others):
        rows = [make_task(state=state), *(make_task() for _ in range(others))]
        before = Stored.of(row.pk for row in rows)
        writes = [write_of(row, Move(evidence={"late": True})) for row in rows]

        with pytest.raises(DatabaseError, match="a task that has ended does not change"), transaction.atomic():
            apply(writes, now=NOW, using="default")

        assert Stored.of(before.rows) == before


class TestLeft:
    @alone_or_not
    @pytest.mark.parametrize("meanwhile", [{"state": State.CANCELLED}, {"attempt": 3}], ids=["ended", "tried again"])
    def test_is_what_has_changed_since_it_was_read(self, make_task, meanwhile, others):
        stale, *fresh = rows = [make_task(state=State.ACTIVE, attempt=2) for _ in range(1 + others)]
        ended = {"finished_at": NOW, "lease_expires_at": None, "reason_code": "operator"}
        ScheduledTask.objects.filter(pk=stale.pk).update(**meanwhile, **(ended if "state" in meanwhile else {}))
        before = Stored.of([stale.pk])
        complete = Move(triggers=(Trigger.COMPLETE,), reason=REASON, result="1")

        done = apply([write_of(row, complete) for row in rows], now=NOW, using="default")

        assert done == fresh
        assert Stored.of([stale.pk]) == before
        assert {row.state for row in fresh} <= {State.COMPLETED}

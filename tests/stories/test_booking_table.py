"""The demo's table as it is carried out: each of its 28 states with each event; a refusal writes nothing."""

from __future__ import annotations

import pytest
from django.db import connection, transaction
from django.test.utils import CaptureQueriesContext

from project.portal.models import Booking as Row
from project.portal.states import ENDS, S
from project.portal.table import EVENTS
from project.portal.timelines import Booking
from tests.machines import expected, placed, written
from timeline import BACK, IGNORE, STAY, TransitionNotAllowed
from timeline.models import Event, RunEntry, TimelineRun
from timeline.shortcuts import emit
from timeline.testing import StoryClock, only_timelines

BEFORE = S.AUTHENTICATING  # Where a BACK leads.


class Undone(Exception):
    """So that the next pair finds all as it was."""


@pytest.fixture
def everywhere(db, now):
    """One booking in each state."""
    with only_timelines(), StoryClock(now):
        rows = [
            Row(reference=str(number), name=state, search_until=now, opens_at=now, created_at=now, state="")
            for number, state in enumerate(S)
        ]
        Row.objects.bulk_create(rows)
        runs = {}
        for row in rows:
            ended = {"ended_at": now, "end_reason": row.name, "end_code": "exit"} if row.name in ENDS else {}
            columns = {"machine": Booking, "back": "" if ended else BEFORE, "started_at": now, **ended}
            runs[row.name] = placed(row, row.name, **columns)
    with only_timelines(Booking), StoryClock(now):
        yield {row.name: (row, runs[row.name]) for row in rows}


def told(run):
    """Where a run is by its row, and by its last entry."""
    row = TimelineRun.objects.values_list("state", "moves").get(pk=run.pk)
    return row, RunEntry.objects.filter(run=run).values_list("to_state", "seq").latest("seq")


def carry_out(state, event, row, run):
    """Emit an event, and give what is wrong with what came of it; nothing is kept."""
    wanted = expected(state, event)
    target = {BACK: BEFORE, STAY: state, IGNORE: state}.get(wanted, wanted)
    moves = 0 if wanted is IGNORE else 1
    try:
        with transaction.atomic():
            with CaptureQueriesContext(connection) as queries:
                try:
                    emit(event, row)
                except TransitionNotAllowed as refused:
                    right = wanted is None and (refused.state, refused.event) == (state, event)
                    raise Undone(
                        None if right and not written(queries) else written(queries) or repr(refused)
                    ) from None
            is_so = told(run) == ((target, moves), (target, moves)) and Event.objects.filter(name=event).exists()
            raise Undone(None if wanted is not None and is_so else (told(run), wanted))
    except Undone as undone:
        return undone.args[0]


class TestEachPair:
    def test_moves_as_the_table_says_or_is_refused_with_zero_writes(self, everywhere):
        wrong = {
            (state, event): problem
            for state, (row, run) in everywhere.items()
            for event in EVENTS
            if (problem := carry_out(state, event, row, run)) is not None
        }

        assert wrong == {}
        assert len(everywhere) * len(EVENTS) > 28 * 40
        assert {told(run)[0] for _row, run in everywhere.values()} == {(state, 0) for state in S}
        assert not Event.objects.exists()

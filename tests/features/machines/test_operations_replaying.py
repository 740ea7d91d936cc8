"""Whatever is emitted, in whatever order: a run is what its entries lead to, and it moved as the table says."""

from __future__ import annotations

import pytest
from django.db import transaction
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from tests.machines import EVENTS, Booking, expected, replayed
from tests.testapp.models import Order
from timeline import BACK, IGNORE, STAY
from timeline.exceptions import MoveNotAllowed
from timeline.models import Event, RunEntry, TimelineRun
from timeline.shortcuts import emit, start
from timeline.testing import only_timelines

pytestmark = pytest.mark.django_db

# Mostly what the state takes, so that runs come far; else anything.
STEPS = st.lists(st.tuples(st.integers(0, 30), st.booleans(), st.integers(0, 2)), max_size=25)


class Model:
    """What a run has to be, kept by hand."""

    def __init__(self):
        self.state, self.back, self.moves, self.keys = "CREATED", "", 0, {}

    def follow(self, event):
        """Where the event leads; None: it is refused."""
        answer = expected(self.state, event)
        if answer is None:
            return None
        if answer is not IGNORE:
            target = {BACK: self.back, STAY: self.state}.get(answer, answer)
            if self.state not in ("AUTH_CAPTCHA_REQUIRED", "RETRY_SCHEDULED", "OPERATOR_ESCALATED"):
                self.back = self.state
            self.state, self.moves = str(target), self.moves + 1
        return self.state


@settings(max_examples=60, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(steps=STEPS)
def test_a_run_is_what_its_entries_lead_to(steps):
    with only_timelines(Booking), transaction.atomic():
        order, model = Order.objects.create(), Model()
        start(Booking, order)
        for number, is_legal, which in steps:
            taken = [event for event in EVENTS if expected(model.state, event) is not None]
            among = taken if is_legal and taken else EVENTS
            event, key = among[number % len(among)], f"k{which}" if which else ""
            if key and (event, key) in model.keys:
                assert not emit(event, order, key=key).recorded
                continue
            before = (RunEntry.objects.count(), Event.objects.count())
            if model.follow(event) is None:
                with pytest.raises(MoveNotAllowed):
                    emit(event, order, key=key)
                assert (RunEntry.objects.count(), Event.objects.count()) == before
            else:
                assert emit(event, order, key=key).recorded
                model.keys[event, key] = True

        [run] = TimelineRun.objects.all()
        assert (run.state, run.back, run.moves) == (model.state, model.back, model.moves)
        assert replayed(run) == (run.state, run.state_at, run.back, run.moves)
        assert (run.ended_at is None) == bool(Booking.definition.machine.takes(run.state))
        transaction.set_rollback(True)

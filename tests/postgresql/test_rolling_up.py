"""Figures beside others: entries that are committed late, and other roll-ups."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor

import pytest
from django.db import connections, transaction

from tests.rolling import counted, rolled_up_once
from timeline.features.maintenance.figures import roll_up
from timeline.lifecycle import State
from timeline.models import Figure, LogEntry

pytestmark = pytest.mark.django_db(transaction=True)


@pytest.fixture
def elsewhere():
    """Call something on a connection of its own, and give its result within ten seconds."""
    with ThreadPoolExecutor() as threads:

        def call(function):
            def alone():
                try:
                    return function()
                finally:
                    connections.close_all()

            return threads.submit(alone).result(timeout=120)

        yield call


def end(task, now):
    LogEntry.objects.create(task=task, seq=1, at=now, from_state="scheduled", to_state="cancelled", attempt=0)


class TestRollUp:
    def test_loses_no_entry_that_is_committed_after_one_with_a_greater_number(self, make_task, elsewhere, now):
        early, late = make_task(state=State.CANCELLED), make_task(state=State.CANCELLED)
        roll_up(using="default")
        with transaction.atomic():
            end(late, now)  # Has the smaller number.
            elsewhere(lambda: end(early, now))
            elsewhere(lambda: [roll_up(using="default") for _ in range(5)])
            assert not elsewhere(Figure.objects.exists)

        counted()

        assert Figure.objects.get().cancelled == 2

    def test_leaves_it_to_whoever_is_at_it(self, make_task, elsewhere, now):
        roll_up(using="default")
        end(make_task(state=State.CANCELLED), now)
        roll_up(using="default")  # Marks.
        with transaction.atomic():
            rolled_up_once()
            assert elsewhere(lambda: roll_up(using="default")) is False

        counted()

        assert Figure.objects.get().cancelled == 1

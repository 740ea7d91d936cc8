"""Prune beside a redrive: what was made anew a moment ago is not deleted, at whatever statement the other one comes between."""

from __future__ import annotations

import threading
from datetime import timedelta
from itertools import count

import pytest
from django.db import connection, connections

from tests.conftest import NOW
from tests.postgresql.races import somebody_waits
from tests.processes import wait_for
from timeline.features.maintenance.prune import prune
from timeline.lifecycle import OPEN, Reason, State
from timeline.models import LogEntry, ScheduledTask
from timeline.operations.redrive import redrive

pytestmark = [pytest.mark.django_db(transaction=True), pytest.mark.usefixtures("races")]

LATER = NOW + timedelta(days=1)


@pytest.fixture
def ended(order, make_task):
    """Two revisions of an ad hoc task: both have ended."""
    of_it = {"task_key": "race.quick", "occurrence": "k", "entity_label": "testapp.order", "entity_id": str(order.pk)}
    first = make_task(state=State.DISCARDED, reason_code="error", **of_it)
    second = make_task(state=State.DISCARDED, reason_code="error", revision=2, previous=first, **of_it)
    return [first, second]


def prune_with_a_break(number, act):
    """Prune; call ``act`` after so many statements, if there are as many."""
    seen = 0

    def break_off(execute, sql, *rest):
        nonlocal seen
        done = execute(sql, *rest)
        seen += 1
        if seen == number:
            act()
        return done

    with connection.execute_wrapper(break_off):
        return prune(ended_before=LATER, using="default")


class TestPruneBesideARedrive:
    @pytest.mark.parametrize("number_given", [0, 1])
    def test_leaves_the_row_it_made_or_there_is_none(self, ended, at_once, number_given):
        """Whatever the moment: either the redrive finds nothing any more, or its row stays, with those before it."""
        outcomes = []
        columns = [dict(ScheduledTask.objects.filter(pk=row.pk).values().get()) for row in ended]
        for number in count(1):
            LogEntry.objects.all().delete()
            ScheduledTask.objects.all().delete()
            for row in columns:
                ScheduledTask.objects.create(**row)
            if (outcome := self.outcome(number, ended[number_given])) == "":
                break
            outcomes.append(outcome)

        assert outcomes == sorted(outcomes, reverse=True)
        assert set(outcomes) == {"redriven", "pruned"}

    def outcome(self, number, row):
        said = []

        def again():
            try:
                said.extend(redrive(task_ids=[row.pk], reason=Reason.operator("again"), now=LATER, using="default"))
            except ScheduledTask.DoesNotExist as gone:
                said.append(gone)
            finally:
                connections.close_all()

        other = threading.Thread(target=again)

        def let_it_come_between():
            other.start()
            wait_for(lambda: somebody_waits() or not other.is_alive(), "the redrive's end, or its waiting for a lock")

        pruned = prune_with_a_break(number, let_it_come_between)
        if other.ident is None:
            return ""
        other.join(120)

        if isinstance(said[0], ScheduledTask.DoesNotExist):
            assert pruned.tasks == 2
            assert not ScheduledTask.objects.exists()
            return "pruned"
        assert pruned.tasks == 0
        assert list(ScheduledTask.objects.order_by("revision").values_list("revision", flat=True)) == [1, 2, 3]
        made = ScheduledTask.objects.get(revision=3)
        assert made.state in OPEN
        assert LogEntry.objects.get().task_id == made.pk  # Who had it run again.
        return "redriven"

"""Deliveries that ended long ago."""

from __future__ import annotations

from datetime import timedelta
from io import StringIO

import pytest
from django.core.management import call_command

from tests.webhooks.test_sending import deliver, told_order
from timeline.tasks import maintain
from timeline.webhooks.models import Attempt, Delivery, State


@pytest.fixture
def three(endpoint_for, receiver, clock):
    """One that arrived three days ago, one that arrived now, and one that waits since then."""
    endpoint = endpoint_for("told")
    waiting, old, new = (told_order("told.asked") for _ in range(3))
    deliver()
    Delivery.objects.filter(entity_id=waiting.pk).update(state=State.WAITING, ended_at=None)
    clock.advance(days=3)
    Delivery.objects.filter(entity_id=new.pk).update(ended_at=clock.now)
    assert endpoint.deliveries.count() == 3
    return old


def left():
    return set(Delivery.objects.values_list("entity_id", flat=True)), Attempt.objects.count()


class TestPruning:
    def test_by_the_command_takes_what_ended_before_and_nothing_else(self, three):
        out = StringIO()

        call_command("timeline_prune", days=2, stdout=out)

        keys, tries = left()
        assert (len(keys), tries, str(three.pk) in keys) == (2, 2, False)
        assert "Deleted 1 more" in out.getvalue()

    def test_is_part_of_maintaining_where_a_retention_is_set(self, three, settings):
        maintain("default")
        before = left()
        settings.TIMELINE = settings.TIMELINE | {"RETENTION": timedelta(days=2)}

        maintain("default")

        assert (len(before[0]), len(left()[0])) == (3, 2)

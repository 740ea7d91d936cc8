"""How far a handler is, while somebody else has the task's row."""

from datetime import timedelta

import pytest
from django.db import connection, connections, transaction
from django.utils import timezone

from tests.postgresql.meanwhile import attempt, elsewhere
from tests.testapp.models import Order
from timeline import Timeline, after, task
from timeline.lifecycle import State
from timeline.models import ScheduledTask, StepRecord
from timeline.shortcuts import start
from timeline.testing import only_timelines

pytestmark = pytest.mark.django_db(transaction=True)


class Telling(Timeline):
    """Tells how far it is while its row is locked."""

    entity = "testapp.Order"

    @task(after(), atomic=False)
    def work(self, order: Order) -> None:
        with transaction.atomic():
            ScheduledTask.objects.select_for_update().get(pk=self.task.pk)
            elsewhere(self.tell)

    def tell(self) -> None:
        """On a connection of its own, which waits for no lock."""
        with connection.cursor() as cursor:
            cursor.execute("SET lock_timeout = '50ms'")
        self.progress(1, 2, "half of it")


def test_is_written_and_waits_for_nobody():
    """A note counts for nothing, so it locks nothing."""
    with only_timelines(Telling):
        start("telling", Order.objects.create(), started_at=timezone.now() - timedelta(days=1))
        done = attempt(ScheduledTask.objects.get())
    connections.close_all()

    assert done.state == State.COMPLETED
    assert StepRecord.objects.get().result == "half of it"

"""What a poll reads of bulk actions."""

from __future__ import annotations

import pytest

from tests.features.bulk_actions.bulk import bulk_action
from tests.store.test_probing import SECOND
from timeline.features.bulk_actions.poll import begin_bulk, stop_bulk
from timeline.models import ScheduledTask
from timeline.store.poll_queries import sign

pytestmark = pytest.mark.django_db


class TestSign:
    def test_says_whether_somebody_acts_in_bulk(self, make_task, now):
        make_task()
        asked = bulk_action("cancel", asker="1", created_at=now, filters={"task": "trial.remind"})
        bulk = begin_bulk(asked, ScheduledTask.objects.all(), using="default")

        before = sign(SECOND, using="default").some_in_bulk
        stop_bulk(bulk.pk, actor="ada", now=now, using="default")

        assert (before, sign(SECOND, using="default").some_in_bulk) == (True, False)

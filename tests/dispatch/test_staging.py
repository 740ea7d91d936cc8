"""Stage: what was waiting and is due becomes available."""

from datetime import timedelta

import pytest

from timeline.dispatch.poll import stage
from timeline.lifecycle import WAITING, State
from timeline.models import ScheduledTask


class TestStage:
    @pytest.mark.parametrize("state", sorted(WAITING))
    def test_makes_due_tasks_available(self, make_task, now, state):
        row = make_task(state=state, scheduled_at=now)

        count = stage(now=now, using="default")

        row.refresh_from_db()
        assert (count, row.state, row.scheduled_at) == (1, State.AVAILABLE, now)
        entry = row.log.get()
        assert (entry.from_state, entry.to_state, entry.at) == (state, State.AVAILABLE, now)

    def test_leaves_what_is_ahead(self, make_task, now):
        row = make_task(scheduled_at=now + timedelta(microseconds=1))

        assert stage(now=now, using="default") == 0
        row.refresh_from_db()
        assert row.state == State.SCHEDULED

    @pytest.mark.parametrize("state", sorted(set(State) - WAITING))
    def test_leaves_what_does_not_wait(self, make_task, now, state):
        make_task(state=state)

        assert stage(now=now, using="default") == 0

    def test_takes_no_more_than_the_limit_the_longest_due_first(self, make_task, now):
        rows = [make_task(scheduled_at=now - timedelta(minutes=minute)) for minute in (0, 2, 1)]

        assert stage(limit=2, now=now, using="default") == 2

        assert ScheduledTask.objects.get(state=State.SCHEDULED) == rows[0]
        assert stage(limit=2, now=now, using="default") == 1

    def test_takes_tasks_of_unknown_keys_too(self, make_task, now):
        """They rest where somebody can see that they are due."""
        make_task(task_key="gone.work")

        assert stage(now=now, using="default") == 1

    def test_asks_as_much_for_a_thousand_as_for_ten(self, make_tasks, now, statements_of):
        asked = []
        for count in (10, 1000):
            make_tasks([{}] * count)
            asked.append(statements_of(lambda: stage(now=now, using="default")))
            assert not ScheduledTask.objects.to_stage(now)

        assert asked[0] == asked[1]

"""Hold back, at the last look: what it costs where nothing is on hold."""

from __future__ import annotations

import pytest

from timeline.engine.attempts import begin_attempts
from timeline.engine.precheck import look
from timeline.features.holds.precheck import held_back
from timeline.lifecycle import State
from timeline.shortcuts import hold, start


@pytest.fixture
def begun(db, make_task, now):
    row = make_task(state=State.AVAILABLE, entity_label="accounts.user", entity_id="7")
    [attempt] = begin_attempts([row.pk], token=None, worker="w", now=now, using="default")
    return attempt


class TestHeldBack:
    def test_asks_nothing_where_it_is_known_that_nothing_is_on_hold(self, begun, django_assert_num_queries):
        with django_assert_num_queries(0):
            assert held_back([begun], False, using="default") == {}
            assert held_back([], None, using="default") == {}

    def test_asks_once_where_it_is_not_known(self, begun, django_assert_num_queries):
        with django_assert_num_queries(1):
            assert held_back([begun], None, using="default") == {}

    @pytest.mark.parametrize("known", [None, True])
    def test_says_what_is_on_hold(self, begun, known):
        hold(task="trial.remind", reason="a secret", actor="ada")

        [reason] = held_back([begun], known, using="default").values()

        assert (reason.code, reason.text.startswith("trial.remind has been on hold since ")) == ("hold", True)
        assert "secret" not in reason.text


class TestLook:
    def test_is_told_with_the_runs_whether_anything_is_on_hold(self, user, now, django_assert_num_queries):
        """Of tasks in runs, holds cost no statement; and the runs do not keep what they were told."""
        run = start("trial", user).run
        row = run.tasks.get(task_key="trial.expire")
        type(row).objects.filter(pk=row.pk).update(scheduled_at=now)
        [attempt] = begin_attempts([row.pk], token=None, worker="w", now=now, using="default")

        with django_assert_num_queries(3):  # Runs, exits, entities.
            look([attempt], now=now, using="default")

        assert "timeline_any_hold" not in vars(attempt.task.run)

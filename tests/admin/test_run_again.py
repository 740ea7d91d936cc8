"""After a redrive: what came of it, on the page of dead letters, in lists, and on the old task's page; and a warning before."""

from __future__ import annotations

from datetime import timedelta

import pytest
from django.db import connection
from django.test.utils import CaptureQueriesContext

from tests.admin.conftest import ACT, LIST, detail, text_of
from tests.admin.test_dead import DEAD, ONE
from timeline import Timeline, task
from timeline.lifecycle import State
from timeline.testing import only_timelines


class Mailing(Timeline):
    entity = "testapp.Order"

    @task(atomic=False)
    def send(self, order): ...

    @task()
    def note(self, order): ...


@pytest.fixture(autouse=True)
def _known(clock):
    with only_timelines(Mailing):
        yield


@pytest.fixture
def failed(about, order):
    """Make rows that failed alike."""
    return lambda count=1: [
        about(order, task_key="mailing.send", state=State.DISCARDED, reason_code="error", fingerprint=ONE)
        for _ in range(count)
    ]


@pytest.fixture
def run(about, order):
    """Run one again, with this outcome, as a redrive makes the row."""

    def again(old, state):
        alike = {"task_key": old.task_key, "occurrence": old.occurrence, "fingerprint": ONE}
        return about(order, 0, state=state, previous=old, revision=old.revision + 1, **alike)

    return again


class TestRunAgain:
    def test_says_how_many_and_what_came_of_them_with_a_link(self, operator, failed, run):
        old = failed(4)
        for row in old[:3]:
            run(row, State.COMPLETED)
        run(old[3], State.DISCARDED)

        page = text_of(operator.get(DEAD))

        assert "Run again lately: 4" in page
        assert "4: 3 completed, 1 failed again" in page
        assert f'href="{DEAD}?group={ONE}"' in page

    def test_counts_a_task_once_however_often_it_was_run_again(self, operator, failed, run):
        again = run(*failed(), State.DISCARDED)
        run(again, State.COMPLETED)

        assert "1: 1 completed" in text_of(operator.get(DEAD))

    def test_shows_a_group_of_which_nothing_is_left(self, operator, failed, run):
        old = failed(2)
        run(old[0], State.COMPLETED)
        run(old[1], State.AVAILABLE)

        page = text_of(operator.get(DEAD, {"group": ONE}))

        assert "2: 1 completed, 1 under way" in page
        assert "All of this group were run again." in page
        assert page.count("since fixed") == 1

    def test_tells_nothing_where_it_was_long_ago(self, operator, failed, run, now, clock):
        run(*failed(), State.COMPLETED)
        clock.set(now + timedelta(days=8))

        assert "Run again lately" not in text_of(operator.get(DEAD))
        assert operator.get(DEAD, {"group": ONE}).status_code == 404


class TestMark:
    @pytest.mark.parametrize(
        ("state", "said"),
        [
            (State.COMPLETED, "since fixed"),
            (State.DISCARDED, "run again, failed again"),
            (State.AVAILABLE, "run again, under way"),
        ],
    )
    def test_is_in_the_list_and_on_the_page_of_the_old_task(self, operator, failed, run, state, said):
        [old] = failed()
        assert said not in text_of(operator.get(LIST, {"state": "discarded"}))

        run(old, state)

        assert said in text_of(operator.get(LIST, {"state": "discarded"}))
        assert said in text_of(operator.get(detail(old)))

    def test_is_read_at_once_for_all(self, operator, failed, run):
        def statements():
            with CaptureQueriesContext(connection) as queries:
                operator.get(LIST, {"state": "discarded"})
            return len(queries)

        run(*failed(), State.COMPLETED)
        few = statements()
        for row in failed(9):
            run(row, State.COMPLETED)

        assert statements() == few


class TestWarning:
    TWICE = "1 of these has completed, and does something outside of the database: it happens twice."

    def test_comes_before_what_acts_outside_is_done_twice(self, operator, about, order):
        row = about(order, task_key="mailing.send", state=State.COMPLETED)

        assert self.TWICE in text_of(operator.post(ACT, {"action": "redrive", "task": [row.pk]}))

    @pytest.mark.parametrize(("key", "state"), [("mailing.note", State.COMPLETED), ("mailing.send", State.DISCARDED)])
    def test_does_not_come_for_others(self, operator, about, order, key, state):
        row = about(order, task_key=key, state=state)

        assert "happens twice" not in text_of(operator.post(ACT, {"action": "redrive", "task": [row.pk]}))

"""A clock that is taken out of a timeline: the run that it left ahead."""

import pytest

from tests.features.recurring.test_operations import DAY, HOUR, START, begin_all, poll, settlement
from timeline import Timeline, after, task
from timeline.features.recurring.verbs import NextBeginnings
from timeline.models import ScheduledTask, TimelineRun
from timeline.operations.start import start
from timeline.testing import only_timelines


@pytest.fixture(autouse=True)
def _only_these(db):
    with only_timelines(settlement()):
        yield


class TestAClockTakenOut:
    """A timeline that no clock starts any more; the run of its next slot waits."""

    @pytest.fixture(autouse=True)
    def _ahead(self):
        poll(START)

    @staticmethod
    def declared(**options):
        class Settlement(Timeline):
            name = "settlement"
            once = options.get("once", False)

            @task(after())
            def settle(self):
                return None

            @task(after(hours=3))
            def look(self):
                return None

        return Settlement

    def test_leaves_no_run_ahead(self):
        with only_timelines(self.declared()):
            assert poll(START) == 0

        run = TimelineRun.objects.get()
        assert (run.is_open, run.end_code) == (False, "finished")
        assert {(known.state, known.reason_code, known.reason) for known in ScheduledTask.objects.all()} == {
            ("cancelled", "superseded", "no clock starts this timeline any more")
        }

    def test_leaves_a_run_that_has_begun_as_it_is(self, run_at):
        begin_all(run_at, START + DAY - 5 * HOUR)  # The other task of it is due in an hour.

        with only_timelines(self.declared()):
            poll(START + DAY - 5 * HOUR)

        assert TimelineRun.objects.get().is_open

    def test_leaves_runs_that_somebody_starts(self):
        with only_timelines(self.declared()):
            start(
                timeline="settlement", entity=None, key="mine", params={}, started_at=None, now=START, using="default"
            )
            poll(START)

        assert TimelineRun.objects.get(key="mine").is_open

    def test_leaves_runs_that_began_once_by_an_event(self):
        """Of a timeline that was declared with once, which was taken out."""
        with only_timelines(self.declared(once=True)):
            start(timeline="settlement", entity=None, key="42", params={}, started_at=None, now=START, using="default")
        with only_timelines(self.declared()):
            poll(START)

        assert TimelineRun.objects.get(key="42").is_open

    def test_begins_again_once_it_is_back(self):
        with only_timelines(self.declared()):
            poll(START)

        assert poll(START + HOUR) == 1  # The same slot, which is still ahead.
        assert TimelineRun.objects.get(ended_at=None).key == "2026-03-02T02:00Z"

    def test_is_looked_for_once_a_process(self, django_assert_num_queries):
        """One that does not know a clock which was declared since leaves alone what that has begun."""
        ahead = NextBeginnings()
        with only_timelines(self.declared()):
            poll(START, ahead)
        poll(START + HOUR)  # Another process has begun one.

        with only_timelines(self.declared()), django_assert_num_queries(0):
            poll(START + DAY, ahead)

        assert TimelineRun.objects.get(ended_at=None).key == "2026-03-02T02:00Z"

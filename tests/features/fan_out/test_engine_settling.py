"""The ending of one of many that were fanned out."""

from datetime import timedelta

import pytest
from django.db import connection
from django.test.utils import CaptureQueriesContext

from tests.engine.test_settling import DONE
from tests.features.fan_out.settlement import rows_of, settlement
from tests.testapp.models import Order
from timeline.engine.attempts import begin_attempts
from timeline.engine.finalize import settle
from timeline.lifecycle import State, Trigger
from timeline.models import ScheduledTask
from timeline.store.transition import Write
from timeline.testing import only_timelines


class TestTheEndingOfOneOfMany:
    @pytest.fixture
    def batches(self, db, now, later, run_at, start_at):
        """So many batches of a new order, fanned out."""
        known = []

        def have(count):
            names = [str(number) for number in range(count)]
            known.append(only_timelines(settlement(lambda job: job.fan_out(job.settle, names))))
            known[-1].__enter__()
            run = start_at("settlement", Order.objects.create(), now).run
            run_at(run.tasks.get(), later)
            return list(run.tasks.filter(task_key="settlement.settle"))

        yield have
        for context in reversed(known):
            context.__exit__(None, None, None)

    def end(self, rows, later, **given):
        begun = begin_attempts([row.pk for row in rows], token=None, worker="", now=later, using="default")
        writes = [Write(task=one.task, triggers=(Trigger.COMPLETE,), reason=DONE) for one in begun]
        return lambda: settle(writes, now=later, using="default", **given)

    def test_reads_none_of_the_others(self, batches, later):
        """Its run is looked at again when the last of them ends: until then, one probe says that there are others."""
        first, *_others = batches(1_000)
        ending = self.end([first], later)

        with CaptureQueriesContext(connection) as queries:
            ending()

        assert ScheduledTask.objects.get(pk=first.pk).state == State.COMPLETED
        of_tasks = [query["sql"] for query in queries if "timeline_scheduledtask" in query["sql"]]
        probes = [sql for sql in of_tasks if not sql.startswith(("UPDATE", "INSERT", "WITH"))]
        assert len(probes) == 1
        assert "SELECT 1" in probes[0] or "LIMIT 1" in probes[0]
        assert rows_of("report") == []

    def test_takes_as_many_statements_whether_they_are_three_or_a_thousand(self, batches, later, statements_of):
        few = statements_of(self.end(batches(3)[:1], later))
        many = statements_of(self.end(batches(1_000)[:1], later))

        assert len(many) == len(few)

    def test_lets_what_waits_follow_with_the_last(self, batches, later):
        first, second, third = batches(3)
        self.end([first], later)()
        assert rows_of("report") == []

        self.end([second, third], later + timedelta(hours=1))()

        [report], [clean_up] = rows_of("report"), rows_of("clean_up")
        assert report.anchor_value == clean_up.anchor_value == later + timedelta(hours=1)

    def test_leaves_no_run_open_if_several_end_together_and_nothing_waits(self, batches, later):
        rows = batches(2)

        done = self.end(rows, later, wait=False)()

        assert len(done) == 2
        assert len(rows_of("report")) == 1

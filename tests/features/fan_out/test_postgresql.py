"""Many batches of one run at once: what waits for all of them comes once, whoever ends the last."""

from __future__ import annotations

from collections import Counter
from datetime import timedelta
from time import monotonic, sleep

import pytest
from django.db import connection, transaction

from tests.features.fan_out.settlement import fan_out_two, row_of, rows_of, settlement, states_of
from tests.postgresql import conftest as postgresql
from tests.postgresql.plans import plan_of
from tests.postgresql.races import entered, now, somebody_waits
from tests.testapp.models import Order
from timeline.dialects import dialect_of
from timeline.dispatch.claim import claim
from timeline.dispatch.worker_signs import keep_paces
from timeline.engine.attempts import begin_attempts
from timeline.engine.finalize import settle
from timeline.engine.groups import run
from timeline.features.fan_out.fanned_rows import still_open
from timeline.lifecycle import Reason, ReasonCode, State, Trigger
from timeline.models import LogEntry, TimelineRun
from timeline.shortcuts import redrive, start
from timeline.store.transition import Write
from timeline.testing import only_timelines
from timeline.worker.batch import run_batch
from timeline.worker.heartbeat import Heartbeat
from timeline.worker.process import PaceOfKinds
from timeline.worker.threads import SideThread

at_once = postgresql.at_once  # Fixtures.

pytestmark = pytest.mark.django_db(transaction=True)

DONE = Reason(ReasonCode.DONE)


def two_days_ago():
    return now() - timedelta(days=2)


def run_now(*rows):
    return run(task_ids=[row.pk for row in rows], clock=now, using="default")


@pytest.fixture(params=[True, "own", "shared", False])
def split(request, order):
    """A run that is split in two, whose batches are settled in each kind of transaction."""
    with only_timelines(settlement(fan_out_two, each={"atomic": request.param})):
        start("settlement", order, started_at=two_days_ago())
        run_now(*rows_of("split"))
        yield rows_of("settle")


def fan_out_thousands(job):
    job.fan_out(job.settle, map(str, range(5_000)))


class TestTwoWorkers:
    @pytest.mark.parametrize("turn", range(5))
    def test_that_end_the_last_two_at_once_have_one_report(self, split, at_once, turn):
        first, second = split

        ended = at_once(lambda: run_now(first), lambda: run_now(second))

        assert [type(one) for one in ended] == [list, list]
        assert states_of("settle") == {"001": State.COMPLETED, "002": State.COMPLETED}
        assert len(rows_of("report")) == len(rows_of("clean_up")) == 1
        entries = LogEntry.objects.values_list("task", "seq")
        assert len(entries) == len(set(entries))

    def test_see_each_other_though_neither_has_committed_when_the_other_ends(self, split, at_once):
        """The lock of the run lets one in after the other."""
        first, second = split
        entered.clear()
        begun = begin_attempts([first.pk, second.pk], token=None, worker="", now=now(), using="default")
        writes = [Write(task=one.task, triggers=(Trigger.COMPLETE,), reason=DONE) for one in begun]

        def end_slowly():
            with transaction.atomic():
                settle(writes[:1], now=now(), using="default")
                entered.set()
                give_up = monotonic() + 120
                while not somebody_waits() and monotonic() < give_up:
                    sleep(0.01)

        def end():
            assert entered.wait(120)
            with transaction.atomic():
                return settle(writes[1:], now=now(), using="default")

        at_once(end_slowly, end)

        assert states_of("settle") == {"001": State.COMPLETED, "002": State.COMPLETED}
        assert len(rows_of("report")) == 1

    def test_that_end_one_while_its_task_is_redriven_leave_no_report_of_the_old(self, split, at_once):
        first, second = split
        run_now(first)

        at_once(lambda: run_now(second), lambda: redrive(row_of("split"), reason="anew", actor="ada"))
        run_now(row_of("split"))

        assert states_of("settle") == {"001": State.AVAILABLE, "002": State.AVAILABLE}
        assert {row.state for row in rows_of("report")} <= {State.CANCELLED}
        assert TimelineRun.objects.get().is_open


def fan_out_in_a_while(job):
    sleep(0.004)
    fan_out_two(job)


class TestAWorkerThatRecordsBeside:
    @pytest.mark.parametrize("atomic", [True, "shared", False])
    def test_has_what_is_fanned_out_with_each_outcome(self, atomic, db):
        """Outcomes are written on another thread while the next handlers run; each brings its rows."""
        pace = PaceOfKinds()
        pace.took("settlement.split", 100, 0.4)
        with only_timelines(settlement(fan_out_in_a_while, atomic=atomic)):
            for _ in range(30):
                start("settlement", Order.objects.create(), started_at=two_days_ago())
            keep_paces({"settlement.split": 0.0}, using="default")
            [batch] = claim(now=now(), using="default")
            with SideThread("default") as beside, Heartbeat("default", bool, pace) as watch:
                run_batch(batch, watch=watch, using="default", worker="w", side_thread=beside)

        made = Counter(row.entity_id for row in rows_of("settle"))
        assert set(made.values()) == {2}
        assert len(made) == 30
        assert {row.state for row in rows_of("split")} == {State.COMPLETED}


class TestTheProbe:
    @pytest.mark.parametrize("statistics", ["fresh", "stale"])
    def test_reads_one_row_of_its_index(self, order, statistics):
        with only_timelines(settlement(fan_out_thousands)), connection.cursor() as cursor:
            if statistics == "stale":
                cursor.execute("ANALYZE timeline_scheduledtask")
            for _ in range(2):
                start("settlement", Order.objects.create(), started_at=two_days_ago())
            run_now(*rows_of("split"))
            if statistics == "fresh":
                cursor.execute("ANALYZE timeline_scheduledtask")
            kinds = {(run.pk, "settlement.settle") for run in TimelineRun.objects.all()}
            pairs = [(run_id.hex, key) for run_id, key in kinds]

            plan = plan_of(dialect_of("default").sql("still_open"), dialect_of("default").entities_of(pairs))

            assert "timeline_task_one_open" in plan
            assert "Seq Scan" not in plan
            assert still_open(kinds, using="default") == kinds

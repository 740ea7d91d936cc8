"""The steps of a task as faces show them, and as the story tells them."""

from datetime import timedelta
from io import StringIO

import pytest
from django.core.management import call_command

from tests.resting import Billing, Failing, recorded, run_once
from timeline.features.steps.reading import steps_of_task, told_steps
from timeline.lifecycle import State
from timeline.models import ScheduledTask, StepRecord
from timeline.reading.explanation import explain
from timeline.shortcuts import cancel, redrive, step_happened
from timeline.testing import StoryClock, only_timelines
from timeline.told_times import how_long


@pytest.fixture
def clock(db, now):
    with StoryClock(now) as clock:
        yield clock


@pytest.fixture
def in_doubt(clock, order):
    """A task of which nobody knows whether it has paid."""
    with only_timelines(Billing):
        yield run_once(order, clock)


def told(task, clock):
    row = ScheduledTask.objects.get(pk=task.pk)
    return [line for line in explain(row, now=clock.now, using="default").splitlines() if line.startswith("Step ")]


class TestToldSteps:
    def test_tell_how_far_it_is_however_many_there_are(self, in_doubt):
        recorded(in_doubt, "(progress)", "note", done=3, total=9)
        for number in range(30):
            recorded(in_doubt, f"send#{number}")

        told = list(told_steps(steps_of_task(in_doubt, using="default"), of=in_doubt.pk))

        assert "that 3 of 9 is done." in told[0]
        assert told[1] == "11 steps more are done, earlier."
        assert len([line for line in told if "send#" in line]) == 20


class TestStepsOfTask:
    def test_says_of_each_what_is_known(self, in_doubt):
        upload, transfer = steps_of_task(in_doubt, using="default")

        assert (upload.name, upload.kind, upload.attempt, upload.result) == (
            "upload",
            "done",
            1,
            {"url": "/invoices/DE89"},
        )
        assert upload.seconds > 0
        assert not upload.is_in_doubt
        assert (transfer.name, transfer.seconds, transfer.result) == ("transfer", None, None)
        assert transfer.is_in_doubt

    def test_knows_no_length_of_what_somebody_has_said(self, in_doubt):
        step_happened(in_doubt, "transfer", {"receipt": 7}, reason="seen")

        transfer = steps_of_task(in_doubt, using="default")[1]
        assert (transfer.kind, transfer.seconds, transfer.result) == ("done", None, {"receipt": 7})

    def test_reads_the_latest_of_very_many_and_each_in_doubt(self, make_task, now, clock, django_assert_num_queries):
        row = make_task(attempt=1, state=State.COMPLETED)
        about = {"origin": row.pk, "attempt": 1, "recorded_at": now, "seconds": 1.0}
        StepRecord.objects.bulk_create(
            StepRecord(**about, name=f"step {number}", kind="done" if number else "begun") for number in range(300)
        )

        with django_assert_num_queries(1):
            steps = steps_of_task(row, using="default")

        assert [step.name for step in steps] == ["step 0", *(f"step {number}" for number in range(100, 300))]
        assert steps.left_out == 99
        assert "279 steps more are done, earlier." in [*told_steps(steps, of=row.pk)]

    def test_reads_no_results_where_they_are_not_asked_for(self, in_doubt, django_assert_num_queries):
        with django_assert_num_queries(1) as queries:
            steps = steps_of_task(in_doubt, using="default", results=False)

        assert [step.result for step in steps] == [None, None]
        assert '"result"' not in queries[0]["sql"]

    def test_asks_nothing_of_what_was_never_started(self, make_task, django_assert_num_queries):
        row = make_task()

        with django_assert_num_queries(0):
            assert steps_of_task(row, using="default") == []

    def test_finds_those_of_the_revision_before(self, in_doubt, django_assert_num_queries):
        cancel(in_doubt, reason="no")
        [again] = redrive(in_doubt, reason="yes")

        with django_assert_num_queries(2):
            steps = steps_of_task(again, using="default")

        assert [(step.name, step.task_id) for step in steps] == [("upload", in_doubt.pk), ("transfer", in_doubt.pk)]

    def test_finds_none_of_another_task(self, in_doubt, make_task):
        assert steps_of_task(make_task(attempt=1, state=State.COMPLETED), using="default") == []


class TestStory:
    def test_has_a_sentence_for_each(self, in_doubt, clock):
        StepRecord.objects.filter(name="upload").update(seconds=2.345)

        assert told(in_doubt, clock) == [
            "Step upload: done in attempt 1 on 2026-03-02 09:00 UTC, 2.3 s.",
            "Step transfer: begun in attempt 1 on 2026-03-02 09:00 UTC, its end is not known.",
        ]

    def test_has_no_length_for_what_somebody_has_said(self, in_doubt, clock):
        step_happened(in_doubt, "transfer", reason="seen")

        assert told(in_doubt, clock)[1] == "Step transfer: done in attempt 1 on 2026-03-02 09:00 UTC."

    def test_says_which_revision(self, in_doubt, clock):
        cancel(in_doubt, reason="no")
        [again] = redrive(in_doubt, reason="yes")

        assert "done in attempt 1 of an earlier revision on" in told(again, clock)[0]

    def test_tells_the_latest_of_many_and_those_in_doubt(self, make_task, clock):
        row = make_task(attempt=1, state=State.RETRYABLE)
        recorded(row, "first", "begun")
        for place in range(25):
            recorded(row, f"tell#{place}")

        lines = explain(row, now=clock.now, using="default").splitlines()

        assert "5 steps more are done, earlier." in lines
        assert told(row, clock)[0].startswith("Step first: begun")
        assert [line.split(":")[0] for line in told(row, clock)[1:]] == [f"Step tell#{place}" for place in range(5, 25)]

    @pytest.mark.parametrize(
        ("code", "said"),
        [
            ("in_doubt", "It rests until somebody decides, and looks again on "),
            ("definition", "It rests until its code fits or somebody decides, and looks again on "),
            ("error", "It waits for its time, "),
        ],
    )
    def test_ends_with_what_it_waits_for(self, make_task, clock, code, said):
        row = make_task(attempt=1, state=State.RETRYABLE, reason_code=code, scheduled_at=clock.now + timedelta(hours=1))

        assert f"\n{said}2026-03-01 10:00 UTC." in explain(row, now=clock.now, using="default")

    def test_is_printed_by_the_command(self, clock, order):
        with only_timelines(Failing):
            run_once(order, clock)
            printed = StringIO()
            call_command("timeline_explain", "testapp.order", str(order.pk), stdout=printed)

        assert "Step upload: done in attempt 1 on 2026-03-02 09:00:00 UTC" in printed.getvalue()


@pytest.mark.parametrize(("seconds", "said"), [(0.0004, "0 ms"), (0.4, "400 ms"), (2.34, "2.3 s"), (200, "0:03:20")])
def test_lengths_are_for_people(seconds, said):
    assert how_long(seconds) == said

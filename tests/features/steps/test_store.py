"""Each write of a step holds only while the attempt is its worker's."""

from uuid import uuid4

import pytest

from timeline.features.steps.store import (
    NewStep,
    Stored,
    finish_step,
    is_its_workers,
    record_step,
    steps_of,
    withdraw_step,
)
from timeline.lifecycle import State
from timeline.models import ScheduledTask, StepKind, StepRecord


@pytest.fixture
def active(make_task):
    return make_task(state=State.ACTIVE, attempt=2)


@pytest.fixture
def new(active, now):
    return NewStep(
        origin=active.pk,
        name="upload",
        task=active.pk,
        attempt=2,
        digest="d",
        code="c",
        at=now,
        seconds=0.5,
        result='{"a": [1]}',
    )


@pytest.fixture(params=[{"attempt": 3}, {"state": State.RETRYABLE, "lease_expires_at": None}], ids=["attempt", "state"])
def taken(active, request):
    """Somebody has taken the task from its worker."""
    ScheduledTask.objects.filter(pk=active.pk).update(**request.param)


class TestRecord:
    def test_is_kept(self, new, now):
        assert record_step(new, using="default") == Stored('{"a": [1]}')

        record = StepRecord.objects.get()
        assert (record.origin, record.name, record.attempt, record.kind) == (new.origin, "upload", 2, StepKind.DONE)
        assert (record.recorded_at, record.seconds, record.digest, record.code) == (now, 0.5, "d", "c")
        assert record.result == {"a": [1]}

    def test_is_one(self, new):
        record_step(new, using="default")

        assert record_step(new, using="default") is None
        assert StepRecord.objects.count() == 1

    def test_does_not_say_again_which_task_its_origin_is(self, new):
        record_step(new, using="default")

        record = StepRecord.objects.get()
        assert (record.task_id, record.by_task) == (None, new.task)

    def test_says_which_revision_has_done_it(self, new):
        record_step(new._replace(origin=uuid4()), using="default")

        assert StepRecord.objects.get().task_id == new.task

    @pytest.mark.usefixtures("taken")
    def test_is_not_taken_from_who_has_lost_the_task(self, new):
        assert record_step(new, using="default") is None
        assert not StepRecord.objects.exists()
        assert not is_its_workers(new, using="default")


class TestFinish:
    @pytest.fixture
    def begun(self, new):
        assert record_step(new.ended(at=new.at, seconds=0, result=None), using="default")
        StepRecord.objects.update(kind=StepKind.BEGUN)

    @pytest.mark.usefixtures("begun")
    def test_completes_what_was_begun(self, new):
        assert finish_step(new, using="default") == Stored('{"a": [1]}')
        assert StepRecord.objects.get().kind == StepKind.DONE
        assert finish_step(new, using="default") is None

    @pytest.mark.usefixtures("begun", "taken")
    def test_leaves_it_to_who_has_the_task(self, new):
        assert finish_step(new, using="default") is None
        assert StepRecord.objects.get().kind == StepKind.BEGUN

    @pytest.mark.usefixtures("begun")
    def test_can_be_withdrawn_instead(self, new):
        withdraw_step(new, using="default")

        assert not StepRecord.objects.exists()

    def test_withdraws_nothing_that_is_done(self, new):
        record_step(new, using="default")

        withdraw_step(new, using="default")

        assert list(steps_of(new.origin, using="default")) == ["upload"]
        assert is_its_workers(new, using="default")

"""What the story of a task says of its waits."""

from datetime import timedelta

import pytest

from tests.engine.conftest import declared
from tests.features.waits.test_engine import TEN_MINUTES, asking
from timeline import Timeline, approval, task
from timeline.features.steps.reading import share, steps_of_task
from timeline.features.waits.reading import wait_of
from timeline.lifecycle import Reason
from timeline.operations.move import move
from timeline.reading.explanation import explain

pytestmark = pytest.mark.django_db
__all__ = ["declared"]


def story(row, now):
    row.refresh_from_db()
    return explain(row, now=now, using="default").splitlines()


class TestATaskThatWaits:
    def test_says_what_for_since_when_and_until_when(self, declared, run_at, later):
        row = declared(asking())
        run_at(row, later)

        told = story(row, later + timedelta(minutes=1))

        assert "Attempt 1 rests since 2026-03-02 09:00 UTC: waits for otp.given until 2026-03-02 09:10 UTC." in told
        assert "It rests until that comes, or until 2026-03-02 09:10 UTC." in told
        assert not any("without success" in line for line in told)

    def test_says_what_waked_it(self, declared, run_at, later, order, emit_at):
        row = declared(asking())
        run_at(row, later)
        emit_at("otp.given", order, later + timedelta(minutes=1))

        assert "On 2026-03-02 09:01 UTC it was woken: otp.given came." in story(row, later + timedelta(minutes=1))

    @pytest.mark.parametrize(("comes", "said"), [(True, "it came"), (False, "nothing came")])
    def test_says_how_its_wait_ended(self, declared, run_at, later, order, emit_at, comes, said):
        row = declared(asking())
        until = run_at(row, later).scheduled_at
        if comes:
            emit_at("otp.given", order, later + timedelta(minutes=1))
        run_at(row, until)

        assert f"Its wait for otp.given ended on 2026-03-02 09:10 UTC: {said}." in story(row, until)

    def test_has_its_wait_among_its_steps(self, declared, run_at, later, order, emit_at):
        row = declared(asking(wait=lambda job: job.wait_for("otp.given", within=TEN_MINUTES, key="7")))
        until = run_at(row, later).scheduled_at
        row.refresh_from_db()
        [waiting] = steps_of_task(row, using="default")
        run_at(row, until)
        [over] = steps_of_task(row, using="default")

        assert [(step.name, step.kind, share(step)) for step in (waiting, over)] == [
            ("(wait) otp.given#7", "wait", ""),
            ("(wait) otp.given#7", "over", ""),
        ]


class TestWaitOf:
    def test_tells_what_a_handler_waits_for(self, declared, run_at, later, order):
        row = declared(asking(wait=lambda job: job.wait_for("otp.given", within=TEN_MINUTES, key="7")))
        run_at(row, later)
        row.refresh_from_db()

        wait = wait_of(row, using="default")

        assert (wait.events, wait.key, wait.entity.id, wait.permission) == (["otp.given"], "7", str(order.pk), "")
        assert wait.since == later
        assert wait.until == row.scheduled_at >= later + TEN_MINUTES

    def test_tells_nothing_of_what_was_waked(self, declared, run_at, later, order, emit_at, django_assert_num_queries):
        row = declared(asking())
        run_at(row, later)
        emit_at("otp.given", order, later + timedelta(minutes=1))
        row.refresh_from_db()

        with django_assert_num_queries(0):
            assert wait_of(row, using="default") is None

    def test_tells_the_deadline_that_counts_of_what_was_moved(self, declared, run_at, later):
        """Somebody has it look later: what comes after its deadline does not count all the same."""
        row = declared(asking())
        until = run_at(row, later).scheduled_at
        move_task(row, until + timedelta(days=1), later)

        assert wait_of(row, using="default").until == until

    def test_asks_for_no_approval_what_waits_for_something_else_by_now(self, declared, run_at, order, now, emit_at):
        class Job(Timeline):
            entity = "testapp.Order"

            @task(approval("refund", by="testapp.change_order", within=timedelta(days=3)), atomic=False)
            def work(self, order):
                return self.wait_for("bank.answered", within=TEN_MINUTES)

        row = declared(Job)
        assert wait_of(row, using="default").permission == "testapp.change_order"
        emit_at("refund.approved", order, now)
        run_at(row, now)
        row.refresh_from_db()

        assert (wait_of(row, using="default").events, wait_of(row, using="default").permission) == (
            ["bank.answered"],
            "",
        )
        assert not any("approve or reject" in line for line in story(row, now))


class TestWhoDecides:
    def test_says_until_when_a_decision_counts(self, declared, now):
        class Job(Timeline):
            entity = "testapp.Order"

            @task(approval("refund", by="testapp.change_order", within=timedelta(days=3)))
            def work(self, order): ...

        row = declared(Job)
        move_task(row, now + timedelta(days=9), now)

        assert any("until 2026-03-04 09:00 UTC" in line for line in story(row, now))


def move_task(row, at, now):
    [moved] = move(task_ids=[row.pk], at=at, reason=Reason.operator("why"), now=now, using="default")
    row.refresh_from_db()
    assert (moved.pk, moved.scheduled_at) == (row.pk, at)

"""What the story of a task says of its waits."""

from datetime import timedelta

import pytest

from tests.engine.conftest import declared
from tests.engine.test_waiting import TEN_MINUTES, asking
from timeline.reading.explaining import explain
from timeline.reading.steps import share, steps_of_task

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

        assert "On 2026-03-02 09:01 UTC it was waked: otp.given came." in story(row, later + timedelta(minutes=1))

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

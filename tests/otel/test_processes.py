"""A trace goes on in another process, and after one that was killed."""

from __future__ import annotations

import json
import signal

import pytest

from tests.otel.tales import Tale
from tests.processes import kill, let_be_dead, start_process, wait_for
from tests.testapp.models import Order
from timeline.models import ScheduledTask
from timeline.shortcuts import emit
from timeline.testing import only_timelines

pytestmark = [pytest.mark.django_db(transaction=True), pytest.mark.processes]


@pytest.fixture
def worker(tmp_path):
    """Start workers whose spans go to a file of this test, each with a tracer of its own."""
    started = []

    def start(name, **environment):
        file = str(tmp_path / f"{name}.spans")
        started.append(start_process(tmp_path, name, "tests.otel.worker", name, file, **environment))
        return started[-1]

    yield start
    for process in started:
        kill(process)


@pytest.fixture
def spans_of(tmp_path):
    def read(name):
        path = tmp_path / f"{name}.spans"
        lines = path.read_text().splitlines() if path.exists() else []
        return {span["name"]: span for span in map(json.loads, lines)}

    return read


def is_over():
    return ScheduledTask.objects.exists() and not ScheduledTask.objects.open().exists()


class TestAWorker:
    def test_goes_on_with_the_trace_of_the_process_that_emitted(self, worker, spans_of, spans):
        with only_timelines(Tale):
            emit("tale.begun", Order.objects.create())
        worker("one")
        wait_for(lambda: is_over() and "run tale.thank" in spans_of("one"), "the end of the tale")

        begun, found = spans.one("emit tale.begun"), spans_of("one")
        ours = {name: span for name, span in found.items() if name != "poll"}
        assert {span["trace"] for span in ours.values()} == {begun["trace"]}
        assert found["run tale.pay"]["parent"] == begun["id"]
        assert {"run tale.pay", "handler tale.pay", "step charge", "step receipt", "run tale.thank"} <= ours.keys()
        assert found["step charge"]["parent"] == found["handler tale.pay"]["id"]
        assert found["run tale.pay"]["attributes"]["messaging.client.id"].startswith("one:")

    def test_that_is_killed_leaves_a_trace_with_which_the_next_attempt_goes_on(self, worker, spans_of, spans):
        """What had ended was told; the attempt itself is told by nobody, as its process is gone."""
        with only_timelines(Tale):
            emit("tale.begun", Order.objects.create())
        assert worker("killed", DIE="1").wait(60) == -signal.SIGKILL
        let_be_dead()
        worker("heir")
        wait_for(lambda: is_over() and "run tale.thank" in spans_of("heir"), "the end of the tale")

        begun, before, after = spans.one("emit tale.begun"), spans_of("killed"), spans_of("heir")
        assert before["step charge"]["trace"] == begun["trace"]
        assert "run tale.pay" not in before
        assert (after["run tale.pay"]["trace"], after["run tale.pay"]["parent"]) == (begun["trace"], begun["id"])
        assert after["run tale.pay"]["attributes"]["timeline.attempt"] == 2
        assert "step charge" not in after
        assert after["step receipt"]["trace"] == begun["trace"]

"""What Celery runs, called in this process; and what the package never asks Celery for."""

from __future__ import annotations

import re
from contextlib import contextmanager
from datetime import timedelta
from functools import partial
from pathlib import Path
from time import monotonic
from uuid import uuid4

import pytest
from celery import current_app
from django.db import OperationalError, connection
from django.utils import timezone

import timeline
from tests.brokers import free_port, received
from tests.readonly import demote
from tests.testapp.models import Order
from timeline import Timeline, at, models, task, tasks
from timeline.clocks import MachineTime
from timeline.dispatch.claim import claim
from timeline.dispatch.poll import stage
from timeline.dispatch.worker_signs import keep_paces
from timeline.lifecycle import State
from timeline.models import ScheduledTask
from timeline.operations.repeated_requests import forget_answers
from timeline.shortcuts import cancel, schedule, start
from timeline.store.site import confirm_site
from timeline.tasks import shutdown
from timeline.testing import only_timelines
from timeline.worker.process import PaceOfKinds

pytestmark = pytest.mark.django_db(transaction=True)


class Jobs(Timeline):
    entity = "testapp.Order"

    @task(atomic=False)
    def work(self, order) -> str:
        return "done"

    @task(atomic=False)
    def stop(self, order) -> None:
        shutdown._stopping.value = True


@pytest.fixture(autouse=True)
def _only_these():
    with only_timelines(Jobs):
        yield
    shutdown._stopping.value = False
    tasks._sender.close()  # The next test has another broker.


@pytest.fixture
def claimed(order):
    """Claim so many tasks, as a poll would: ``claimed("jobs.work", …)`` gives their batch."""

    def claim_them(*task_keys):
        now = timezone.now()
        for number, task_key in enumerate(task_keys):
            schedule(task_key, order, at=now - timedelta(seconds=60 - number))
        stage(now=now, using="default")
        batches = claim(now=now, using="default")
        return [str(task_id) for batch in batches for task_id in batch.task_ids], [
            str(batch.token) for batch in batches
        ]

    return claim_them


def states():
    return sorted(ScheduledTask.objects.values_list("state", flat=True))


class TestRun:
    def test_runs_what_was_claimed_with_its_token(self, claimed):
        keep_paces({"jobs.work": 0.001}, using="default")
        task_ids, [token] = claimed("jobs.work", "jobs.work")

        tasks.run(task_ids=task_ids, token=token)

        assert list(ScheduledTask.objects.values_list("state", "result", "attempt")) == [("completed", "done", 1)] * 2

    def test_leaves_what_was_claimed_with_another(self, claimed):
        task_ids, _tokens = claimed("jobs.work")

        tasks.run(task_ids=task_ids, token=str(uuid4()))

        assert states() == ["pending"]

    def test_does_nothing_the_second_time(self, claimed):
        task_ids, [token] = claimed("jobs.work")

        tasks.run(task_ids=task_ids, token=token)
        tasks.run(task_ids=task_ids, token=token)

        assert list(ScheduledTask.objects.values_list("state", "attempt")) == [("completed", 1)]

    def test_leaves_what_was_cancelled_on_the_way(self, claimed):
        task_ids, [token] = claimed("jobs.work")
        cancel(ScheduledTask.objects.get(), reason="no longer wanted")

        tasks.run(task_ids=task_ids, token=token)

        assert list(ScheduledTask.objects.values_list("state", "attempt")) == [("cancelled", 0)]

    def test_gives_back_what_it_has_not_started_when_told_to_stop(self, claimed):
        """The rest stays claimed with its lease at its end: the next poll sends it again, and no budget has changed."""
        keep_paces({"jobs.stop": 0.001}, using="default")
        task_ids, [token] = claimed("jobs.stop", "jobs.stop")

        tasks.run(task_ids=task_ids, token=token)

        assert states() == ["completed", "pending"]
        [row] = ScheduledTask.objects.given_up()
        assert (str(row.pk), row.attempt, row.seq) == (task_ids[1], 0, 1)

    def test_runs_none_of_a_message_that_comes_while_it_stops(self, claimed):
        task_ids, [token] = claimed("jobs.work")
        shutdown._stopping.value = True

        tasks.run(task_ids=task_ids, token=token)

        [row] = ScheduledTask.objects.given_up()
        assert (row.state, row.attempt) == ("pending", 0)

    def test_writes_down_how_fast_it_was(self, claimed, monkeypatch):
        monkeypatch.setattr(tasks, "_pace", PaceOfKinds())
        task_ids, [token] = claimed("jobs.work")

        tasks.run(task_ids=task_ids, token=token)

        assert 0 < models.Pace.objects.get(task_key="jobs.work").seconds < 10


@contextmanager
def away(*, times):
    """Have the database not answer so many statements."""
    left = iter(range(times))

    def fail(execute, *given):
        if next(left, None) is not None:
            raise OperationalError("the server closed the connection unexpectedly")
        return execute(*given)

    with connection.execute_wrapper(fail):
        yield


class TestRunWhileTheDatabaseIsAway:
    @pytest.mark.parametrize("times", [1, 3])
    def test_waits_for_it(self, claimed, times):
        task_ids, [token] = claimed("jobs.work")

        with away(times=times):
            tasks.run(task_ids=task_ids, token=token)

        assert list(ScheduledTask.objects.values_list("state", "attempt")) == [("completed", 1)]

    @pytest.mark.only_postgresql
    def test_does_not_take_a_server_without_writes_for_it(self, claimed, monkeypatch):
        """The connection is demoted after the message has looked at it."""
        task_ids, [token] = claimed("jobs.work")
        to_come = [demote]

        def demote_once(**named):
            if to_come:
                to_come.pop()()
            return confirm_site(**named)

        monkeypatch.setattr(tasks, "confirm_site", demote_once)
        tasks.run(task_ids=task_ids, token=token)

        assert list(ScheduledTask.objects.values_list("state", "attempt")) == [("completed", 1)]

    def test_gives_the_message_back_when_the_worker_stops(self, claimed, over, broker):
        """Somebody else has it then, and its rows need not wait to be sent again."""
        over(broker.url, broker.prefix)
        task_ids, [token] = claimed("jobs.work")
        queue = f"{broker.prefix}.default"
        shutdown._stopping.value = True

        tasks.run.push_request(delivery_info={"routing_key": queue})
        with away(times=100):
            tasks.run.run(task_ids=task_ids, token=token)
        tasks.run.pop_request()

        [(_headers, _properties, body)] = received(broker, queue)
        assert body[1] == {"task_ids": task_ids, "token": token, "using": "default"}
        assert states() == ["pending"]

    def test_says_so_where_the_broker_is_down_as_well(self, claimed, over, caplog):
        over(f"redis://127.0.0.1:{free_port()}/0")
        task_ids, [token] = claimed("jobs.work")
        shutdown._stopping.value = True

        tasks.run.push_request(delivery_info={"routing_key": "timeline.default"})
        with away(times=100):
            tasks.run.run(task_ids=task_ids, token=token)
        tasks.run.pop_request()

        assert "neither database nor broker is there" in caplog.text


class TestPoll:
    def test_takes_what_is_due_all_the_way(self, order, eager):
        schedule("jobs.work", order, at=timezone.now() - timedelta(seconds=1))

        tasks.poll()

        assert states() == ["completed"]

    def test_says_so_when_the_broker_is_down(self, order, over, caplog):
        over(f"redis://127.0.0.1:{free_port()}/0")
        schedule("jobs.work", order, at=timezone.now() - timedelta(seconds=1))

        tasks.poll()

        assert "The broker takes no message" in caplog.text
        assert states() == ["available"]


class TestMaintain:
    @pytest.fixture
    def ended(self, make_task):
        """A task that ended forty days ago, and one that ended yesterday."""
        return [make_task(state=State.COMPLETED, finished_at=timezone.now() - timedelta(days=days)) for days in (40, 1)]

    def test_prunes_what_ended_longer_ago_than_the_retention(self, ended, settings):
        settings.TIMELINE = {"RETENTION": timedelta(days=30)}

        tasks.maintain()

        assert ScheduledTask.objects.get() == ended[1]

    def test_deletes_nothing_by_default(self, ended):
        tasks.maintain()

        assert ScheduledTask.objects.count() == 2

    def test_forgets_what_requests_were_answered_over_a_day_ago(self, monkeypatch):
        monkeypatch.setattr(tasks, "forget_answers", partial(forget_answers, limit=2))
        ages = [timedelta(hours=25)] * (2 * tasks.MAINTAINED_AT_ONCE + 3) + [timedelta(hours=23)]
        rows = enumerate(ages)
        models.Answer.objects.bulk_create(
            models.Answer(key=str(key), fingerprint="", status=200, headers={}, body="", made_at=MachineTime(-age))
            for key, age in rows
        )

        left = [tasks.maintain() or models.Answer.objects.count() for _ in range(2)]

        assert left == [4, 1]

    def test_counts_what_the_log_says_into_figures(self, make_task):
        tasks.maintain()
        task = make_task(state=State.CANCELLED)
        models.LogEntry.objects.create(
            task=task, seq=1, at=timezone.now(), from_state="scheduled", to_state="cancelled", attempt=0
        )

        deadline = monotonic() + 120  # Others on this server may have a transaction open.
        while not models.Figure.objects.exists() and monotonic() < deadline:
            tasks.maintain()

        assert models.Figure.objects.get().cancelled == 1


class Dated(Timeline):
    entity = "testapp.Order"

    @task(at("ships_at"))
    def ship(self, order) -> None: ...


class TestSweeping:
    def test_mends_what_no_signal_saw(self, order):
        later = timezone.now() + timedelta(days=1)
        with only_timelines(Dated):
            start("dated", order)
            Order.objects.update(ships_at=later)

            tasks.maintain()

        assert ScheduledTask.objects.get().scheduled_at == later

    def test_leaves_another_sites_database(self, order, caplog):
        models.Identity.objects.update(site="production")

        tasks.maintain()

        assert "the site 'production'" in caplog.text


class TestMessages:
    @pytest.mark.parametrize("name", ["timeline.poll", "timeline.run", "timeline.maintain"])
    def test_are_json_without_results_acknowledged_early_and_not_retried(self, name):
        declared = current_app.tasks[name]

        assert declared.serializer == "json"
        assert declared.ignore_result
        assert not declared.acks_late
        assert declared.max_retries == 0

    def test_have_no_time_of_their_own_anywhere_in_the_package(self):
        """No ETA, no countdown, no retry by Celery, no result waited for."""
        forbidden = re.compile(r"\b(eta|countdown|autoretry_for|AsyncResult)\b|\.retry\(")
        package = Path(timeline.__file__).parent

        found = [
            f"{file.relative_to(package)}: {line.strip()}"
            for file in package.rglob("*.py")
            for line in file.read_text(encoding="utf-8").splitlines()
            if forbidden.search(line)
        ]

        assert found == []
        assert forbidden.search("run.apply_async(countdown=5)")

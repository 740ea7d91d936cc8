"""Workers that are processes of their own, over HTTP: one that is killed, and several at once."""

from __future__ import annotations

import json
import signal
import subprocess
import sys
import urllib.request
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
from django.db import connection, transaction

from tests.ojs.outside import ask
from tests.processes import let_be_dead, wait_for
from timeline.clocks import story_now
from timeline.dispatch.poll import stage
from timeline.dispatch.rescue import rescue
from timeline.models import LogEntry, ScheduledTask

pytestmark = pytest.mark.django_db(transaction=True)


@pytest.fixture
def outside(live_server, server, tmp_path):
    """Start workers outside; those that are still there at the end are killed."""
    started = []

    def start(name, held_for=0):
        command = [sys.executable, str(Path(__file__).with_name("outside.py")), live_server.url, name, str(tmp_path)]
        started.append(subprocess.Popen([*command, str(held_for)]))
        return started[-1]

    yield start
    for process in started:
        process.kill()
        process.wait()


class TestKilledWorker:
    def test_leaves_its_job_to_the_next(self, outside, live_server, tmp_path):
        job = ask(live_server.url, "jobs", {"type": "email.send", "args": []})["job"]
        first = outside("first", held_for=600)
        wait_for((tmp_path / "first").exists, "taking the job")

        first.send_signal(signal.SIGKILL)
        first.wait()
        assert ask(live_server.url, "workers/fetch", {"queues": ["default"]})["jobs"] == []
        let_be_dead()
        now = story_now("default")
        rescue(now=now, using="default")
        stage(now=now, using="default")
        outside("second")

        wait_for(lambda: ScheduledTask.objects.filter(state="completed").exists(), "the second worker's report")
        task = ScheduledTask.objects.get(occurrence=job["id"])
        assert (task.result, task.attempt, task.worker) == ("second", 2, "second")
        assert (tmp_path / "second").read_text() == job["id"]


class TestManyWorkers:
    def test_take_each_job_once(self, server, live_server):
        jobs = [{"type": "a", "args": [number]} for number in range(60)]
        ask(live_server.url, "jobs/batch", {"jobs": jobs})

        def take(name):
            taken = []
            while found := ask(
                live_server.url, "workers/fetch", {"queues": ["default"], "count": 4, "worker_id": name}
            )["jobs"]:
                taken += [job["id"] for job in found]
            return taken

        with ThreadPoolExecutor(6) as pool:
            taken = [job for found in pool.map(take, "abcdef") for job in found]
        taken += take("last")  # What others had locked for a moment was passed over.

        assert len(taken) == len(set(taken)) == 60
        assert LogEntry.objects.filter(to_state="active").count() == 60

    @pytest.mark.only_postgresql
    def test_do_not_wait_for_each_other(self, server, live_server):
        ask(live_server.url, "jobs/batch", {"jobs": [{"type": "a", "args": [number]} for number in range(2)]})
        first = ScheduledTask.objects.order_by("pk").first()

        with transaction.atomic():
            ScheduledTask.objects.select_for_update().get(pk=first.pk)
            taken = ask(live_server.url, "workers/fetch", {"queues": ["default"], "count": 2})["jobs"]

        assert [job["args"] for job in taken] == [[1]]

    def test_cannot_both_end_a_job(self, server, live_server):
        job = ask(live_server.url, "jobs", {"type": "a", "args": []})["job"]["id"]
        ask(live_server.url, "workers/fetch", {"queues": ["default"]})

        def end(number):
            try:
                ask(live_server.url, "workers/ack", {"job_id": job, "result": number})
            except OSError as error:
                return error.code
            return 200

        with ThreadPoolExecutor(4) as pool:
            assert sorted(pool.map(end, range(4))) == [200, 409, 409, 409]

    @pytest.mark.only_postgresql
    def test_find_jobs_of_a_queue_by_an_index(self, server):
        with connection.cursor() as cursor:
            cursor.execute("SELECT indexname FROM pg_indexes WHERE indexname LIKE 'timeline_ojs_%'")
            made = {name for (name,) in cursor.fetchall()}

        assert {"timeline_ojs_fetch", "timeline_ojs_leases", "timeline_ojs_waiting"} <= made


@pytest.mark.only_postgresql
def test_a_heartbeat_does_not_call_a_job_lost_that_somebody_has_locked_for_a_moment(server, live_server):
    ask(live_server.url, "jobs", {"type": "a", "args": []})
    [job] = ask(live_server.url, "workers/fetch", {"queues": ["default"], "worker_id": "w"})["jobs"]
    beat = {"worker_id": "w", "active_jobs": [job["id"]]}

    with transaction.atomic():
        ScheduledTask.objects.select_for_update().get(pk=job["id"])
        assert ask(live_server.url, "workers/heartbeat", beat)["jobs_lost"] == []


@pytest.mark.only_postgresql
def test_whoever_reads_a_job_sees_what_somebody_is_just_giving_up(server, live_server):
    ask(live_server.url, "jobs", {"type": "a", "args": []})
    [job] = ask(live_server.url, "workers/fetch", {"queues": ["default"], "worker_id": "w"})["jobs"]
    let_be_dead()

    def state():
        with urllib.request.urlopen(f"{live_server.url}/ojs/v1/jobs/{job['id']}") as answer:  # noqa: S310 (ours)
            return json.loads(answer.read())["job"]["state"]

    with ThreadPoolExecutor(1) as pool:
        with transaction.atomic():
            rescue(now=story_now("default"), using="default")
            asked = pool.submit(state)
            with pytest.raises(TimeoutError):
                asked.result(0.5)
        assert asked.result(10) != "active"

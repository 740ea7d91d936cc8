"""Rates of jobs: how many are given out within a time, and what waits meanwhile."""  # of rates

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from datetime import timedelta

import pytest
from django.db import connection, transaction
from django.test.utils import CaptureQueriesContext

from tests.ojs.outside import ask
from timeline.clocks import MachineTime
from timeline.models import LogEntry, RateKey, ScheduledTask

ONE = {"max_per_second": 1}


def numbers(jobs):
    """What tells jobs apart here."""
    return [job["args"][0] for job in jobs]


class TestFetch:
    def test_gives_out_no_more_than_the_rate_of_the_queue(self, server):
        jobs = [
            server.enqueue(type=f"rate.test_{number}", args=[number], queue="slow", rate_limit=ONE)
            for number in range(3)
        ]

        [first] = server.fetch("slow")
        assert (first["id"], first["state"]) == (jobs[0]["id"], "active")
        assert server.fetch("slow", count=9) == []
        assert [server.job(job["id"])["state"] for job in jobs[1:]] == ["available", "available"]
        server.later(milliseconds=999)
        assert server.fetch("slow") == []
        server.later(milliseconds=1)
        assert numbers(server.fetch("slow", count=9)) == [1]
        server.later(milliseconds=1500)
        assert numbers(server.fetch("slow", count=9)) == [2]

    def test_leaves_what_waits_as_it_is(self, server):
        for number in range(2):
            server.enqueue(args=[number], rate_limit=ONE)
        server.fetch()
        task = ScheduledTask.objects.get(state="available")
        entries = LogEntry.objects.count()

        for _ in range(3):
            assert server.fetch(count=9) == []

        task.refresh_from_db()
        assert (task.attempt, task.failures, LogEntry.objects.count()) == (0, 0, entries)

    def test_passes_over_what_waits(self, server):
        for number, options in enumerate([{"rate_limit": ONE}, {"rate_limit": ONE, "priority": 9}, {}, {}]):
            server.enqueue(args=[number], **options)

        assert numbers(server.fetch(count=2)) == [1, 2]
        assert numbers(server.fetch(count=2)) == [3]

    def test_counts_the_queue_of_each_job(self, server):
        for number, queue in enumerate("aabb"):
            server.enqueue(args=[number], queue=queue, rate_limit=ONE)

        assert numbers(server.fetch("a", "b", count=9)) == [0, 2]

    def test_counts_a_key_in_all_queues(self, server):
        for number, (queue, key) in enumerate([("a", "api"), ("b", "api"), ("b", "other:1")]):
            server.enqueue(args=[number], queue=queue, rate_limit={"key": key, **ONE})

        assert numbers(server.fetch("a", "b", count=9)) == [0, 2]

    def test_counts_within_the_period_that_the_job_says(self, server):
        for number in range(3):
            server.enqueue(args=[number], rate_limit={"key": "api", "rate": {"limit": 2, "period": "PT1H"}})

        assert numbers(server.fetch(count=9)) == [0, 1]
        server.later(minutes=59)
        assert server.fetch() == []
        server.later(minutes=1)
        assert numbers(server.fetch()) == [2]

    def test_lets_none_overtake_another_of_its_key(self, server):
        for number, most in enumerate([2, 1, 9]):
            server.enqueue(args=[number], rate_limit={"key": "api", "max_per_second": most})

        assert numbers(server.fetch(count=9)) == [0]
        server.later(seconds=1)
        assert numbers(server.fetch(count=9)) == [1, 2]

    def test_counts_each_attempt(self, server):
        job = server.enqueue(rate_limit=ONE)
        server.fetch(worker_id="w")
        server.nack(job["id"], worker_id="w", requeue=True)

        assert server.fetch() == []
        server.later(seconds=1)
        assert [again["id"] for again in server.fetch()] == [job["id"]]

    def test_counts_nothing_that_is_not_given_out(self, server):
        late = server.enqueue(args=["late"], rate_limit=ONE, expires_at="+PT1M")
        server.later(minutes=2)
        server.enqueue(args=["next"], rate_limit=ONE)

        assert numbers(server.fetch(count=9)) == ["next"]
        assert server.job(late["id"])["state"] == "discarded"

    def test_asks_as_often_for_two_jobs_as_for_a_hundred(self, server):
        options = {"rate_limit": {"max_per_second": 1000}}
        jobs = [{"type": "a", "args": [each], "options": options} for each in range(110)]
        server.post("v1/jobs/batch", {"jobs": jobs}, 201)

        def statements(count):
            with CaptureQueriesContext(connection) as found:
                assert len(server.fetch(count=count)) == count
            return len(found)

        assert statements(2) == statements(100)

    def test_writes_nothing_while_a_rate_is_used_up(self, server):
        for _ in range(2):
            server.enqueue(rate_limit=ONE)
        server.fetch()

        with CaptureQueriesContext(connection) as found:
            assert server.fetch() == []
        assert not [query["sql"] for query in found if "INSERT" in query["sql"] or "UPDATE timeline" in query["sql"]]

    def test_holds_jobs_of_workflows_and_of_both_beside_the_type(self, server):
        steps = [{"type": "a", "args": [number], "rate_limit": ONE} for number in range(2)]
        server.post("v1/workflows", {"type": "group", "jobs": steps}, 201)

        assert numbers(server.fetch(count=9)) == [0]

    def test_gives_out_what_was_enqueued_before_there_were_rates(self, server):
        for _ in range(2):
            server.enqueue(rate_limit=ONE)
        ScheduledTask.objects.update(payload={"type": "email.send", "args": [], "options": {"rate_limit": ONE}})

        assert len(server.fetch(count=9)) == 2


class TestEnqueue:
    @pytest.mark.parametrize(
        ("said", "field"),
        [
            ([], ""),
            ("1/s", ""),
            ({"max_per_second": 0}, ".max_per_second"),
            ({"max_per_second": 1001}, ".max_per_second"),
            ({"max_per_second": True}, ".max_per_second"),
            ({"max_per_second": "1"}, ".max_per_second"),
            ({"max_per_second": 1.5}, ".max_per_second"),
            ({"key": "", **ONE}, ".key"),
            ({"key": "a b", **ONE}, ".key"),
            ({"key": ".a", **ONE}, ".key"),
            ({"key": "a\n", **ONE}, ".key"),
            ({"key": "a" * 256, **ONE}, ".key"),
            ({"key": 3}, ".key"),
            ({"rate": 1}, ".rate"),
            ({"rate": {"limit": 1, "period": "PT1M"}, **ONE}, ".rate"),
            ({"rate": {"period": "PT1M"}}, ".rate.limit"),
            ({"rate": {"limit": 0, "period": "PT1M"}}, ".rate.limit"),
            ({"rate": {"limit": 1}}, ".rate.period"),
            ({"rate": {"limit": 1, "period": "minute"}}, ".rate.period"),
            ({"rate": {"limit": 1, "period": "PT0S"}}, ".rate.period"),
            ({"rate": {"limit": 1, "period": "P2D"}}, ".rate.period"),
        ],
    )
    def test_names_what_is_wrong(self, server, said, field):
        body = {"type": "a", "args": [], "options": {"rate_limit": said}}
        error = server.post("v1/jobs", body, 400)["error"]

        assert (error["code"], error["details"]["field"]) == ("invalid_request", f"options.rate_limit{field}")
        assert not ScheduledTask.objects.exists()

    @pytest.mark.parametrize("said", [None, {}, {"max_per_second": None}, {"key": "api", "concurrency": 1}])
    def test_takes_what_says_no_rate(self, server, said):
        for _ in range(2):
            assert server.enqueue(rate_limit=said)["options"]["rate_limit"] == said

        assert len(server.fetch(count=9)) == 2
        assert not RateKey.objects.exists()

    def test_tells_it_as_it_was_given(self, server):
        assert server.enqueue(rate_limit=ONE)["options"]["rate_limit"] == ONE
        assert "rate" not in server.fetch()[0]

    def test_takes_a_long_key(self, server):
        for number in range(2):
            server.enqueue(args=[number], rate_limit={"key": "a" * 254 + str(number), **ONE})

        assert numbers(server.fetch(count=9)) == [0, 1]


def test_the_manifest_says_that_there_are_rates(server):
    assert server.get("manifest")["capabilities"]["rate_limiting"] is True


@pytest.mark.django_db(transaction=True)
class TestManyWorkers:
    def test_are_given_no_more_than_the_rate_allows(self, server, live_server):
        rates = [{"key": key, "rate": {"limit": 5, "period": "P1D"}} for key in "ab"]
        jobs = [{"type": "a", "args": [], "options": {"rate_limit": rates[number % 2]}} for number in range(60)]
        ask(live_server.url, "jobs/batch", {"jobs": jobs})

        def take(name):
            taken = []
            for _ in range(6):
                wanted = {"queues": ["default"], "count": 4, "worker_id": name}
                taken += ask(live_server.url, "workers/fetch", wanted)["jobs"]
            return taken

        with ThreadPoolExecutor(6) as pool:
            taken = [job for found in pool.map(take, "abcdef") for job in found]
        taken += take("last")  # Those of whom others were quicker by one have taken less.

        keys = [job["options"]["rate_limit"]["key"] for job in taken]
        assert sorted(keys) == [*"aaaaabbbbb"]
        assert LogEntry.objects.filter(to_state="active").count() == 10

    def test_do_not_count_what_was_undone(self, server):
        for number in range(2):
            server.enqueue(args=[number], rate_limit=ONE)

        with transaction.atomic():
            assert numbers(server.fetch(count=9)) == [0]
            transaction.set_rollback(True)

        assert numbers(server.fetch(count=9)) == [0]

    def test_who_die_leave_their_start_counted(self, server):
        job = server.enqueue(rate_limit=ONE)
        server.fetch(worker_id="w")
        ScheduledTask.objects.update(lease_expires_at=MachineTime(timedelta(seconds=-1)))

        assert server.fetch() == []
        server.later(seconds=1)
        assert [(again["id"], again["attempt"]) for again in server.fetch()] == [(job["id"], 2)]

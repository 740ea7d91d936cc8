"""Jobs that are to be the only ones of their kind."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor

import pytest
from django.db import connection
from django.db.models import QuerySet
from django.test.utils import CaptureQueriesContext

from tests.ojs.outside import ask
from timeline.ids import uuid7
from timeline.models import ScheduledTask
from timeline.ojs import dead_letters
from timeline.ojs.models import UniqueKey

SAME = {"keys": ["type", "args"]}


class TestConflict:
    def test_is_refused_unless_the_job_says_otherwise(self, server):
        first = server.enqueue(args=[1], unique=SAME)["id"]

        error = server.post("v1/jobs", {"type": "email.send", "args": [1], "options": {"unique": SAME}}, 409)["error"]

        assert (error["code"], error["details"]["existing_job_id"]) == ("duplicate", first)
        server.enqueue(args=[2], unique=SAME)
        server.enqueue(args=[1])
        assert ScheduledTask.objects.count() == 3

    def test_may_give_the_job_that_is_there(self, server):
        ignore = {**SAME, "on_conflict": "ignore"}
        first = server.enqueue(unique=ignore)["id"]

        answer = server.post("v1/jobs", {"type": "email.send", "args": [], "options": {"unique": ignore}}, 200)

        assert (answer["job"]["id"], answer["deduplicated"]) == (first, True)
        assert ScheduledTask.objects.count() == 1

    def test_may_replace_it(self, server):
        first = server.enqueue(args=[1], unique={"on_conflict": "replace"})["id"]

        second = server.enqueue(args=[2], unique={"on_conflict": "replace"})

        assert (server.job(first)["state"], second["state"]) == ("cancelled", "available")
        server.enqueue(409, args=[3], unique={})

    def test_may_replace_it_and_keep_its_time(self, server):
        policy = {"on_conflict": "replace_except_schedule"}
        server.enqueue(args=[1], unique=policy, scheduled_at="+PT1H")

        second = server.enqueue(args=[2], unique=policy)

        assert (second["state"], second["scheduled_at"]) == ("scheduled", "2026-03-01T10:00:00Z")

    @pytest.mark.parametrize("on_conflict", ["reject", "ignore", "replace"])
    def test_within_a_batch_is_one_too(self, server, on_conflict):
        job = {"type": "a", "args": [], "options": {"unique": {"on_conflict": on_conflict}}}

        answer = server.post("v1/jobs/batch", {"jobs": [job, job]}, 201 if on_conflict == "ignore" else 409)

        assert ScheduledTask.objects.count() == (on_conflict == "ignore")
        if on_conflict == "ignore":
            assert answer["jobs"][0]["id"] == answer["jobs"][1]["id"]


class TestWhat:
    def test_counts_only_in_the_states_that_it_names(self, server):
        job = server.enqueue(unique=SAME)["id"]
        server.fetch()
        server.enqueue(409, unique=SAME)
        server.enqueue(unique={**SAME, "states": ["available"]})
        server.fetch()
        server.ack(job)

        server.enqueue(409, unique={**SAME, "states": ["completed", "active"]})

    def test_counts_only_for_a_time(self, server):
        policy = {**SAME, "period": "PT10S"}
        server.enqueue(unique=policy)
        server.later(seconds=9)
        server.enqueue(409, unique=policy)
        server.later(seconds=1)

        server.enqueue(unique=policy)

    def test_is_free_again_once_a_job_has_expired(self, server):
        server.enqueue(unique=SAME, expires_at="+PT1S")
        server.later(seconds=2)

        server.enqueue(unique=SAME)

    def test_may_be_some_keys(self, server):
        policy = {"keys": ["args", "meta", "queue"], "args_keys": ["user"], "meta_keys": ["tenant"]}
        server.enqueue(args=[{"user": 1, "text": "a"}], meta={"tenant": "x", "trace": 1}, unique=policy)

        server.enqueue(409, args=[{"text": "b", "user": 1}], meta={"tenant": "x", "trace": 2}, unique=policy)
        server.enqueue(args=[{"user": 2}], meta={"tenant": "x"}, unique=policy)
        server.enqueue(args=[{"user": 1}], meta={"tenant": "y"}, unique=policy)
        server.enqueue(args=[{"user": 1}], meta={"tenant": "x"}, unique=policy, queue="other")

    @pytest.mark.parametrize(
        ("policy", "field"),
        [
            (3, "options.unique"),
            ({"keys": ["id"]}, "options.unique.keys[0]"),
            ({"keys": "type"}, "options.unique.keys"),
            ({"keys": ["meta"]}, "options.unique.meta_keys"),
            ({"keys": ["args"], "args_keys": ["nothing"]}, "options.unique.args_keys[0]"),
            ({"states": ["asleep"]}, "options.unique.states[0]"),
            ({"period": "1h"}, "options.unique.period"),
            ({"on_conflict": "fight"}, "options.unique.on_conflict"),
        ],
    )
    def test_names_what_is_wrong(self, server, policy, field):
        body = {"type": "a", "args": [], "options": {"unique": policy}}

        assert server.post("v1/jobs", body, 400)["error"]["details"]["field"] == field


class TestMany:
    def test_take_as_many_statements_as_two(self, server):
        def statements(first, last):
            jobs = [{"type": "a", "args": [each], "options": {"unique": SAME}} for each in range(first, last)]
            with CaptureQueriesContext(connection) as found:
                server.post("v1/jobs/batch", {"jobs": jobs}, 201)
            return len(found)

        assert statements(0, 2) == statements(2, 80)

    @pytest.mark.django_db(transaction=True)
    def test_at_once_make_one(self, server, live_server):
        def enqueue(_number):
            try:
                ask(live_server.url, "jobs", {"type": "a", "args": [], "options": {"unique": SAME}})
            except OSError as error:
                return error.code
            return 201

        with ThreadPoolExecutor(5) as pool:
            assert sorted(pool.map(enqueue, range(5))) == [201, 409, 409, 409, 409]

        assert ScheduledTask.objects.count() == 1


class TestKeysThatArePruned:
    def test_stay_if_a_job_took_them_meanwhile(self, server, monkeypatch):
        job = server.enqueue(unique={"keys": ["type"]})
        UniqueKey.objects.update(job=uuid7())  # The job that had it is pruned.

        chosen = dead_letters.keys_without_jobs

        def choose(*, using):
            found = UniqueKey.objects.filter(pk__in=list(chosen(using=using).values_list("pk", flat=True)))
            monkeypatch.setattr(dead_letters, "keys_without_jobs", chosen)
            UniqueKey.objects.update(job=job["id"])  # By somebody who commits while the rows are found.
            return found

        monkeypatch.setattr(dead_letters, "keys_without_jobs", choose)
        dead_letters.forget_pruned(using="default")
        assert UniqueKey.objects.count() == 1

    def test_are_made_again_if_they_go_while_they_are_locked(self, server, monkeypatch):
        real, calls = QuerySet.bulk_create, []

        def made_and_gone(rows, *args, **named):
            found = real(rows, *args, **named)
            if rows.model is UniqueKey and not calls:
                calls.append(rows)
                UniqueKey.objects.all().delete()
            return found

        monkeypatch.setattr(QuerySet, "bulk_create", made_and_gone)
        server.enqueue(unique={"keys": ["type"]})
        assert UniqueKey.objects.get().job is not None

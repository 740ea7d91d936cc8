"""What Prometheus' client collects: the same from each process, and cheap however many rows there are."""

from __future__ import annotations

from datetime import timedelta

import pytest
from django.db import DatabaseError, connection
from django.test.utils import CaptureQueriesContext
from prometheus_client import CollectorRegistry
from prometheus_client.exposition import generate_latest

from timeline.lifecycle import State
from timeline.metrics import collecting
from timeline.metrics.collecting import TimelineCollector
from timeline.models import Hold, Identity, LogEntry, RollUp, Sign, Total
from timeline.store.site import sign_of_poller
from timeline.testing import StoryClock
from timeline.webhooks.models import Delivery, Endpoint

pytestmark = pytest.mark.django_db


@pytest.fixture
def values(now):
    """Collect: ``values()`` gives name and labels → value, the database's label left out."""

    def collect(**options):
        with StoryClock(now):
            found = list(TimelineCollector(**options).collect())
        return {
            (sample.name, *(value for name, value in sample.labels.items() if name != "database")): sample.value
            for family in found
            for sample in family.samples
        }

    return collect


class TestCollector:
    def test_tells_totals_as_counters(self, total, values):
        told = values()

        assert told["timeline_attempts_started_total", "care.greet"] == 9
        assert told["timeline_attempts_retried_total", "care.greet"] == 2
        assert told["timeline_handlers_reentered_total", "care.greet"] == 6
        ended = {state: told["timeline_tasks_ended_total", "care.greet", state] for state in ("completed", "discarded")}
        assert ended == {"completed": 5, "discarded": 1}
        assert told["timeline_tasks_ended_total", "care.greet", "cancelled"] == 3

    def test_tells_lengths_of_time_as_histograms(self, total, values):
        told = values()

        name = "timeline_attempt_lateness_seconds"
        assert [told[f"{name}_bucket", "care.greet", le] for le in ("0.1", "1.0", "2.0", "86400.0", "+Inf")] == [
            4,
            4,
            6,
            6,
            7,
        ]
        assert (told[f"{name}_count", "care.greet"], told[f"{name}_sum", "care.greet"]) == (7, 90007.5)
        assert told["timeline_attempt_duration_seconds_bucket", "care.greet", "+Inf"] == 5

    def test_tells_what_there_is_now(self, make_task, values, now):
        sign_of_poller(using="default")
        make_task(state=State.AVAILABLE, task_key="care.greet", scheduled_at=now - timedelta(minutes=3))
        make_task(state=State.SCHEDULED, task_key="care.call", scheduled_at=now - timedelta(minutes=1))
        make_task(state=State.SCHEDULED, task_key="care.call", scheduled_at=now + timedelta(minutes=1))
        make_task(state=State.PENDING, task_key="care.call", scheduled_at=now)
        for _ in range(2):
            make_task(state=State.ACTIVE, task_key="care.call")

        told = values()

        assert told["timeline_up",] == 1
        assert told["timeline_tasks_available", "care.greet", "slow"] == 1
        assert told["timeline_tasks_available", "care.call", "default"] == 0
        assert (told["timeline_tasks_pending",], told["timeline_tasks_active",]) == (1, 2)
        assert (told["timeline_tasks_overdue",], told["timeline_oldest_overdue_age_seconds",]) == (2, 180)
        assert told["timeline_last_poll_timestamp_seconds",] == Identity.objects.get().polled_at.timestamp()

    @pytest.mark.parametrize("scope", ["task", "entity", "everything"])
    def test_leaves_what_is_on_hold_out_of_what_is_overdue(self, make_task, values, now, scope):
        about = {"entity_label": "testapp.order", "entity_id": "7"}
        make_task(state=State.AVAILABLE, task_key="care.greet", scheduled_at=now - timedelta(minutes=3), **about)
        whats = {"task": {"target": "care.greet"}, "entity": {"names": [["testapp.order", "7"]], **about}}
        Hold.objects.create(scope=scope, reason="so", created_at=now, **whats.get(scope, {}))

        told = values()

        assert (told["timeline_tasks_overdue",], told["timeline_oldest_overdue_age_seconds",]) == (0, 0)
        assert told["timeline_holds",] == 1

    def test_tells_of_workers_without_a_label_for_each(self, values):
        sign_of_poller(using="default")
        seen = Identity.objects.get().polled_at
        Sign.objects.create(worker="here", seen_at=seen)
        Sign.objects.create(worker="gone", seen_at=seen - timedelta(minutes=5))

        told = values()

        assert (told["timeline_workers",], told["timeline_workers_missed",]) == (2, 1)
        assert told["timeline_worker_last_sign_timestamp_seconds",] == seen.timestamp()

    def test_tells_what_is_stuck(self, make_task, values, now):
        make_task(state=State.ACTIVE, task_key="care.call", lease_expires_at=now - timedelta(days=900))

        assert values()["timeline_tasks_stuck",] == 1

    def test_tells_how_far_counting_is_behind(self, make_task, values, now):
        entry = LogEntry.objects.create(task=make_task(), seq=1, at=now, from_state="", to_state="scheduled", attempt=0)
        RollUp.objects.update_or_create(pk=1, defaults={"counted": entry.pk - 1})

        assert values()["timeline_log_entries_uncounted",] == 1

    def test_tells_of_deliveries_of_webhooks(self, values, now):
        endpoint = Endpoint.objects.create(url="https://example.com", created_at=now)
        for state in ("waiting", "delivered"):
            ended = None if state == "waiting" else now
            Delivery.objects.create(
                endpoint=endpoint,
                source=f"0195cafe-0000-7000-8000-0000000000{len(state):02}",
                topic="t",
                body="{}",
                state=state,
                created_at=now,
                due_at=now,
                give_up_at=now,
                ended_at=ended,
            )

        assert values()["timeline_webhook_deliveries_waiting",] == 1

    def test_tells_of_a_database_that_does_not_answer_and_of_nothing_else(self, total, values, monkeypatch, caplog):
        def fails(**_given):
            raise DatabaseError("gone")

        monkeypatch.setattr(collecting, "measure", fails)

        assert values() == {("timeline_up",): 0}
        assert "cannot be measured" in caplog.text

    def test_costs_eight_statements_at_most_and_the_same_for_many(self, total, make_task, values, now):
        with CaptureQueriesContext(connection) as few:
            values()
        for number in range(40):
            make_task(state=State.AVAILABLE, task_key="care.greet")
            make_task(state=State.SCHEDULED, task_key="care.call", scheduled_at=now - timedelta(hours=1))
            Total.objects.create(task_key=f"care.t{number}")
            Sign.objects.create(worker=str(number), seen_at=now)

        with CaptureQueriesContext(connection) as many:
            values()

        assert len(many) == len(few) <= 8

    def test_counts_up_to_a_bound(self, make_task, values, now, monkeypatch):
        monkeypatch.setattr("timeline.reading.machinery.MAX_COUNTED", 2)
        for _ in range(3):
            make_task(state=State.AVAILABLE, task_key="care.greet", scheduled_at=now - timedelta(hours=1))
            make_task(state=State.ACTIVE, task_key="care.greet")

        told = values()

        assert told["timeline_tasks_available", "care.greet", "slow"] == 2
        assert (told["timeline_tasks_active",], told["timeline_tasks_overdue",]) == (2, 2)

    def test_gives_no_more_names_than_a_bound_and_keeps_those_it_gave(self, total, values, monkeypatch):
        """A kind that is counted later never takes the name of one before, so that no counter falls."""
        monkeypatch.setattr(collecting, "MOST_TASKS", 2)
        for key, started in (("care.a", 1), ("care.b", 2), ("care.c", 4)):
            sums = {"late_seconds": started, "reentered": started}
            Total.objects.create(task_key=key, started=started, lateness=[started], **sums)

        told = values()

        named = {key[1]: value for key, value in told.items() if key[0] == "timeline_attempts_started_total"}
        assert named == {"care.greet": 9, "care.a": 1, collecting.OTHERS: 6}
        assert told["timeline_attempt_lateness_seconds_sum", collecting.OTHERS] == 6
        assert told["timeline_handlers_reentered_total", collecting.OTHERS] == 6

    def test_names_metrics_without_asking_a_database(self, total):
        """A collector is registered while a process starts."""
        collector = TimelineCollector()

        with CaptureQueriesContext(connection) as asked:
            CollectorRegistry(auto_describe=True).register(collector)

        assert not asked
        assert [each.name for each in collector.describe()] == [each.name for each in collector.collect()]

    def test_is_asked_of_the_databases_that_it_is_given(self, total, values):
        assert values(using=[]) == {}

    def test_tells_the_same_in_another_process(self, total, now):
        registries = [CollectorRegistry(), CollectorRegistry()]
        for registry in registries:
            registry.register(TimelineCollector())

        with StoryClock(now):
            first, second = (generate_latest(registry) for registry in registries)

        assert first == second

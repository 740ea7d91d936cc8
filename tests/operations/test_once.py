"""Once: one run ever for an entity and key, however it is asked for; and keys from the payload of events."""

from datetime import timedelta

import pytest
from django.db import connection
from django.test.utils import CaptureQueriesContext

from tests.testapp.models import Order
from timeline import Timeline, after, created, task
from timeline.exceptions import DefinitionError, InvalidInput
from timeline.features.maintenance.prune import prune
from timeline.lifecycle import RunEnd
from timeline.models import EntityRef, Event, ScheduledTask, TimelineRun
from timeline.operations.enroll import enroll
from timeline.operations.sets import Portion
from timeline.operations.start import start, start_many
from timeline.runs import end
from timeline.testing import only_timelines


class Invoicing(Timeline):
    entity = "testapp.Order"
    starts_on = "payment.completed"
    exits = {"payment.refunded": "refunded"}
    once = True

    @task(after(days=1))
    def invoice(self, order):
        return None


class Chasing(Timeline):
    entity = "testapp.Order"
    starts_on = "payment.failed"
    once = True
    key = ("payment", "attempt")

    @task(after(days=1))
    def chase(self, order):
        return None


@pytest.fixture(autouse=True)
def _only_these(db):
    with only_timelines(Invoicing, Chasing):
        yield


def begin(order, now, key=""):
    return start(timeline="invoicing", entity=order, key=key, params={}, started_at=None, now=now, using="default")


class TestOnce:
    def test_begins_no_second_run_after_the_first_has_ended(self, emit_at, order, now, later):
        emit_at("payment.completed", order, now, key="a")
        emit_at("payment.refunded", order, now, key="b")

        again = emit_at("payment.completed", order, later, key="c")

        assert again.recorded
        assert not again.started
        assert TimelineRun.objects.get().once
        assert ScheduledTask.objects.count() == 1

    def test_says_by_hand_which_run_has_its_place(self, emit_at, order, now, later):
        [first] = emit_at("payment.completed", order, now, key="a").started
        emit_at("payment.refunded", order, now, key="b")

        started = begin(order, later)

        assert (started.run, started.created) == (first, False)

    def test_counts_a_run_that_began_before_its_timeline_said_so(self, order, now, later):
        run = TimelineRun.objects.create(
            timeline="invoicing", entity_label="testapp.order", entity_id=str(order.pk), started_at=now
        )
        end([run], RunEnd.FINISHED, now=now, using="default")

        assert not begin(order, later).created

    def test_takes_another_key_and_another_entity(self, order, now):
        assert begin(order, now).created
        assert begin(order, now, key="other").created
        assert begin(Order.objects.create(), now).created

    def test_passes_those_over_who_are_enrolled_a_second_time(self, emit_at, order, now, later):
        emit_at("payment.completed", order, now, key="a")
        emit_at("payment.refunded", order, now, key="b")
        ref = TimelineRun.objects.get().entity_ref
        batches = [Portion("default", [ref])]

        done = enroll(
            timeline="invoicing",
            batches=batches,
            key="",
            params={},
            started_at=None,
            once=False,
            clock=lambda _using: later,
        )

        assert (done.started, done.again) == (0, 1)

    def test_holds_for_hundreds_at_once(self, emit_at, order, now, later):
        emit_at("payment.completed", order, now, key="a")
        emit_at("payment.refunded", order, now, key="b")
        Order.objects.bulk_create(Order() for _ in range(449))
        batches = [
            Portion(
                "default", [EntityRef("testapp.order", str(pk)) for pk in Order.objects.values_list("pk", flat=True)]
            )
        ]

        def begin_all():
            given = {"key": "", "params": {}, "started_at": None, "clock": lambda _using: later}
            done = start_many(timeline="invoicing", batches=batches, **given)
            return done.started, done.again

        assert begin_all() == (449, 1)
        assert begin_all() == (0, 450)

    def test_outlives_what_is_pruned(self, emit_at, order, now, later):
        emit_at("payment.completed", order, now, key="a")
        emit_at("payment.refunded", order, now, key="b")

        pruned = prune(ended_before=later, using="default")

        assert (pruned.runs, pruned.tasks) == (0, 1)
        assert not begin(order, later + timedelta(days=400)).created
        assert not any(prune(ended_before=later, using="default"))

    def test_costs_no_statement_where_it_is_not_declared(self, order, now):
        class Often(Timeline):
            entity = "testapp.Order"

            @task(after(days=1))
            def pack(self, order):
                return None

        def count(timeline):
            with CaptureQueriesContext(connection) as caught:
                start(timeline=timeline, entity=order, key="", params={}, started_at=None, now=now, using="default")
            return len(caught)

        with only_timelines(Often, Invoicing):
            assert count("often") == count("invoicing") - 1


class TestKey:
    def test_comes_from_the_payload(self, emit_at, order, now):
        for attempt in (1, 2, 2):
            emit_at("payment.failed", order, now, payload={"payment": 42, "attempt": attempt})

        assert sorted(TimelineRun.objects.values_list("key", flat=True)) == ["42:1", "42:2"]

    def test_tells_values_apart_that_hold_the_separator(self, emit_at, order, now):
        emit_at("payment.failed", order, now, payload={"payment": "a:b", "attempt": "c"})
        emit_at("payment.failed", order, now, payload={"payment": "a", "attempt": "b:c"})

        assert TimelineRun.objects.count() == 2

    @pytest.mark.parametrize(
        "payload",
        [
            {"payment": 42},
            {"payment": 42, "attempt": None},
            {"payment": 42, "attempt": True},
            {"payment": 42, "attempt": 1.5},
            {"payment": "", "attempt": 1},
            {"payment": "x" * 100, "attempt": 1},
        ],
    )
    def test_refuses_an_event_without_it_and_records_nothing(self, emit_at, order, now, payload):
        with pytest.raises(InvalidInput, match="chasing"):
            emit_at("payment.failed", order, now, payload=payload)

        assert not Event.objects.exists()
        assert not TimelineRun.objects.exists()


class TestDeclaring:
    @pytest.mark.parametrize(
        ("options", "said"),
        [
            ({"once": "yes"}, "has once = 'yes'"),
            ({"key": ["payment"], "starts_on": "a"}, r"has key = \['payment'\]"),
            ({"key": ("a", "a"), "starts_on": "a"}, "with a field twice"),
            ({"key": "payment"}, "no event starts it"),
            ({"key": "payment", "starts_on": created(), "entity": "testapp.Order"}, "has no payload"),
        ],
    )
    def test_refuses_what_cannot_be(self, options, said):
        takes = (lambda self, order: None) if "entity" in options else (lambda self: None)
        takes.__name__ = "pack"

        with pytest.raises(DefinitionError, match=said):
            type("Wrong", (Timeline,), {**options, "pack": task(after(days=1))(takes)})

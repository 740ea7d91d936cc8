"""Spans of what is emitted and run: one trace, or linked."""

from __future__ import annotations

import logging
from datetime import UTC, datetime, timedelta

import pytest
from django.db import connection, transaction
from django.test.utils import CaptureQueriesContext
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.sampling import ALWAYS_OFF, ParentBased

from tests.otel.tales import Tale, Trouble
from tests.testapp.models import Effect, Order
from timeline.engine.groups import run
from timeline.models import Event, ScheduledTask
from timeline.otel import contexts, tracers
from timeline.otel.contexts import forget, forget_in_pauses
from timeline.otel.logs import TaskIds
from timeline.otel.models import TraceContext
from timeline.shortcuts import emit, emit_many, redrive, schedule, start
from timeline.testing import StoryClock, only_timelines


@pytest.fixture
def clock(db, now):
    with only_timelines(Tale, Trouble), StoryClock(now) as clock:
        yield clock


def long_ago(**ago):
    TraceContext.objects.update(at=datetime.now(UTC) - timedelta(**ago))


class TestATale:
    """An event, a handler with steps, and what follows: one trace."""

    def test_is_one_trace(self, clock, order, spans):
        emit("tale.begun", order)
        clock.advance(seconds=1)

        begun, paid = spans.one("emit tale.begun"), spans.one("emit tale.paid")
        pay, handler = spans.one("run tale.pay"), spans.one("handler tale.pay")
        assert {span["trace"] for span in spans.all() if span["name"] != "poll"} == {begun["trace"]}
        assert pay["parent"] == begun["id"]
        assert handler["parent"] == pay["id"]
        assert paid["parent"] == handler["id"]
        assert [spans.one(f"step {name}")["parent"] for name in ("charge", "receipt")] == [handler["id"]] * 2
        assert spans.one("run tale.thank")["parent"] == begun["id"]
        assert begun["start"] < pay["start"] <= handler["start"] < handler["end"] <= pay["end"]

    def test_goes_on_the_trace_of_a_request(self, clock, order, spans):
        with spans.tracer.start_as_current_span("GET /"):
            emit("tale.begun", order)
        clock.advance(seconds=1)

        assert spans.one("emit tale.begun")["parent"] == spans.one("GET /")["id"]
        assert spans.one("run tale.pay")["trace"] == spans.one("GET /")["trace"]

    def test_has_attributes_by_the_conventions(self, clock, order, spans):
        emit("tale.begun", order)
        clock.advance(seconds=1)

        row = ScheduledTask.objects.get(task_key="tale.pay")
        begun, pay = spans.one("emit tale.begun"), spans.one("run tale.pay")
        assert (begun["kind"], pay["kind"]) == ("PRODUCER", "CONSUMER")
        assert begun["attributes"] == {
            "messaging.system": "timeline",
            "messaging.operation.name": "emit",
            "messaging.operation.type": "send",
            "messaging.destination.name": "tale.begun",
            "messaging.message.id": str(row.cause_id),
        }
        assert pay["attributes"] == {
            "messaging.system": "timeline",
            "messaging.operation.name": "run",
            "messaging.operation.type": "process",
            "messaging.destination.name": "tale.pay",
            "messaging.message.id": str(row.pk),
            "messaging.message.conversation_id": str(row.run_id),
            "messaging.client.id": row.worker,
            "timeline.attempt": 1,
            "timeline.queue": "default",
            "timeline.entity.label": "testapp.order",
            "timeline.entity.id": str(order.pk),
            "timeline.outcome": "completed",
        }
        assert spans.one("handler tale.pay")["attributes"] == {"code.function.name": "tests.otel.tales.Tale.pay"}

    def test_says_nothing_of_payloads_results_and_texts_of_errors(self, clock, order, spans):
        emit("tale.begun", order, payload={"card": "4111"})
        schedule("trouble.fail", order, at=clock.now, payload={"card": "4111"})
        with clock.failing():
            clock.advance(seconds=1)

        assert len(spans.all()) > 5
        assert "4111" not in repr(spans.all())


class TestAWait:
    def test_that_was_long_is_a_link_and_not_a_parent(self, clock, order, spans):
        emit("tale.begun", order)
        long_ago(minutes=6)
        clock.advance(seconds=1)

        begun, pay = spans.one("emit tale.begun"), spans.one("run tale.pay")
        assert (pay["parent"], pay["links"]) == (None, [begun["id"]])
        assert pay["trace"] != begun["trace"]
        assert spans.one("step charge")["trace"] == pay["trace"]

    def test_is_as_long_as_the_setting_says(self, clock, order, spans, settings):
        settings.TIMELINE_OTEL = {"LINK_AFTER": timedelta(days=1)}
        emit("tale.begun", order)
        long_ago(hours=23)
        clock.advance(seconds=1)

        assert spans.one("run tale.pay")["parent"] == spans.one("emit tale.begun")["id"]


class TestRows:
    """Whatever a row came from, its attempt goes on with that trace."""

    def test_of_a_task_that_was_scheduled(self, clock, order, spans):
        with spans.tracer.start_as_current_span("GET /"):
            schedule("trouble.shared", order, at=clock.now)
        clock.advance(seconds=1)

        assert spans.one("run trouble.shared")["parent"] == spans.one("GET /")["id"]

    def test_of_a_run_that_was_started(self, clock, order, spans):
        with spans.tracer.start_as_current_span("GET /"):
            start("tale", order)
        clock.advance(seconds=1)

        assert {spans.one(f"run tale.{name}")["parent"] for name in ("pay", "thank")} == {spans.one("GET /")["id"]}

    def test_of_a_retry_and_of_a_redrive(self, clock, order, spans):
        with spans.tracer.start_as_current_span("GET /"):
            row = schedule("trouble.fail", order, at=clock.now).task
        with clock.failing():
            clock.advance(days=30)
            row.refresh_from_db()
            redrive([row.pk], reason="mended")
            clock.advance(seconds=1)

        attempts = spans.named("run trouble.fail")
        assert [span["attributes"]["timeline.attempt"] for span in attempts] == [1, 2, 3, 4, 5, 1]
        assert {span["parent"] for span in attempts} == {spans.one("GET /")["id"]}

    def test_of_many_events(self, clock, spans):
        orders = [Order.objects.create() for _ in range(3)]
        emit_many("tale.begun", Order.objects.all())
        clock.advance(seconds=1)

        assert {span["parent"] for span in spans.named("run tale.pay")} == {spans.one("emit tale.begun")["id"]}
        assert len(spans.named("run tale.pay")) == len(orders)

    def test_that_came_of_no_trace_begin_one(self, clock, order, spans):
        schedule("trouble.shared", order, at=clock.now)
        clock.advance(seconds=1)

        run = spans.one("run trouble.shared")
        assert (run["parent"], run["links"]) == (None, [])


class TestWaysToRun:
    @pytest.mark.parametrize("name", ["shared", "wait", "together"])
    def test_have_the_same_spans(self, name, clock, spans):
        with spans.tracer.start_as_current_span("GET /"):
            for _ in range(3):
                schedule(f"trouble.{name}", Order.objects.create(), at=clock.now)
        clock.advance(seconds=1)

        runs, handlers = spans.named(f"run trouble.{name}"), spans.named(f"handler trouble.{name}")
        assert [run["parent"] for run in runs] == [spans.one("GET /")["id"]] * 3
        below = [span for handler in handlers for span in (handler["parent"], *handler["links"])]
        assert sorted(below) == sorted(run["id"] for run in runs)


class TestATraceThatIsNotSampled:
    def test_has_no_span_but_leads_on(self, clock, order, spans, monkeypatch):
        """What follows does not begin a trace of its own: its parent says that it is not to be told."""
        unsampled = TracerProvider(sampler=ParentBased(ALWAYS_OFF))
        monkeypatch.setattr(tracers, "_tracer", unsampled.get_tracer("timeline"))
        emit("tale.begun", order)
        monkeypatch.setattr(tracers, "_tracer", spans.provider.get_tracer("timeline"))
        clock.advance(seconds=1)

        assert Event.objects.count() == TraceContext.objects.count() == 2
        assert {int(row.traceparent[-2:], 16) & 1 for row in TraceContext.objects.all()} == {0}
        assert len({row.traceparent[:35] for row in TraceContext.objects.all()}) == 1
        assert [span["name"] for span in spans.all() if span["name"] != "poll"] == []


class TestAnError:
    def test_is_the_status_and_what_was_written_is_no_row(self, clock, order, spans):
        schedule("trouble.fail", order, at=clock.now)
        with clock.failing():
            clock.advance(seconds=1)

        run, handler = spans.one("run trouble.fail"), spans.one("handler trouble.fail")
        assert (run["status"], handler["status"]) == ("ERROR", "ERROR")
        assert run["attributes"]["error.type"] == "ValueError"
        assert run["attributes"]["timeline.outcome"] == "failed"
        assert Effect.objects.count() == Event.objects.count() == TraceContext.objects.count() == 0

    def test_of_an_emit_is_its_status(self, clock, order, spans):
        emit("tale.begun", order, key="one", payload={"a": 1})
        with pytest.raises(Exception, match="key"):
            emit("tale.begun", order, key="one", payload={"a": 2})

        assert [span["status"] for span in spans.named("emit tale.begun")] == ["UNSET", "ERROR"]
        assert TraceContext.objects.count() == 1

    def test_that_undoes_the_transaction_of_an_emit_leaves_no_row(self, clock, order, spans):
        with pytest.raises(ZeroDivisionError), transaction.atomic():  # noqa: PT012 (after the event)
            emit("tale.begun", order)
            raise ZeroDivisionError

        assert TraceContext.objects.count() == ScheduledTask.objects.count() == 0

    def test_is_not_what_a_handler_raises_to_end_otherwise(self, clock, order, spans):
        schedule("trouble.cancel", order, at=clock.now)
        clock.advance(seconds=1)

        run = spans.one("run trouble.cancel")
        assert (run["status"], run["attributes"]["timeline.outcome"]) == ("UNSET", "cancelled")


class TestRecords:
    def test_of_a_log_have_the_ids_of_the_task(self, clock, order, spans, caplog):
        caplog.handler.addFilter(TaskIds())
        emit("tale.begun", order)
        with caplog.at_level(logging.WARNING, "tests.otel"):
            clock.advance(seconds=1)
        logging.getLogger("tests.otel").warning("outside")

        row, handler = ScheduledTask.objects.get(task_key="tale.pay"), spans.one("handler tale.pay")
        inside, outside = [record for record in caplog.records if record.name == "tests.otel"]
        assert (inside.task_id, inside.task_key, inside.run_id) == (str(row.pk), "tale.pay", str(row.run_id))
        assert (inside.attempt, int(inside.trace_id, 16), int(inside.span_id, 16)) == (
            1,
            handler["trace"],
            handler["id"],
        )
        assert (outside.task_id, outside.attempt, outside.trace_id) == ("", "", "")

    def test_have_them_without_a_tracer_too(self, clock, order, caplog):
        caplog.handler.addFilter(TaskIds())
        emit("tale.begun", order)
        clock.advance(seconds=1)

        [inside] = [record for record in caplog.records if record.name == "tests.otel"]
        assert (inside.task_key, inside.attempt, inside.trace_id) == ("tale.pay", 1, "")


class TestStatements:
    """What it costs: one more for an event, and for a group of attempts; none where nobody traces."""

    def counted(self, act):
        with CaptureQueriesContext(
            connection,
        ) as captured:
            act()
        return sum("timeline_otel" in query["sql"] for query in captured)

    def test_are_none_without_a_tracer(self, clock, order):
        assert self.counted(lambda: emit("tale.begun", order)) == 0
        assert self.counted(lambda: schedule("trouble.shared", order, at=clock.now)) == 0
        assert self.counted(lambda: clock.advance(seconds=1)) == 0

    def test_are_none_for_a_span_that_leads_nowhere(self, clock, order, spans):
        assert self.counted(lambda: schedule("trouble.shared", order, at=clock.now)) == 0

    def test_are_one_for_an_event(self, clock, order, spans):
        assert self.counted(lambda: emit("tale.begun", order)) == 1

    @pytest.mark.only_postgresql
    @pytest.mark.django_db(transaction=True)
    @pytest.mark.parametrize("many", [2, 10])
    def test_are_one_for_a_group_of_attempts(self, many, clock, spans):
        ids = [schedule("trouble.together", Order.objects.create(), at=clock.now).task.pk for _ in range(many)]

        assert self.counted(lambda: run(task_ids=ids, clock=lambda: clock.now, using="default")) == 1
        assert len(spans.named("run trouble.together")) == many


class TestForget:
    def test_deletes_what_is_older_than_the_setting(self, clock, order, spans, settings):
        settings.TIMELINE_OTEL = {"KEEP": timedelta(days=10)}
        emit("tale.begun", order)
        long_ago(days=11)
        emit("tale.paid", order)

        forget("default")

        assert TraceContext.objects.count() == 1

    def test_is_done_in_the_pauses_of_whoever_polls_but_not_in_each(self, clock, order, spans, monkeypatch):
        emit("tale.begun", order)
        long_ago(days=91)
        monkeypatch.setattr(contexts, "_next", {})

        assert forget_in_pauses(lambda: clock.now, "default") is False
        assert TraceContext.objects.count() == 1
        contexts._next["default"] = 0.0
        assert forget_in_pauses(lambda: clock.now, "default") is False
        assert TraceContext.objects.count() == 0

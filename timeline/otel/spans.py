"""
The spans. Their names and attributes are those of OpenTelemetry's conventions for messaging where these have one, and
``timeline.*`` otherwise. None has the text of an exception, a payload, a result or the path of a URL: these may hold secrets.
"""

from __future__ import annotations

import logging
from collections.abc import Collection, Mapping, Sequence
from contextvars import Token
from datetime import UTC, datetime
from functools import lru_cache
from time import time_ns
from typing import TYPE_CHECKING, Any, Final, Self
from urllib.parse import urlsplit
from uuid import UUID

from opentelemetry import context, trace
from opentelemetry.context import Context
from opentelemetry.trace import Link, Span, SpanKind, Status, StatusCode, Tracer

from timeline.exceptions import Cancel, Rest, RetryAfter
from timeline.otel import logs
from timeline.otel.contexts import items_of, keep, leading, nearest, origins, origins_of_sources
from timeline.otel.tracers import tracer

if TYPE_CHECKING:
    from timeline.engine.attempts import Attempt
    from timeline.webhooks.models import Delivery
    from timeline.webhooks.post import PostOutcome

logger = logging.getLogger("timeline")

SYSTEM: Final = "timeline"
FAILED: Final = "failed"
_STATUS: Final = Status(StatusCode.ERROR)
# What a handler raises to choose an ending that is no error.
_MEANT: Final[Mapping[type[BaseException], str]] = {Cancel: "cancelled", Rest: "waiting", RetryAfter: "retryable"}


def outcome_of(error: BaseException | None) -> str:
    """What comes of a call that has raised this; None: it has not."""
    if error is None:
        return "completed"
    return next((outcome for kind, outcome in _MEANT.items() if isinstance(error, kind)), FAILED)


def mark(span: Span, error: BaseException | None) -> None:
    """Give a span the kind of an error, without its text."""
    if error is not None and outcome_of(error) == FAILED:
        kind = type(error)
        named = kind.__qualname__ if kind.__module__ == "builtins" else f"{kind.__module__}.{kind.__qualname__}"
        span.set_attribute("error.type", named)
        span.set_status(_STATUS)


def begin(known: Tracer, *args: Any, **options: Any) -> Span:
    """Begin a span. If a sampler or a processor of the host's raises, there is none; what is traced goes on."""
    try:
        return known.start_span(*args, **options)
    except Exception:
        logger.warning("A span could not begin.", exc_info=True)
        return trace.INVALID_SPAN


def finish(span: Span, at: int | None = None) -> None:
    """End a span, in the same way."""
    try:
        span.end(at)
    except Exception:
        logger.warning("A span could not be ended.", exc_info=True)


class Within:
    """A span that is the present one within a block, and ends with it."""

    __slots__ = ("_span", "_token")

    def __init__(self, span: Span) -> None:
        self._span = span

    def __enter__(self) -> Self:
        """Begin."""
        self._token = context.attach(trace.set_span_in_context(self._span))
        return self

    def __exit__(self, kind: object, error: BaseException | None, traceback: object) -> None:
        """End."""
        context.detach(self._token)
        mark(self._span, error)
        finish(self._span)


class _Nothing:
    """Nobody traces."""

    def __enter__(self) -> None:
        """Begin nothing."""

    def __exit__(self, *_raised: object) -> None:
        """End nothing."""


_NOTHING: Final = _Nothing()


def of_emit(name: str) -> Within | _Nothing:
    """``emit user.created``: an event is written, with what it starts and ends."""
    if (known := tracer()) is None:
        return _NOTHING
    attributes = {
        "messaging.system": SYSTEM,
        "messaging.operation.name": "emit",
        "messaging.operation.type": "send",
        "messaging.destination.name": name,
    }
    return Within(begin(known, f"emit {name}", kind=SpanKind.PRODUCER, attributes=attributes))


def of_step(name: str) -> Within | _Nothing:
    """``step charge``, below its handler."""
    if (known := tracer()) is None:
        return _NOTHING
    return Within(begin(known, f"step {name}", attributes={"timeline.step": name}))


def recorded(items: Sequence[UUID], *, using: str) -> None:
    """Keep the present span with what was written; of one event, its own span has the id."""
    if tracer() is None:
        return
    keep(items, using=using)
    span = trace.get_current_span()
    if len(items) == 1 and span.is_recording() and getattr(span, "kind", None) == SpanKind.PRODUCER:
        span.set_attribute("messaging.message.id", str(items[0]))


def polled(seconds: float, did: Mapping[str, int]) -> None:
    """``poll``: what a poll found and sent. A poll that finds nothing has no span."""
    if (known := tracer()) is None:
        return
    end = time_ns()
    attributes: dict[str, Any] = {
        "messaging.system": SYSTEM,
        **{f"timeline.poll.{name}": count for name, count in did.items()},
    }
    span = begin(known, "poll", Context(), attributes=attributes, start_time=end - int(seconds * 1e9))
    finish(span, end)


class Trace:
    """What is kept about an attempt: where its span goes, when it began, the span once its handler is entered, and its end."""

    __slots__ = ("begun", "context", "ended", "error", "links", "span")

    def __init__(self, begun: int, where: Context, links: tuple[Link, ...]) -> None:
        self.begun, self.context, self.links = begun, where, links
        self.span: Span | None = None
        self.ended: int | None = None
        self.error: BaseException | None = None

    def enter(self, attempt: Attempt, known: Tracer) -> Span:
        """Its span, begun when it passed the last look. If a shared transaction was undone, it is entered again."""
        self.error = None
        if self.span is None:
            named, first = _of_kind(attempt.task.task_key)
            self.span = begin(known, named, self.context, SpanKind.CONSUMER, first, self.links, start_time=self.begun)
            if self.span.is_recording():
                self.span.set_attributes(_of_attempt(attempt))
        return self.span

    def end(self) -> None:
        """End it, as its handler has ended, or its transaction."""
        if (span := self.span) is not None:
            if span.is_recording():
                span.set_attribute("timeline.outcome", outcome_of(self.error))
                mark(span, self.error)
            finish(span, self.ended)
            self.span = None


def look_on(attempts: Sequence[Attempt], *, now: datetime, using: str) -> dict[UUID, Any]:
    """Find the traces that attempts go on with, by one statement for all; none of them is refused."""
    if tracer() is None:
        return {}
    asked = {attempt.task.id: items_of(attempt.task, attempt.idempotency_key) for attempt in attempts}
    found = origins({item for items in asked.values() for item in items}, using=using)
    begun, now = time_ns(), datetime.now(UTC)
    for attempt in attempts:
        if attempt.trace is None:
            attempt.trace = Trace(begun, *leading(nearest(asked[attempt.task.id], found), now))
    return {}


class Call:
    """
    The call of a handler: the span of its attempt, and below it that of the handler. Where it is called for many, each attempt
    has a span, and that of the handler is below the first and linked to the others.
    """

    __slots__ = ("_attempts", "_bound", "_handler", "_token")

    def __init__(self, attempts: Sequence[Attempt]) -> None:
        self._attempts = attempts
        self._handler: Span | None = None
        self._token: Token[Context] | None = None

    def __enter__(self) -> None:
        """Begin."""
        attempts = self._attempts
        self._bound = logs.bind(attempts[0])
        if attempts[0].trace is None or (known := tracer()) is None:
            return
        spans = [attempt.trace.enter(attempt, known) for attempt in attempts if attempt.trace is not None]
        if not (sampled := [span for span in spans if span.is_recording()]):  # Below it, nothing would be sampled.
            self._token = context.attach(trace.set_span_in_context(spans[0]))
            return
        first, *others = sampled
        self._handler = begin(
            known,
            _handler_of(attempts[0].task.task_key),
            trace.set_span_in_context(first),
            attributes=_of_handler(attempts[0]),
            links=[Link(span.get_span_context()) for span in others],
        )
        self._token = context.attach(trace.set_span_in_context(self._handler))

    def __exit__(self, kind: object, error: BaseException | None, traceback: object) -> None:
        """End the handler's; those of the attempts end when they are left."""
        logs.unbind(self._bound)
        if self._token is None:
            return
        context.detach(self._token)
        ended = time_ns()
        if self._handler is not None:
            mark(self._handler, error)
            finish(self._handler, ended)
        for attempt in self._attempts:
            if attempt.trace is not None:
                attempt.trace.ended, attempt.trace.error = ended, error


def undone(attempts: Sequence[Attempt], error: BaseException) -> None:
    """Their transaction is undone: the error is theirs, unless they are entered again."""
    for attempt in attempts:
        if attempt.trace is not None:
            attempt.trace.error, attempt.trace.ended = error, time_ns()


def left(attempts: Sequence[Attempt]) -> None:
    """A worker has done with them: their spans end."""
    for attempt in attempts:
        if attempt.trace is not None:
            attempt.trace.end()


def posted(outcomes: Collection[tuple[Delivery, PostOutcome]], *, using: str) -> None:
    """``POST``: a webhook, in the trace from which what it tells of followed. Of its URL, only the host is told."""
    if (known := tracer()) is None:
        return
    found = origins_of_sources({delivery.source for delivery, _answer in outcomes}, using=using)
    now = datetime.now(UTC)
    for delivery, answer in outcomes:
        where, links = leading(found.get(delivery.source), now)
        attributes: dict[str, Any] = {
            "http.request.method": "POST",
            "server.address": urlsplit(delivery.endpoint.url).hostname or "",
            "messaging.message.id": delivery.message_id,
            "timeline.webhook.topic": delivery.topic,
            "timeline.webhook.attempt": delivery.attempts + 1,
        }
        if answer.status is not None:
            attributes["http.response.status_code"] = answer.status
        begun = int(answer.at.timestamp() * 1e9)
        span = begin(known, "POST", where, SpanKind.CLIENT, attributes, links, start_time=begun)
        if not answer.is_delivered:
            span.set_attribute("error.type", str(answer.status or "no_answer"))
            span.set_status(_STATUS)
        finish(span, begun + answer.duration_ms * 1_000_000)


@lru_cache(maxsize=1024)
def _of_kind(task_key: str) -> tuple[str, dict[str, str]]:
    """The name of an attempt's span, and what a sampler may ask."""
    return f"run {task_key}", {
        "messaging.system": SYSTEM,
        "messaging.operation.name": "run",
        "messaging.operation.type": "process",
        "messaging.destination.name": task_key,
    }


def _of_attempt(attempt: Attempt) -> dict[str, Any]:
    task = attempt.task
    attributes: dict[str, Any] = {
        "messaging.message.id": str(task.id),
        "messaging.client.id": task.worker,
        "timeline.attempt": task.attempt,
        "timeline.queue": task.queue,
    }
    if task.run_id is not None:
        attributes["messaging.message.conversation_id"] = str(task.run_id)
    if task.entity_label:
        attributes |= {"timeline.entity.label": task.entity_label, "timeline.entity.id": task.entity_id}
    return attributes


@lru_cache(maxsize=1024)
def _handler_of(task_key: str) -> str:
    return f"handler {task_key}"


def _of_handler(attempt: Attempt) -> dict[str, str]:
    cls = attempt.definition.cls
    return {"code.function.name": f"{cls.__module__}.{cls.__qualname__}.{attempt.declared.method_name}"}

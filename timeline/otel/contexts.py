"""Keep contexts of traces with what was written in them, and find them again for attempts and webhooks."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping
from datetime import UTC, datetime
from functools import cache
from time import monotonic
from typing import Final, NamedTuple
from uuid import UUID

from django.db import router
from opentelemetry import trace
from opentelemetry.context import Context
from opentelemetry.trace import Link, NonRecordingSpan, SpanContext, TraceFlags

from timeline.dialects import Among
from timeline.models import RunEntry, ScheduledTask
from timeline.models.task_records import origins_of
from timeline.otel.conf import get_settings
from timeline.otel.models import TraceContext
from timeline.otel.tracers import tracer
from timeline.store.insert import Insertion

FORGOTTEN: Final = 1000  # Rows that are deleted at a time,
FORGOTTEN_AT_ONCE: Final = 100  # and so many times in one call of ``timeline.maintain``.
FORGET_EVERY: Final = 600.0  # Seconds until a process that polls looks again for old ones.

_next: dict[str, float] = {}


class Origin(NamedTuple):
    """The span in which something was written, and when."""

    span: SpanContext
    at: datetime


def leading(origin: Origin | None, now: datetime) -> tuple[Context, tuple[Link, ...]]:
    """Where a span goes: below its origin; if the wait was long, into a new trace with a link to that; None: a new trace."""
    if origin is None:
        return Context(), ()
    if now - origin.at > get_settings().LINK_AFTER:
        return Context(), (Link(origin.span),)
    return trace.set_span_in_context(NonRecordingSpan(origin.span), Context()), ()


def keep(items: Collection[UUID], *, using: str) -> None:
    """Keep the present span with what was written in it, in the same transaction. No statement if there is no span."""
    if not items or tracer() is None:
        return
    span = trace.get_current_span().get_span_context()
    if not span.is_valid or not has_table(using):
        return
    parent, now = _written(span), datetime.now(UTC)
    columns: dict[str, list[object]] = {
        "item": list(items),
        "traceparent": [parent] * len(items),
        "at": [now] * len(items),
    }
    Insertion(TraceContext, columns, using=using).send().inserted()  # A task may be made ready for two tries.


def origins(items: Iterable[UUID], *, using: str) -> dict[UUID, Origin]:
    """What was written in a trace → in which span. One statement, whatever their number."""
    rows = TraceContext.objects.using(using).filter(Among(items))
    return {item: Origin(_read(parent), at) for item, parent, at in rows.values_list("item", "traceparent", "at")}


def items_of(task: ScheduledTask, key: UUID) -> tuple[UUID, ...]:
    """What may have a context from which a task follows, first what is nearest; ``key``: its idempotency key."""
    own = key if task.run_id is None else task.run_id
    return (own,) if task.cause_id is None else (task.cause_id,) if task.run_id is not None else (own, task.cause_id)


def nearest(items: Iterable[UUID], found: Mapping[UUID, Origin]) -> Origin | None:
    """The first of these that has a context."""
    return next((found[item] for item in items if item in found), None)


def origins_of_sources(sources: Collection[UUID], *, using: str) -> dict[UUID, Origin]:
    """The same for tasks that have ended, and for entries of machines: what webhooks tell of."""
    columns = ("run_id", "cause_id")
    tasks = ScheduledTask.objects.using(using).filter(Among(sources)).only(*columns, "previous_id")
    several = list(tasks)
    previous = {task.pk: task.previous_id for task in several if task.run_id is None and task.previous_id is not None}
    keys = origins_of(previous, using=using) if previous else {}
    items = {task.pk: items_of(task, keys.get(task.pk, task.pk)) for task in several}
    entries = (
        RunEntry.objects.using(using).filter(Among(set(sources) - items.keys())) if len(items) < len(sources) else ()
    )
    items |= {entry.pk: (entry.cause_id or entry.run_id,) for entry in entries}
    found = origins({item for some in items.values() for item in some}, using=using)
    return {source: origin for source, some in items.items() if (origin := nearest(some, found)) is not None}


def forget(using: str) -> None:
    """Delete contexts that are so old that no backend has their traces any more: by ``timeline.maintain``."""
    for _ in range(FORGOTTEN_AT_ONCE):
        if not forget_some(using):
            return


def forget_in_pauses(_clock: Callable[[], datetime], using: str) -> bool:
    """The same from time to time, in a process that polls; whether there is more to delete."""
    if monotonic() < _next.setdefault(using, monotonic() + FORGET_EVERY):
        return False
    is_more = forget_some(using)
    if not is_more:
        _next[using] = monotonic() + FORGET_EVERY
    return is_more


def forget_some(using: str) -> bool:
    """Delete the oldest of them; whether there may be more."""
    if not has_table(using):
        return False
    rows = TraceContext.objects.using(using)
    old = rows.filter(at__lt=datetime.now(UTC) - get_settings().KEEP).order_by("at")
    gone = rows.filter(Among(old.values_list("pk", flat=True)[:FORGOTTEN])).delete()[0]
    return gone >= FORGOTTEN


@cache
def has_table(using: str) -> bool:
    """Whether the table is there, by the host's routers."""
    return bool(router.allow_migrate_model(using, TraceContext))


def _written(span: SpanContext) -> str:
    return f"00-{span.trace_id:032x}-{span.span_id:016x}-{span.trace_flags:02x}"


def _read(parent: str) -> SpanContext:
    _version, trace_id, span_id, flags = parent.split("-")
    return SpanContext(int(trace_id, 16), int(span_id, 16), is_remote=True, trace_flags=TraceFlags(int(flags, 16)))

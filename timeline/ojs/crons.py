"""Schedules: each has one task of ours ahead, which makes the next job and plans the task after it."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from contextlib import suppress
from datetime import datetime
from typing import Any, Final
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

from django.db import IntegrityError

from timeline.conf import get_settings
from timeline.exceptions import InvalidInput
from timeline.features.recurring.slots import Slots, slots_of
from timeline.ids import uuid7
from timeline.lifecycle import OPEN, Reason, Trigger
from timeline.models import ScheduledTask
from timeline.ojs.envelope import read_job
from timeline.ojs.errors import Duplicate, Invalid, NotFound, Refused
from timeline.ojs.fetch import SERIAL
from timeline.ojs.jobs import call_off, enqueue, latest
from timeline.ojs.models import MAX_CRON, Cron, Overlap
from timeline.ojs.values import an_object, flag, given, text
from timeline.ojs.wire import has_expired
from timeline.payloads import check_data
from timeline.store.insert import new_row
from timeline.store.new_rows import create_missing, state_at
from timeline.store.transactions import atomic
from timeline.store.transition import Write, apply

TASK_KEY: Final = "ojs_cron.make"
_SHORT: Final = {
    "@yearly": "0 0 1 1 *",
    "@annually": "0 0 1 1 *",
    "@monthly": "0 0 1 * *",
    "@weekly": "0 0 * * 0",
    "@daily": "0 0 * * *",
    "@midnight": "0 0 * * *",
    "@hourly": "0 * * * *",
}
_OF_JOB: Final = ("type", "args", "meta", "options")
_OWN: Final = frozenset(
    {"name", "expression", "cron", "timezone", "overlap_policy", "enabled", "job_template", *_OF_JOB}
    | {"created_at", "next_run_at", "last_run_at", "status"}
)


def register(
    body: Mapping[str, Any], check_queues: Callable[[set[str]], None] | None = None, *, now: datetime, using: str
) -> Cron:
    """
    Make a schedule. ``check_queues``: refuses queues that its jobs may not be put into.

    Raises:
        Refused: naming the field; ``Duplicate`` if there is one of its name.
    """
    name = text("name", given(body, "name"), MAX_CRON)
    expression = text("expression", body.get("expression", body.get("cron")), 100)
    zone = text("timezone", body.get("timezone", "UTC"), 100)
    overlap = body.get("overlap_policy", Overlap.SKIP.value)
    if overlap not in Overlap.values:
        raise Invalid("overlap_policy", f"has to be one of {', '.join(Overlap.values)}.")
    template = body.get("job_template")
    made_of = (
        an_object("job_template", template) if template is not None else {k: body[k] for k in _OF_JOB if k in body}
    )
    if "id" in made_of:
        raise Invalid("job_template.id", "cannot be given: each job has an id of its own.")
    where = "job_template" if template is not None else ""
    job = read_job(_named(made_of, name), now, at=f"{where}." if where else "")
    if check_queues is not None:
        check_queues({job.queue})
    more = {key: value for key, value in body.items() if key not in _OWN}
    for field, kept in (("The body", more), (where or "The body", made_of)):
        try:
            check_data(field, kept)
        except InvalidInput as error:
            raise Invalid(field, str(error)) from None
    cron = Cron(
        name=name,
        expression=expression,
        time_zone=zone,
        overlap=overlap,
        enabled=flag("enabled", body.get("enabled", True)),
        body=made_of,
        given=more,
        created_at=now,
    )
    cron.next_run_at = next_time(cron, now) if cron.enabled else None
    try:
        with atomic(using=using):
            cron.save(using=using, force_insert=True)
            if cron.next_run_at is not None:
                plan(cron, cron.next_run_at, now=now, using=using)
    except IntegrityError:
        raise Duplicate(f"There is a schedule {name!r} already.", name=name) from None
    return cron


def _named(body: Mapping[str, Any], name: str) -> dict[str, Any]:
    """What a job is made of, with the name of its schedule."""
    meta = body.get("meta", {})
    return {**body, "meta": {**meta, "cron_name": name} if isinstance(meta, dict) else meta}


def next_time(cron: Cron, after: datetime) -> datetime:
    """When it comes next."""
    slots = _slots(cron.expression)
    try:
        return slots.after(after, ZoneInfo(cron.time_zone)).at
    except (ZoneInfoNotFoundError, ValueError, OSError):
        raise Invalid("timezone", f"{cron.time_zone!r:.60} is no time zone that there is.") from None
    except OverflowError:
        raise Invalid("expression", "comes never.") from None


def _slots(expression: str) -> Slots:
    slots, problems = slots_of(_SHORT.get(expression.strip(), expression))
    if slots is None:
        raise Invalid("expression", f"cannot be read: {expression!r:.60}. {problems[0][1]}")
    return slots


def plan(cron: Cron, at: datetime, *, now: datetime, using: str) -> None:
    """Have the next job made by a task of ours."""
    key = uuid7()
    columns = {
        "id": key,
        "task_key": TASK_KEY,
        "occurrence": f"{cron.pk}@{at:%Y%m%dT%H%M%SZ}",
        "payload": {"schedule": cron.name},
        "nominal_at": at,
        "scheduled_at": at,
        "state": state_at(at, now),
        "created_at": now,
        "max_attempts": get_settings().MAX_ATTEMPTS,
    }
    create_missing([new_row(ScheduledTask, columns)], using=using)


def make(name: str, due: datetime, *, now: datetime, using: str) -> dict[str, Any]:
    """
    The time of a schedule has come: make its job, if it is to be made, and plan the next. In the caller's transaction.

    Gives what is told of it: ``job_id``, or why there is none (``skipped``).
    """
    cron = Cron.objects.using(using).filter(name=name, enabled=True).select_for_update().first()
    if cron is None:
        return {"cron_name": name}
    try:
        with atomic(using=using):
            made = _made(cron, now, using)
    except Duplicate as error:
        made = {"skipped": "unique", **error.details}
    except Refused as error:  # What was taken once: rules have changed since.
        made = {"skipped": error.message}
    cron.last_run_at = due
    cron.next_run_at = next_time(cron, max(now, due))
    cron.save(using=using)
    plan(cron, cron.next_run_at, now=now, using=using)
    return {"cron_name": name, "cron_expr": cron.expression, "job_type": cron.body["type"], **made}


def _made(cron: Cron, now: datetime, using: str) -> dict[str, str]:
    before = latest([cron.last_job], using=using).get(cron.last_job) if cron.last_job else None
    if before is not None and before.state in OPEN and not has_expired(before, now):
        if cron.overlap == Overlap.SKIP:
            return {"skipped": "overlap_skip", "existing_job_id": before.occurrence}
        if cron.overlap == Overlap.CANCEL:
            with suppress(Refused):  # It has ended meanwhile.
                call_off(before, Reason.operator(f"The schedule {cron.name} makes a new one."), now=now, using=using)
    about = {SERIAL: cron.name} if cron.overlap == Overlap.ENQUEUE else {}
    made = enqueue([read_job(_named(cron.body, cron.name), now)], about=about, now=now, using=using)
    [task] = made.tasks
    if made.there:
        return {"skipped": "unique", "existing_job_id": task.occurrence}
    cron.last_job = task.pk
    return {"job_id": task.occurrence}


def unregister(name: str, *, now: datetime, using: str) -> Cron:
    """Remove a schedule and the task that it has ahead. Jobs that it has made stay."""
    with atomic(using=using):
        cron = Cron.objects.using(using).filter(name=name).select_for_update().first()
        if cron is None:
            raise NotFound(f"There is no schedule {name!r:.80}.", resource_type="cron", resource_id=name)
        ahead = ScheduledTask.objects.using(using).filter(
            run=None, entity_label="", entity_id="", task_key=TASK_KEY, occurrence__startswith=f"{cron.pk}@"
        )
        writes = [
            Write(task=task, triggers=(Trigger.CANCEL,), reason=Reason.operator("The schedule was removed."))
            for task in ahead.open().by_id().locked()
        ]
        apply(writes, now=now, using=using)
        cron.delete(using=using)
    return cron

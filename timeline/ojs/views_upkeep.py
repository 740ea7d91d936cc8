"""What the addresses of dead letters, schedules, queues and events answer."""

from __future__ import annotations

from typing import Any, Final

from timeline.lifecycle import Reason
from timeline.models import ScheduledTask
from timeline.ojs import crons, dead_letters, queues
from timeline.ojs.answers import Answer, Asking
from timeline.ojs.errors import Invalid
from timeline.ojs.events import EVENTS, Asked, events
from timeline.ojs.models import MAX_CRON, Cron
from timeline.ojs.pages import names, number, part
from timeline.ojs.values import job_id, job_type, queue_name, text, told
from timeline.ojs.views_jobs import one
from timeline.ojs.wire import jobs_of

_RETRIED: Final = "Retried over HTTP."


def list_dead(asking: Asking) -> Answer:
    """List dead letters, the latest first."""
    queue = asking.query.get("queue", "")
    rows = asking.caller.rows(using=asking.using)
    dead = dead_letters.dead_letters(rows, queue_name("queue", queue) if queue else "", using=asking.using)
    found, pagination = part(asking.query, dead.count(), lambda first, last: list(dead[first:last]))
    return Answer({"jobs": jobs_of(found, asking.now, using=asking.using), "pagination": pagination})


def _dead(asking: Asking, key: str) -> ScheduledTask:
    rows = asking.caller.rows(using=asking.using)
    return dead_letters.find_dead(job_id("id", key), rows, using=asking.using)


def retry_dead(asking: Asking, key: str) -> Answer:
    """Let a dead letter be fetched again, under the same id."""
    reason = Reason.operator(_RETRIED, asking.caller.actor)
    task = dead_letters.fetch_again(_dead(asking, key), reason, now=asking.now, using=asking.using)
    return Answer(one(asking, task, re_enqueued_at=told(asking.now)))


def delete_dead(asking: Asking, key: str) -> Answer:
    """List a dead letter no more."""
    dead_letters.put_away(_dead(asking, key), now=asking.now, using=asking.using)
    return Answer({"deleted": True, "job_id": key})


def _schedule(cron: Cron) -> dict[str, Any]:
    times = {"created_at": cron.created_at, "next_run_at": cron.next_run_at, "last_run_at": cron.last_run_at}
    return {
        **cron.given,
        "name": cron.name,
        "expression": cron.expression,
        "cron": cron.expression,
        "timezone": cron.time_zone,
        "overlap_policy": cron.overlap,
        "enabled": cron.enabled,
        "status": "active" if cron.enabled else "paused",
        "job_template": cron.body,
        **cron.body,
        **{name: told(at) for name, at in times.items() if at is not None},
    }


def list_crons(asking: Asking) -> Answer:
    """List schedules, by name."""
    rows = Cron.objects.using(asking.using).order_by("name")
    found, pagination = part(asking.query, rows.count(), lambda first, last: list(rows[first:last]))
    listed = [_schedule(cron) for cron in found]
    return Answer({"crons": listed, "cron_jobs": listed, "pagination": pagination})


def register_cron(asking: Asking) -> Answer:
    """Make a schedule."""
    cron = crons.register(asking.body, asking.caller.check_queues, now=asking.now, using=asking.using)
    told_cron = _schedule(cron)
    return Answer({"cron": told_cron, "cron_job": told_cron}, 201)


def unregister_cron(asking: Asking, name: str) -> Answer:
    """Remove a schedule; jobs that it has made stay."""
    cron = crons.unregister(text("name", name, MAX_CRON), now=asking.now, using=asking.using)
    return Answer({"deleted": True, "name": name, "cron": _schedule(cron)})


def list_queues(asking: Asking) -> Answer:
    """List queues, by name."""
    found = queues.all_queues(asking.caller.rows(using=asking.using), using=asking.using)
    listed, pagination = part(asking.query, len(found), lambda first, last: found[first:last])
    return Answer({"queues": list(listed), "pagination": pagination})


def queue_stats(asking: Asking, name: str) -> Answer:
    """How many jobs of a queue are in each state."""
    queue_name("name", name)
    rows = asking.caller.rows(using=asking.using)
    counts = queues.stats(name, rows, asking.now)
    paused = queues.paused_at(name, using=asking.using)
    status = "active" if paused is None else "paused"
    return Answer(
        {
            "queue": {"name": name, "status": status, "paused": paused is not None, **counts},
            "status": status,
            "stats": {**counts, **queues.lately(name, rows, asking.now)},
            "computed_at": told(asking.now),
        }
    )


def pause_queue(asking: Asking, name: str) -> Answer:
    """Let no job of a queue be fetched."""
    queues.set_paused(queue_name("name", name), asking.now, using=asking.using)
    told_queue = {"name": name, "paused": True, "status": "paused", "paused_at": told(asking.now)}
    return Answer({"queue": told_queue, "status": "paused", "paused_at": told(asking.now)})


def resume_queue(asking: Asking, name: str) -> Answer:
    """Let jobs of a queue be fetched again."""
    queues.set_paused(queue_name("name", name), None, using=asking.using)
    told_queue = {"name": name, "paused": False, "status": "active", "resumed_at": told(asking.now)}
    return Answer({"queue": told_queue, "status": "active", "resumed_at": told(asking.now)})


def list_events(asking: Asking) -> Answer:
    """Tell what happened to jobs, in order."""
    query = asking.query
    types = names(query, "types")
    after = query.get("after", "").removeprefix("evt_").partition("_")[0]
    if after and not (after.isascii() and after.isdigit() and len(after) < 19):
        raise Invalid("after", "is the id of no event.")
    asked = Asked(
        types=types if not types else [name for name in types if name in EVENTS] or ["none"],
        queues=[queue_name("queues", name) for name in names(query, "queues")],
        job_types=[job_type("job_types", name) for name in names(query, "job_types")],
        after=int(after) if after else None,
        limit=number(query, "limit", 100, 1000, least=1),
    )
    found = events(asked, asking.caller.rows(using=asking.using), using=asking.using)
    cursor = {} if found.cursor is None else {"cursor": f"evt_{found.cursor}"}
    return Answer({"events": found.events, **cursor, "has_more": found.more})

"""What a client sends to have a job made: read, checked, and kept whole."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta
from typing import Any, Final
from uuid import UUID

from timeline.exceptions import InvalidInput
from timeline.ojs.errors import Invalid
from timeline.ojs.rates import read_rate  # of rates
from timeline.ojs.retry import Policy, policy_of
from timeline.ojs.unique import Unique, read_unique
from timeline.ojs.values import (
    MAX_MS,
    an_array,
    an_object,
    flag,
    given,
    job_id,
    job_type,
    moment,
    queue_name,
    text,
    whole,
)
from timeline.payloads import check_data, check_json

MAX_PRIORITY: Final = 100
LEVELS: Final = {"high": 10, "normal": 0, "low": -10}

# Set by the server, whatever a client sends.
MANAGED: Final = frozenset(
    {
        "attempt", "cancelled_at", "completed_at", "created_at", "discarded_at", "enqueued_at", "error", "errors",
        "max_attempts", "next_attempt_at", "result", "retry_delay_ms", "specversion", "started_at", "state",
    }
)  # fmt: skip
# The core specification has these beside ``type``, the binding to HTTP within ``options``.
OPTIONS: Final = (
    "delay_until", "expires_at", "pending", "priority", "queue", "rate_limit", "retry", "scheduled_at", "tags",
    "timeout", "timeout_ms", "unique", "visibility_timeout", "visibility_timeout_ms",
)  # fmt: skip
_KEPT: Final = frozenset({"id", "type", "args", "meta", "options", *OPTIONS, *MANAGED})


@dataclass(frozen=True, slots=True, kw_only=True)
class NewJob:
    """
    A job to be made.

    Args:
        id: As the client gave it; None: one is made.
        at: When it is due; None: at once.
        pending: Whether it waits until somebody activates it.
        unique: That it is to be the only one of its kind; None: it may have others beside it.
        payload: What its row keeps.
    """

    id: UUID | None
    job_type: str
    queue: str
    priority: int
    at: datetime | None
    expires_at: datetime | None
    pending: bool
    policy: Policy
    unique: Unique | None = None
    payload: dict[str, Any] = field(default_factory=dict)


def read_job(body: object, now: datetime, *, at: str = "") -> NewJob:
    """
    Read a job as a client sends it.

    Args:
        at: How errors name where it stands, such as ``jobs[3].``.

    Raises:
        Refused: naming the field that is missing or wrong.
    """
    found = an_object(at.rstrip(".") or "The body", body)
    name = job_type(f"{at}type", given_in(found, "type", at))
    args = an_array(f"{at}args", given_in(found, "args", at))
    meta = an_object(f"{at}meta", found.get("meta", {}))
    options = {key: found[key] for key in OPTIONS if key in found} | an_object(f"{at}options", found.get("options", {}))
    extra = {key: value for key, value in found.items() if key not in _KEPT}
    job = _read(found, name, options, now, f"{at}options.", at)
    kept = {"type": name, "args": args, "meta": meta, "options": options, "extra": extra}
    job.payload.update({key: value for key, value in kept.items() if value or key in ("type", "args")})
    job.payload.update(read_rate(options.get("rate_limit"), job.queue, f"{at}options.rate_limit"))  # of rates
    try:
        check_json(f"{at}args, meta and options", job.payload)
        for value in filter(None, (args, meta, options, extra)):  # Names of ours are no secrets.
            check_data(f"{at}args, meta and options", value)
    except InvalidInput as error:
        raise Invalid(f"{at}args, meta or options", str(error)) from None
    about = {"type": name, "queue": job.queue, "args": args, "meta": meta}
    return replace(job, unique=read_unique(options.get("unique"), about, f"{at}options.unique"))


def given_in(body: Mapping[str, Any], name: str, at: str) -> Any:
    """A field that has to be there; ``at`` is told before its name."""
    return given({f"{at}{name}": body[name]} if name in body else {}, f"{at}{name}")


def _read(found: Mapping[str, Any], name: str, options: dict[str, Any], now: datetime, where: str, at: str) -> NewJob:
    scheduled = "scheduled_at" if options.get("scheduled_at") is not None else "delay_until"
    times = {key: moment(f"{where}{key}", options.get(key), now) for key in (scheduled, "expires_at")}
    for key, value in times.items():
        if isinstance(options.get(key), str) and str(options[key]).startswith("+") and value is not None:
            options[key] = value.isoformat()  # What is relative to now says nothing later.
    timeout_of(options, where)
    lease_of(options, where)
    if "tags" in options:
        for place, tag in enumerate(an_array(f"{where}tags", options["tags"] or [])):
            text(f"{where}tags[{place}]", tag, 200)
    return NewJob(
        id=job_id(f"{at}id", found["id"]) if "id" in found else None,
        job_type=name,
        queue=queue_name(f"{where}queue", options.get("queue", "default")),
        priority=_priority(f"{where}priority", options.get("priority", 0)),
        at=times[scheduled],
        expires_at=times["expires_at"],
        pending=flag(f"{where}pending", options.get("pending", False)),
        policy=policy_of(options.get("retry"), f"{where}retry"),
    )


def _priority(field_name: str, value: object) -> int:
    if isinstance(value, str) and value.lower() in LEVELS:
        return LEVELS[value.lower()]
    return whole(field_name, value, -MAX_PRIORITY, MAX_PRIORITY)


def timeout_of(options: Mapping[str, Any], where: str = "") -> timedelta | None:
    """How long an attempt may take; None: as long as it is heard of."""
    return _length(options, "timeout_ms", "timeout", where)


def lease_of(options: Mapping[str, Any], where: str = "") -> timedelta | None:
    """How long a worker has the job; None: as long as is usual."""
    return _length(options, "visibility_timeout_ms", "visibility_timeout", where)


def _length(options: Mapping[str, Any], in_ms: str, in_seconds: str, where: str) -> timedelta | None:
    for name, unit in ((in_ms, 1), (in_seconds, 1000)):
        if options.get(name) is not None:
            length = whole(f"{where}{name}", options[name], 0, MAX_MS // unit) * unit
            return timedelta(milliseconds=length) if length else None
    return None

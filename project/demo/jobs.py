"""
Code that knows nothing of timelines: a function of Django's tasks, and jobs that a worker in Node takes over HTTP. Only where
the demo has made a key for such workers, ``JOBS_KEY``: the apps that they need are installed then.
"""

from __future__ import annotations

import json
import os
import secrets
import shutil
from datetime import datetime
from importlib import import_module
from typing import TYPE_CHECKING, Any, Final
from uuid import UUID

from django.contrib.auth.models import Permission
from django.db import DEFAULT_DB_ALIAS

from project.accounts.models import User
from timeline.lifecycle import State
from timeline.models import ScheduledTask

if TYPE_CHECKING:
    from django.http import HttpRequest

EMAIL: Final = "node@parley.example"
QUEUE: Final = "node"
WORKER: Final = "project/worker.mjs"
_PRICES: Final = [[9.9, "EUR"], [49, "USD"], [1200, "JPY"], [3.5, "no currency"]]  # Of the last, Node makes an error.


def can_be_put() -> bool:
    """Whether this demo has them."""
    return "JOBS_KEY" in os.environ


def make_worker(*, now: datetime) -> User:
    """Make the account of workers in Node: they may fetch jobs and tell how they ended, and nothing else."""
    user = User(email=EMAIL, website="parley.example", signed_up_at=now, trial_ends_at=now)
    user.set_unusable_password()
    user.save(force_insert=True)
    user.user_permissions.add(Permission.objects.get(codename="work_jobs", content_type__app_label="timeline_ojs"))
    return user


def worker_of(request: HttpRequest) -> User | None:
    """The account of whoever has the key; None: nobody."""
    given, key = request.headers.get("Authorization", ""), os.environ.get("JOBS_KEY", "")
    has_it = bool(key) and secrets.compare_digest(given.encode(), f"Bearer {key}".encode())
    return User.objects.filter(email=EMAIL).first() if has_it else None


def export(user: User) -> UUID:
    """Enqueue a function of Django's tasks; give the id of its row."""
    return UUID(import_module("project.demo.tasks").export_account.enqueue(user.pk).id)


def put(*, now: datetime) -> UUID:
    """Make a job for a worker in Node, each about another price; give the id of its row."""
    price = _PRICES[_jobs().count() % len(_PRICES)]
    told = {
        "type": "price.tell",
        "args": [*price, 2],
        "meta": {"run_by": f"node {WORKER}"},
        "options": {"queue": QUEUE, "retry": {"max_attempts": 2}},
    }
    job = import_module("timeline.ojs.envelope").read_job(told, now)
    [task] = import_module("timeline.ojs.jobs").enqueue([job], now=now, using=DEFAULT_DB_ALIAS).tasks
    return UUID(str(task.pk))


def command(base: str) -> str:
    """How a worker is started, in a second terminal."""
    return f"JOBS_KEY={os.environ['JOBS_KEY']} node {WORKER} {base}"


def needs() -> str:
    """What is missing for it on this machine, in words; empty: nothing."""
    return "" if shutil.which("node") else "There is no node on this machine's path: install Node 18 or later first."


def how_it_stands(base: str) -> dict[str, Any]:
    """What the page says of the last job; empty: there is none."""
    task = _jobs().order_by("-created_at", "-pk").first()
    if task is None:
        return {}
    said = {
        State.ACTIVE: f"{task.worker} works on it.",
        State.COMPLETED: f"A worker in Node has told: {_prices(task.result)}.",
        State.RETRYABLE: f"It failed: {task.reason} It is tried again.",
        State.DISCARDED: f"It failed for good: {task.reason}",
        State.CANCELLED: f"It was cancelled: {task.reason}",
    }.get(State(task.state))
    if said is not None:
        return {"said": said}
    return {
        "said": "No worker took it yet. Start one in a second terminal:",
        "command": command(base),
        "needs": needs(),
    }


def _prices(result: Any) -> str:
    """What a worker has told, which may be anything; cut, as the row has it whole."""
    prices = list(result.values()) if isinstance(result, dict) else []
    are_texts = bool(prices) and all(isinstance(price, str) for price in prices)
    return (", ".join(prices) if are_texts else json.dumps(result, ensure_ascii=False))[:500]


def _jobs() -> Any:
    return ScheduledTask.objects.filter(queue=QUEUE, task_key__startswith="ojs.")

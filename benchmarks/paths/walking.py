"""The six paths, gone as people and processes go them: by public names, addresses, and the names of Celery's tasks."""

from __future__ import annotations

from collections.abc import Callable
from datetime import timedelta
from itertools import count
from typing import Any, NamedTuple

from django.db import transaction
from django.test import Client
from django.urls import reverse
from django.utils import timezone

from benchmarks.paths.tracing import Trace, traced
from project.accounts.models import User
from project.celery import app
from timeline import Timeline, after, at, task
from timeline.lifecycle import State
from timeline.models import ScheduledTask
from timeline.shortcuts import emit, move
from timeline.testing import StoryClock, only_timelines

_number = count(1)


class Course(Timeline):
    """A task at a date of its entity, in a transaction and with a guard; another one two days after."""

    entity = "accounts.User"
    starts_on = "course.begun"
    exits = {"course.left": "left"}

    @task(at("trial_ends_at"), unless=lambda user: user.payment_configured_at is not None)
    def first(self, user: User) -> dict[str, int]:
        """Have a result."""
        return {"user": user.pk}

    @task(after(first, days=2))
    def second(self, user: User) -> None:
        """Do nothing."""


class Path(NamedTuple):
    """
    One path.

    Args:
        name: For the command line.
        title: From what to what.
        prepare: Make what it begins with.
        go: Go it, with what was prepared.
        state: In which the one task is at its end.
    """

    name: str
    title: str
    prepare: Callable[[], Any]
    go: Callable[[Any], object]
    state: State


def walk(path: Path) -> Trace:
    """
    Go a path twice; trace the second time, when everything has been imported.

    Raises:
        RuntimeError: if it does not lead where it should.
    """
    with only_timelines(Course):
        path.go(path.prepare())
        begun = path.prepare()
        with traced() as trace:
            path.go(begun)
    found = ScheduledTask.objects.filter(task_key="course.first").latest("created_at")
    if found.state != path.state:
        raise RuntimeError(f"{path.title}: the task is {found.state}, not {path.state}.")
    return trace


def _user(**columns: Any) -> User:
    now, name = timezone.now(), f"user{next(_number)}"
    dates = {"signed_up_at": now, "trial_ends_at": now + timedelta(days=30)}
    return User.objects.create(email=f"{name}@example.com", website=f"{name}.example", **dates, **columns)


def _begin(user: User) -> None:
    with transaction.atomic():
        emit("course.begun", user)


def _begun() -> tuple[User, ScheduledTask]:
    user = _user()
    _begin(user)
    return user, ScheduledTask.objects.get(entity_id=str(user.pk))


def _due() -> ScheduledTask:
    """A task that still waits, and whose time has come."""
    _user, row = _begun()
    [moved] = move(row, at=timezone.now() - timedelta(seconds=1), reason="sooner")
    return moved


def _asked() -> tuple[Client, ScheduledTask]:
    """A task, and the browser of somebody who may cancel it."""
    client, (_user_of_it, row) = Client(), _begun()
    client.force_login(_user(is_staff=True, is_superuser=True))
    return client, row


def _run(_row: ScheduledTask) -> None:
    with StoryClock() as clock:
        clock.run_due()


def _save(begun: tuple[User, ScheduledTask]) -> None:
    user, row = begun
    user.trial_ends_at += timedelta(days=7)
    user.save()
    if ScheduledTask.objects.get(pk=row.pk).scheduled_at <= row.scheduled_at:
        raise RuntimeError("The task has not moved.")


def _cancel_in_admin(asked: tuple[Client, ScheduledTask]) -> None:
    client, row = asked
    given = {"action": "cancel", "task": row.pk, "seen": f"{row.pk}:{row.seq}", "confirmed": 1, "reason": "not wanted"}
    client.post(reverse("admin:timeline_scheduledtask_act"), given)


def _cancel_by_rest(asked: tuple[Client, ScheduledTask]) -> None:
    client, row = asked
    address = reverse("timeline_api:task-cancel", args=[row.pk])
    client.post(address, {"reason": "not wanted"}, content_type="application/json")


def _poll(_row: ScheduledTask) -> None:
    app.tasks["timeline.poll"]()


PATHS = [
    Path("emit", "emit → rows", _user, _begin, State.SCHEDULED),
    Path("run", "due row → outcome", _due, _run, State.COMPLETED),
    Path("save", "saved anchor → rows moved", _begun, _save, State.SCHEDULED),
    Path("admin", "admin cancel", _asked, _cancel_in_admin, State.CANCELLED),
    Path("rest", "REST cancel", _asked, _cancel_by_rest, State.CANCELLED),
    Path("poll", "poll: due row → message", _due, _poll, State.PENDING),
]

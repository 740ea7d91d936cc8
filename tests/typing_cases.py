"""Read by mypy, not run: a timeline passes mypy in strict mode, and misuse of it does not."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import timedelta
from enum import StrEnum
from typing import assert_type

from django.db.models import Q

from project.accounts.models import User
from tests.testapp.models import Order
from timeline import IGNORE, Machine, Retry, Then, Timeline, after, at, before, created, each_of, shortcuts, task
from timeline.definition import TableAnswer
from timeline.models import ScheduledTask, TimelineRun
from timeline.operations.emit import Emission
from timeline.operations.schedule import Scheduled
from timeline.operations.start import Started
from timeline.reading.outlook import Outlook


def has_payment(user: User) -> bool:
    return user.payment_configured_at is not None


def is_inactive(user: User) -> bool:
    return not user.is_active


def is_paid(order: Order) -> bool:
    return order.paid


class Trial(Timeline):
    entity = "accounts.User"
    starts_on = "user.created"
    exits = {"payment.configured": "paid", "trial.closed": "closed"}

    @task(before("trial_ends_at", days=5), unless=has_payment, atomic=False, timeout=timedelta(minutes=1))
    def remind(self, user: User) -> None:
        assert_type(self.task.task_key, str)

    @task(at("trial_ends_at"), unless=Q(is_active=False), retry=Retry(max_attempts=3))
    def expire(self, user: User) -> None: ...

    @task(after(expire, days=2), only_if=is_inactive, atomic=False)
    def check_script_usage(self, user: User) -> dict[str, int]:
        return {"calls": 3}

    @task(after(timedelta(days=1)), only_if=is_paid)  # type: ignore[arg-type]  # The guard is about another model.
    def wrong_guard(self, user: User) -> None: ...


class Sweep(Timeline):
    starts_on = (created(), "sweep.wanted")

    @task(after(days=1))
    def sweep(self) -> int:
        return 3


class Settlement(Timeline):
    @task(after())
    def split(self) -> None:
        batches = {str(number): {"first": number} for number in range(3)}
        self.fan_out(self.settle, batches)
        self.fan_out(Settlement.settle, ["a", "b"])
        self.fan_out(self.settle, 3)  # type: ignore[arg-type]  # Occurrences are names.
        self.fan_out("settle", ["a"])  # type: ignore[arg-type]  # A task is named by its method.

    @task(each_of(split), atomic=False)
    def settle(self) -> int:
        return len(self.task.occurrence)

    @task(after(settle, hours=1, ended=True))
    def clean_up(self) -> None: ...


class Door(StrEnum):
    SHUT = "shut"
    OPEN = "open"
    GONE = "gone"


@dataclass
class Opened:
    by: str


class Doors(Machine):
    entity = "testapp.Order"
    initial = Door.SHUT
    table = {
        Door.SHUT: {"door.opened": Door.OPEN, "door.seen": IGNORE},
        Door.OPEN: {"door.shut": Door.SHUT, "door.gone": "gone"},
        Door.GONE: {},
    }
    payloads = {"door.opened": Opened}

    @task(after(days=1))
    def open(self, order: Order) -> Then:
        return Then("door.opened", by="nobody")


def moves(order: Order) -> None:
    assert_type(Doors.next(Door.SHUT, "door.opened"), str | TableAnswer)
    assert_type(shortcuts.emit("door.shut", order, machine=Doors, expect=Door.OPEN).moved, tuple[TimelineRun, ...])
    shortcuts.emit("door.shut", order, expect=3)  # type: ignore[arg-type]  # A state is text.
    assert_type(Doors().open(order), Then)


def unit_test(user: User, order: Order) -> None:
    assert_type(Trial().check_script_usage(user), dict[str, int])
    assert_type(Sweep().sweep(), int)
    assert_type(Trial.expire.name, str)
    Trial().check_script_usage(order)  # type: ignore[arg-type]  # The handler takes a user.


async def async_view(user: User, row: ScheduledTask) -> None:
    assert_type(await shortcuts.aemit("user.created", user, key="k"), Emission)
    assert_type(await shortcuts.astart(Trial, user), Started)
    assert_type(await shortcuts.aleave(Trial, user, reason="left"), TimelineRun)
    assert_type(await shortcuts.aschedule("trial.remind", user, at=row.scheduled_at), Scheduled)
    assert_type(await shortcuts.acancel(row, reason="no"), list[ScheduledTask])
    assert_type(await shortcuts.amove([row.pk], at=row.scheduled_at, reason="later"), list[ScheduledTask])
    assert_type(await shortcuts.apreview("trial", user), list[Outlook])
    assert_type(await shortcuts.aexplain(row), str)
    await shortcuts.aemit("user.created", user, payload=3)  # type: ignore[arg-type]  # A payload is an object.
    await shortcuts.acancel(row)  # type: ignore[call-arg]  # A person's decision takes a reason.

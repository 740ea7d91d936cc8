"""Read by mypy, not run: a timeline passes mypy in strict mode, and misuse of it does not."""

from __future__ import annotations

from datetime import timedelta
from typing import assert_type

from django.db.models import Q

from project.accounts.models import User
from tests.testapp.models import Order
from timeline import Retry, Timeline, after, at, before, created, task


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

    @task(before("trial_ends_at", days=5), unless=has_payment, atomic=False)
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


def unit_test(user: User, order: Order) -> None:
    assert_type(Trial().check_script_usage(user), dict[str, int])
    assert_type(Sweep().sweep(), int)
    assert_type(Trial.expire.name, str)
    Trial().check_script_usage(order)  # type: ignore[arg-type]  # The handler takes a user.

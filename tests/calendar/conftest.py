"""What the tests of calendars share: people, and what is ahead of them."""

from __future__ import annotations

from datetime import timedelta

import pytest
from django.contrib.auth.models import Permission

from project.accounts.models import User
from tests.testapp.models import Plan, Seat
from timeline import Timeline, task
from timeline.models import ref_of
from timeline.testing import StoryClock, only_timelines


class Account(Timeline):
    entity = "accounts.User"

    @task()
    def tell_news(self, user) -> None: ...


class Seating(Timeline):
    entity = "testapp.Seat"
    owner = "plan.user"

    @task()
    def free(self, seat) -> None: ...


class Accounting(Timeline):
    """About the same seats, and nobody's but staff's."""

    entity = "testapp.Seat"

    @task()
    def bill(self, seat) -> None: ...


class Trying(Timeline):
    entity = "accounts.User"
    shadow = True

    @task()
    def call(self, user) -> None: ...


@pytest.fixture(autouse=True)
def clock(db, now):
    """Story time, with just these timelines."""
    with only_timelines(Account, Seating, Accounting, Trying), StoryClock(now) as clock:
        yield clock


@pytest.fixture
def person(db, now):
    """Make an account with a password: ``person("ada")``; with permissions it is staff."""

    def make(name, *permissions, **columns):
        made = User(email=f"{name}@example.com", signed_up_at=now, trial_ends_at=now, **columns)
        made.is_staff = bool(permissions)
        made.set_unusable_password()  # Random, and no hash to wait for.
        made.save()
        made.user_permissions.set(Permission.objects.filter(codename__in=permissions))
        return made

    return make


@pytest.fixture
def seat():
    """Make a seat of a user's."""
    return lambda user: Seat.objects.create(plan=Plan.objects.create(user=user))


@pytest.fixture
def ahead(make_task, now):
    """Make a row about an entity that is due in so many hours: ``ahead("account.tell_news", ada, 2)``."""

    def make(task_key, entity, hours=1, **columns):
        ref = ref_of(entity)
        at = now + timedelta(hours=hours)
        return make_task(
            task_key=task_key,
            entity_label=ref.label,
            entity_id=ref.id,
            **{"scheduled_at": at, "nominal_at": at} | columns,
        )

    return make

"""What the tests of the API share: people, their rows, and clients that are logged in as them."""

from __future__ import annotations

import pytest
from django.core.cache import cache
from django.test import Client

from project.accounts.models import User
from tests.people import log_in, permit
from tests.testapp.models import Plan, Seat
from timeline import Timeline, after, task
from timeline.models import ref_of
from timeline.testing import only_timelines

ROOT = "/api/v1"


class Account(Timeline):
    """About users: theirs, because it is about them."""

    entity = "accounts.User"
    starts_on = "user.created"
    exits = {"user.left": "left"}

    @task(after(days=1))
    def greet(self, user) -> None: ...

    @task(after(greet, days=2))
    def ask(self, user) -> None: ...

    @task(tags=("phone",))
    def call(self, user) -> None: ...


class Seating(Timeline):
    """About seats: theirs, because it says so."""

    entity = "testapp.Seat"
    owner = "plan.user"

    @task(after(days=1))
    def free(self, seat) -> None: ...

    @task(after(free, days=1))
    def sweep(self, seat) -> None: ...


class Accounting(Timeline):
    """About the same seats, and nobody's but staff's."""

    entity = "testapp.Seat"

    @task(after(days=1))
    def bill(self, seat) -> None: ...

    @task(after(bill, days=1))
    def remind(self, seat) -> None: ...


@pytest.fixture(autouse=True)
def _only_these():
    with only_timelines(Account, Seating, Accounting):
        yield


@pytest.fixture(autouse=True)
def _asks_for_the_first_time():
    """Let nobody have asked too often in the tests before."""
    cache.clear()


@pytest.fixture
def person(db, now):
    """Make an account: ``person("ada")``; with permissions it is staff."""

    def make(name, *permissions, **columns):
        columns.setdefault("is_staff", bool(permissions))
        made = User.objects.create(email=f"{name}@example.com", signed_up_at=now, trial_ends_at=now, **columns)
        if permissions:
            permit(made, *permissions)
        return made

    return make


@pytest.fixture
def ada(person):
    """Who owns rows."""
    return person("ada")


@pytest.fixture
def seat():
    """Make a seat of a user's."""
    return lambda user: Seat.objects.create(plan=Plan.objects.create(user=user))


@pytest.fixture
def about(make_task):
    """Make a row about an entity: ``about("account.greet", ada)``."""

    def make(task_key, entity, **columns):
        ref = ref_of(entity)
        return make_task(task_key=task_key, entity_label=ref.label, entity_id=ref.id, **columns)

    return make


class Asker:
    """Asks the API as somebody, or as nobody."""

    def __init__(self, user=None):
        self.client = Client()
        if user is not None:
            log_in(self.client, user)

    def get(self, path, **query):
        return self.client.get(f"{ROOT}/{path}", query)

    def post(self, path, body=None):
        return self.client.post(f"{ROOT}/{path}", {} if body is None else body, content_type="application/json")


@pytest.fixture
def asked_by(db):
    """Ask as somebody: ``asked_by(ada).get("me/tasks/")``."""
    return Asker


EVERYTHING = [
    "view_scheduledtask",
    "view_payload",
    "cancel_scheduledtask",
    "move_scheduledtask",
    "run_now_scheduledtask",
    "redrive_scheduledtask",
    "decide_scheduledtask",
    "add_event",
    "view_hold",
    "hold_tasks",
]


@pytest.fixture
def staff(person):
    """Staff who may do everything."""
    return person("operator", *EVERYTHING)


@pytest.fixture
def by_staff(staff):
    """Ask as them."""
    return Asker(staff)


def ids(answer):
    """Keys of the tasks of a list, in its order."""
    return [row["id"] for row in answer.json()["results"]]

"""Faces of a second database: they show what is there, change what is there, and nothing of the first."""

from __future__ import annotations

import pytest
from django.test import Client

from project.accounts.models import User
from tests.testapp.models import Order
from timeline.models import Answer, ScheduledTask
from timeline.shortcuts import emit, start
from timeline.testing import StoryClock

pytestmark = pytest.mark.django_db(databases=["default", "other"])
ADMIN, API = "/second/timeline/scheduledtask", "/api/other"


class AllInDefault:
    """Has an opinion on each model: whatever does not name the other database itself goes to this one."""

    def db_for_read(self, model, **hints):
        return "default"

    db_for_write = db_for_read

    def allow_relation(self, one, another, **hints):
        return True


class TasksReplicated(AllInDefault):
    """Reads tasks from a copy that is behind."""

    def db_for_read(self, model, **hints):
        return "other" if model is ScheduledTask else "default"


@pytest.fixture(autouse=True)
def _host(settings):
    settings.ROOT_URLCONF = "tests.hosts.two_faces"
    settings.DATABASE_ROUTERS = ["tests.hosts.test_two_faces.AllInDefault"]


@pytest.fixture
def clock():
    with StoryClock(using="other") as clock:
        yield clock


@pytest.fixture
def staff(clock):
    """Accounts and sessions are in the first database."""
    user = User(email="boss@example.com", signed_up_at=clock.now, trial_ends_at=clock.now, is_staff=True)
    user.is_superuser = True
    user.save()
    client = Client()
    client.force_login(user)
    return client


@pytest.fixture
def here(delivery, clock):
    """A task about an order in the first database."""
    emit("order.placed", Order.objects.using("default").create(pk=7), using="default")
    return ScheduledTask.objects.using("default").get()


@pytest.fixture
def there(here):
    """One about an order of the same key in the second."""
    start("delivery", Order.objects.using("other").create(pk=7), using="other")
    return ScheduledTask.objects.using("other").get()


@pytest.fixture
def untouched(here):
    """What the first database has is as it was."""
    yield
    assert list(ScheduledTask.objects.using("default").values()) == [
        {field.attname: getattr(here, field.attname) for field in ScheduledTask._meta.concrete_fields}
    ]


def post(client, path, **body):
    return client.post(f"{API}/{path}", body, content_type="application/json")


@pytest.mark.usefixtures("untouched")
class TestTheAPIOfASecondDatabase:
    def test_lists_what_is_there(self, staff, there):
        [shown] = staff.get(f"{API}/tasks/").json()["results"]

        assert shown["id"] == str(there.pk)

    def test_tells_a_tasks_story(self, staff, there, clock):
        moved = post(staff, f"tasks/{there.pk}/move/", at="2031-01-01T00:00:00Z", reason="later").json()
        shown = staff.get(f"{API}/tasks/{there.pk}/").json()

        assert moved["scheduled_at"] == "2031-01-01T00:00:00Z"
        assert [entry["reason"] for entry in shown["log"]] == ["later"]
        assert "it was moved" in shown["explanation"]

    def test_knows_none_of_the_first(self, staff, here, there):
        assert staff.get(f"{API}/tasks/{here.pk}/").status_code == 404
        assert post(staff, f"tasks/{here.pk}/cancel/", reason="no").status_code == 404

    def test_cancels_and_redrives_there(self, staff, there):
        assert post(staff, f"tasks/{there.pk}/cancel/", reason="no").json()["state"] == "cancelled"
        again = post(staff, f"tasks/{there.pk}/redrive/", reason="yes after all").json()

        assert again["previous"] == str(there.pk)
        assert ScheduledTask.objects.using("other").open().get().revision == 2

    def test_makes_due_there(self, staff, there):
        assert post(staff, f"tasks/{there.pk}/run-now/", reason="now").json()["state"] == "available"

    def test_shows_an_entitys_timeline(self, staff, there, clock):
        clock.advance(days=1)
        Order.objects.using("other").create(pk=8)

        shown = staff.get(f"{API}/entities/testapp.order/7/tasks/").json()

        assert [row["task"] for row in shown["past"]["results"]] == ["delivery.pack"]
        assert [row["task"] for row in shown["upcoming"]["results"]] == ["delivery.ship"]
        assert staff.get(f"{API}/entities/testapp.order/8/tasks/").status_code == 200  # It is there, without a task.
        assert staff.get(f"{API}/entities/testapp.order/9/tasks/").status_code == 404

    def test_foresees_there(self, staff, there):
        shown = staff.get(f"{API}/entities/testapp.order/7/tasks/", {"part": "foreseen"}).json()

        assert [row["task"] for row in shown["foreseen"]["results"]] == ["delivery.ship"]

    def test_emits_there(self, staff, there):
        Order.objects.using("other").create(pk=8)
        answer = post(staff, "events/", name="order.placed", entity={"label": "testapp.order", "id": "8"})

        assert answer.json()["started"] == ["delivery"]
        assert ScheduledTask.objects.using("other").count() == 2

    @pytest.mark.parametrize("path", ["tasks/{}/cancel/", "events/"])
    def test_keeps_there_what_a_request_with_a_key_was_answered(self, staff, there, path):
        body = {"name": "order.placed", "entity": {"label": "testapp.order", "id": "7"}} if path == "events/" else {}
        sent = {
            "data": body or {"reason": "no"},
            "content_type": "application/json",
            "headers": {"Idempotency-Key": "k"},
        }

        first, again = (staff.post(f"{API}/{path.format(there.pk)}", **sent) for _ in range(2))

        assert first.status_code in (200, 201)
        assert again.content == first.content
        assert [Answer.objects.using(alias).count() for alias in ("default", "other")] == [0, 1]

    def test_shows_a_user_of_the_first_their_tasks_of_the_second(self, staff, there):
        user = User.objects.get()
        ScheduledTask.objects.using("other").update(entity_label="accounts.user", entity_id=str(user.pk))

        for path in (f"users/{user.pk}/tasks/", "me/tasks/"):
            [shown] = staff.get(f"{API}/{path}").json()["upcoming"]["results"]
            assert shown["id"] == str(there.pk)

    def test_is_described_by_itself(self, staff, there):
        document = staff.get(f"{API}/schema/").json()

        assert document["paths"]
        assert all(path.startswith(f"{API}/") for path in document["paths"])
        assert f"{API}/schema/" in staff.get(f"{API}/docs/?script=").content.decode()
        assert all(path.startswith("/api/v1/") for path in staff.get("/api/v1/schema/").json()["paths"])


class TestTheAPIOfTheFirst:
    def test_knows_none_of_the_second(self, staff, here, there):
        [shown] = staff.get("/api/v1/tasks/").json()["results"]

        assert shown["id"] == str(here.pk)
        assert staff.get(f"/api/v1/tasks/{there.pk}/").status_code == 404


@pytest.mark.usefixtures("untouched")
class TestTheAdminOfASecondDatabase:
    def test_shows_a_task_with_its_log(self, staff, there):
        given = {"action": "move", "task": there.pk, "confirmed": 1, "reason": "later", "at": "2031-01-01T00:00"}
        assert staff.post(f"{ADMIN}/act/", given).status_code == 302

        page = staff.get(f"{ADMIN}/{there.pk}/change/").content.decode()

        assert "delivery.pack" in page
        assert "boss@example.com" in page
        assert ScheduledTask.objects.using("other").get().scheduled_at.year == 2031

    def test_shows_an_entitys_timeline(self, staff, there, clock):
        clock.advance(days=1)

        page = staff.get(f"{ADMIN}/entity/", {"label": "testapp.order", "id": "7"}).content.decode()

        assert "delivery.ship" in page
        assert "completed" in page

    def test_cancels_and_redrives_there(self, staff, there):
        for action in ("cancel", "redrive"):
            staff.post(f"{ADMIN}/act/", {"action": action, "task": there.pk, "confirmed": 1, "reason": "x"})

        assert [row.state for row in ScheduledTask.objects.using("other").order_by("revision")] == [
            "cancelled",
            "available",
        ]

    def test_knows_none_of_the_first(self, staff, here, there):
        assert staff.get(f"{ADMIN}/{here.pk}/change/").status_code == 404
        assert str(here.pk) not in staff.get(f"{ADMIN}/").content.decode()


class TestACopyThatIsBehind:
    def test_is_read_and_not_asked_where_something_changes(self, staff, here, settings):
        settings.DATABASE_ROUTERS = ["tests.hosts.test_two_faces.TasksReplicated"]

        listed = staff.get("/api/v1/tasks/").json()["results"]
        answer = staff.post(f"/api/v1/tasks/{here.pk}/cancel/", {"reason": "x"}, "application/json")

        assert listed == []
        assert answer.json()["state"] == "cancelled"

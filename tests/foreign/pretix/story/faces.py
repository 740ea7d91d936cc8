"""Our pages in a Django admin that the plugin adds, our API behind pretix's logins, and pretix's own pages."""

from __future__ import annotations

from contextlib import suppress
from io import StringIO

from acting import cancelled_by_hand
from django.core.management import call_command
from django.urls import reverse
from pretix.base.models import Order
from seeing import seen

from story.shop import GUEST, MANAGER, browser, place
from timeline.models import ScheduledTask

BOTH = {"payment.remind", "payment.note"}
API = "/operations/api/v1"


def page_of(name: str, *args: object, **query: object) -> str:
    """Read one of our pages in the admin as the manager."""
    address = reverse(f"admin:timeline_scheduledtask_{name}", urlconf="site_urls", args=args)
    answer = browser(MANAGER).get(address, query)
    assert answer.status_code == 200, (address, answer.status_code)
    return answer.content.decode()


def task_of(order: Order) -> ScheduledTask:
    """The first open task."""
    return ScheduledTask.objects.for_entity(order).open().order_by("scheduled_at")[0]


@seen("Our pages in the admin show the rows, and name the order")
def our_pages() -> None:
    order = place()
    listed, shown = page_of("changelist"), page_of("change", task_of(order).pk)
    entity = page_of("entity", label="pretixbase.order", id=order.pk)

    assert order.code in listed
    assert all(key in listed and key in entity for key in BOTH)
    assert "payment.remind" in shown


@seen("Cancelling in the admin keeps reason and name")
def cancel_in_admin() -> None:
    task = task_of(place())
    act = reverse("admin:timeline_scheduledtask_act", urlconf="site_urls")

    shown = cancelled_by_hand(browser(MANAGER), act, task.pk, "Phoned")

    task.refresh_from_db()
    assert (task.state, task.reason) == ("cancelled", "Phoned"), shown


@seen("The API answers staff; a guest gets an empty list of their own and 404 for others")
def api() -> None:
    order = place()
    found = browser(MANAGER).get(f"{API}/entities/pretixbase.order/{order.pk}/tasks/")
    assert found.status_code == 200, found.content
    assert {row["task"] for row in found.json()["upcoming"]["results"]} == BOTH
    assert browser(MANAGER).get(f"{API}/tasks/{task_of(order).pk}/").status_code == 200

    own = browser(GUEST).get(f"{API}/me/tasks/")
    hidden = browser(GUEST).get(f"{API}/entities/pretixbase.order/{order.pk}/tasks/")

    assert own.status_code == 200, (own.status_code, own.content)
    assert own.json()["upcoming"]["results"] == []
    assert hidden.status_code == 404


@seen("The API cancels with a reason")
def api_cancels() -> None:
    task = task_of(place())

    answer = browser(MANAGER).post(
        f"{API}/tasks/{task.pk}/cancel/", {"reason": "Phoned"}, content_type="application/json"
    )

    assert answer.status_code == 200, answer.content
    task.refresh_from_db()
    assert (task.state, task.reason) == ("cancelled", "Phoned")


@seen("pretix's own pages and API work as before")
def their_pages() -> None:
    assert browser(MANAGER).get("/control/").status_code == 200
    assert browser(GUEST).get("/control/events/").status_code == 200
    assert browser(GUEST).get("/api/v1/organizers/").status_code == 200
    assert browser(GUEST).get("/barn/harvest/").status_code == 200


@seen("timeline_explain tells of an order outside of any scope")
def explained() -> None:
    told = StringIO()
    call_command("timeline_explain", "pretixbase.order", str(place().pk), stdout=told)

    assert all(key in told.getvalue() for key in BOTH), told.getvalue()


@seen("timeline_doctor and timeline_sweep run outside of any scope")
def kept_well() -> None:
    call_command("timeline_sweep", stdout=StringIO())
    with suppress(SystemExit):  # It is not well: a handler has failed.
        call_command("timeline_doctor", database="default", stdout=StringIO())

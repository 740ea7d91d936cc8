"""What is ahead says what is in its way, and until when: on the entity's page, in its picture, in lists, and in what-if."""

from __future__ import annotations

import re
from datetime import timedelta

import pytest
from django.urls import reverse

from tests.admin.conftest import ALL, ENTITY, LIST, text_of
from tests.admin.test_people_deciding import Refunding
from tests.testapp.models import Order
from timeline import Timeline, after, task
from timeline.models import ScheduledTask
from timeline.reading.text_pictures import picture
from timeline.shortcuts import emit, hold, what_if
from timeline.testing import only_timelines

UNTIL = "held until 2026-03-08 09:00"  # Pages name their zone once; other faces say UTC with each time.
ENDLESS = "held until somebody releases it"
WAITS = "waits for approval until 2026-03-03 09:00"


def has_number(order):
    return True


class Sending(Timeline):
    entity = "testapp.Order"
    starts_on = "order.placed"

    @task(after(days=3), only_if=has_number, queue="mail")
    def greet(self, order): ...


@pytest.fixture(autouse=True)
def _known(clock):
    with only_timelines(Sending, Refunding):
        yield


@pytest.fixture
def order(clock):
    order = Order.objects.create()
    emit("order.placed", order)
    return order


def page_of(client, order):
    return text_of(client.get(ENTITY, {"label": "testapp.order", "id": order.pk}))


class TestHeld:
    @pytest.mark.parametrize("whole", [{}, {"queue": "mail"}, {"task": "sending.greet"}, {"timeline": "sending"}])
    def test_is_said_where_it_would_run_otherwise(self, operator, order, whole):
        """Whatever is on hold: it, its timeline, its queue, or the entity."""
        assert "as things stand, it would run: only if has number" in page_of(operator, order)

        hold(**(whole or {"entity": order}), reason="a dispute")

        page = page_of(operator, order)
        assert f"<strong>{ENDLESS}</strong>" in page
        assert "as things stand, it would run" not in page
        assert "without the hold, it would run: only if has number" in page
        assert f"scheduled – {ENDLESS}" in page  # In the picture.

    def test_is_said_with_its_end(self, operator, order, now):
        hold(order, until=now + timedelta(days=7), reason="a dispute")

        assert f"<strong>{UNTIL}</strong>" in page_of(operator, order)
        assert UNTIL in text_of(operator.get(LIST))
        assert f"{UNTIL} UTC" in picture(order, now=now, using="default")

    def test_is_said_with_the_last_end_of_several(self, operator, order, now):
        hold(order, until=now + timedelta(days=2), reason="a dispute")
        hold(timeline="sending", until=now + timedelta(days=7), reason="a dispute")

        assert f"<strong>{UNTIL}</strong>" in page_of(operator, order)

    def test_is_not_said_of_another(self, operator, order):
        hold(Order.objects.create(), reason="a dispute")

        assert "held until" not in page_of(operator, order)
        assert "held until" not in text_of(operator.get(LIST))

    def test_is_said_of_what_would_be(self, order, now):
        hold(order, until=now + timedelta(days=7), reason="a dispute")

        [effect] = [effect for effect in what_if(order, event="refund.asked") if effect.task_key == "sending.greet"]

        assert (effect.stands, effect.words) == (f"{UNTIL} UTC", f"as it is: {UNTIL} UTC")


class TestWaiting:
    def test_has_the_buttons_beside_it_for_who_may(self, person, browse, order):
        emit("refund.asked", order)
        may, may_not = browse(person("oona", *ALL, is_superuser=True)), browse(person("vera", "view_scheduledtask"))

        page = page_of(may, order)
        assert WAITS in page
        assert re.search(r'name="action" value="approve" class="tl-button">Approve…', page)
        assert 'value="approve"' not in page_of(may_not, order)
        assert WAITS in page_of(may_not, order)

    def test_leads_from_the_list_to_where_it_is_decided(self, person, browse, order):
        emit("refund.asked", order)
        row = ScheduledTask.objects.get(task_key="refunding.refund")
        where = reverse("admin:timeline_scheduledtask_change", args=[row.pk])

        assert f'<a href="{where}">Approve or reject…</a>' in text_of(
            browse(person("oona", is_superuser=True, is_staff=True)).get(LIST)
        )
        assert "Approve or reject" not in text_of(browse(person("vera", "view_scheduledtask")).get(LIST))

    def test_is_said_of_what_would_be(self, order):
        [effect] = [effect for effect in what_if(order, event="refund.asked") if effect.task_key == "refunding.refund"]

        assert effect.words == f"new: {WAITS} UTC"

"""What waits for people comes by its deadline, says what was asked and why, and can be taken and handed over."""

from __future__ import annotations

from datetime import timedelta

import pytest
from django.db import connection
from django.test.utils import CaptureQueriesContext
from django.urls import reverse
from django.utils.translation import gettext_lazy

from tests.admin.conftest import ALL, ENTITY, text_of
from tests.testapp.models import Order
from timeline import Machine, Timeline, approval, ask, never, on, task
from timeline.models import ScheduledTask, Taking, TimelineRun
from timeline.shortcuts import emit
from timeline.testing import only_timelines

PEOPLE = reverse("admin:timeline_scheduledtask_people")
ATTENTION = reverse("admin:timeline_scheduledtask_attention")
TAKE = reverse("admin:timeline_scheduledtask_take")
HAND_OVER = reverse("admin:timeline_scheduledtask_hand_over")
HOUR = timedelta(hours=1)


class Parcel(Machine):
    """Two states ask: one within hours, the other without end. A third has a timer, and asks for nothing."""

    entity = "testapp.Order"
    starts_on = "parcel.sent"
    initial = "held"
    working = ("moving",)
    table = {
        "held": {"parcel.freed": "moving", "parcel.lost": "lost", "parcel.waited": "gone"},
        "moving": {"parcel.stuck": "held", "parcel.gone": "gone", "parcel.waited": "gone"},
        "lost": {"parcel.found": "held", "parcel.given_up": "gone"},
        "gone": {},
    }
    timers = {"parcel.waited": on("held", hours=4), "parcel.gone": on("moving", hours=1), "lost": never}
    asks = {
        "parcel.freed": ask(gettext_lazy("Delete"), by="timeline.cancel_scheduledtask"),
        "parcel.found": ask("It was found <here>", by=("timeline.cancel_scheduledtask", "timeline.move_scheduledtask")),
        "parcel.given_up": "timeline.cancel_scheduledtask",
    }


class Returning(Timeline):
    entity = "testapp.Order"
    starts_on = "return.asked"

    @task(approval("return", by="timeline.cancel_scheduledtask", within=3 * HOUR))
    def send_back(self, order): ...


@pytest.fixture(autouse=True)
def _known(clock):
    with only_timelines(Parcel, Returning):
        yield


@pytest.fixture
def olga(person):
    return person("olga", *ALL)


@pytest.fixture
def operator(olga, browse):
    return browse(olga)


def made(*events, **payload):
    """An order about which these events came."""
    order = Order.objects.create()
    for event in events:
        emit(event, order, payload=payload if event == events[-1] else {})
    return order


def entities(page):
    return [part.partition('"')[0] for part in page.content.decode().split("label=testapp.order&amp;id=")[1:]]


def names(*orders):
    return [str(order.pk) for order in orders]


class TestOrder:
    @pytest.fixture
    def in_order(self, clock):
        lost = made("parcel.sent", "parcel.lost")
        late = made("parcel.sent")
        clock.set(clock.now + 5 * HOUR)  # Nobody polls: its timer is overdue.
        made("parcel.sent", "parcel.freed")  # Its timer is due sooner than others, but it asks for nothing.
        asked = made("return.asked")
        held = made("parcel.sent")
        lost_later = made("parcel.sent", "parcel.lost")
        return names(late, asked, held, lost, lost_later)

    def test_is_by_deadline_overdue_first_and_last_what_has_none(self, operator, in_order):
        assert entities(operator.get(PEOPLE)) == in_order
        assert [key for key in entities(operator.get(ATTENTION)) if key in in_order] == in_order

    def test_is_the_same_page_by_page(self, operator, in_order, monkeypatch):
        monkeypatch.setattr("timeline.features.machines.people.SHOWN", 1)
        seen, address = [], PEOPLE
        while address:
            page = operator.get(address)
            seen += entities(page)
            more = [part.partition('"')[0] for part in page.content.decode().split('href="') if "after=" in part[:200]]
            address = more[0].replace("&amp;", "&") if more else ""

        assert seen == in_order

    def test_asks_twelve_queries_at_most(self, operator, in_order):
        with CaptureQueriesContext(connection) as queries:
            operator.get(PEOPLE)

        assert len(queries) <= 12


class TestLine:
    def test_says_in_how_long_and_why_and_what_can_be_said(self, operator, person, browse, clock):
        made("parcel.sent", "parcel.freed", "parcel.stuck", reason="the <i>customs</i>")
        clock.set(clock.now + 3 * HOUR + timedelta(minutes=47))
        page = text_of(operator.get(PEOPLE)).replace("\xa0", " ")

        assert "in 13 minutes" in page
        assert "the &lt;i&gt;customs&lt;/i&gt;" in page
        assert "Delete…</a>" in page
        assert "customs" not in text_of(browse(person("vera", "view_scheduledtask")).get(PEOPLE))

    def test_has_buttons_in_the_language_of_who_looks_and_by_name_without_a_title(self, operator):
        order = made("parcel.sent", "parcel.lost")
        german = {"Accept-Language": "de"}

        for address in (PEOPLE, ATTENTION, f"{ENTITY}?label=testapp.order&id={order.pk}"):
            page = text_of(operator.get(address, headers=german))
            assert "It was found &lt;here&gt;" in page
            assert "parcel.given_up" in page
        made("parcel.sent")
        assert ">Löschen" in text_of(operator.get(PEOPLE, headers=german))

    def test_is_said_by_its_title(self, operator):
        made("parcel.sent", "parcel.lost")
        [link] = [
            part.partition('"')[0]
            for part in operator.get(PEOPLE).content.decode().split('href="')
            if "parcel.found" in part[:200]
        ]

        page = text_of(operator.post(link.replace("&amp;", "&"), {"reason": "x"}, follow=True))

        assert "Recorded: It was found &lt;here&gt;." in page


class TestTake:
    @pytest.fixture
    def run(self):
        made("parcel.sent", "parcel.lost")
        return TimelineRun.objects.get()

    @pytest.fixture
    def ada(self, person, browse):
        return browse(person("ada", *ALL))

    @pytest.mark.parametrize("event", ["parcel.sent", "return.asked"])
    def test_is_shown_to_others_and_hinders_nobody(self, operator, ada, event):
        made(event)
        row = ScheduledTask.objects.get() if event == "return.asked" else TimelineRun.objects.get()
        before = text_of(ada.get(PEOPLE))

        operator.post(TAKE, {"item": row.pk})

        assert "You have it since 2026-03-01 09:00." in text_of(operator.get(PEOPLE))
        page = text_of(ada.get(PEOPLE))
        assert "olga@example.com has it since 2026-03-01 09:00." in page
        assert "olga@example.com has it since" in text_of(ada.get(ATTENTION))
        assert "…</" in page
        assert "Take it" in before
        assert "Take it" not in page

    def test_is_refused_where_somebody_has_it(self, operator, ada, run):
        operator.post(TAKE, {"item": run.pk})
        page = text_of(ada.post(TAKE, {"item": run.pk}, follow=True))

        assert "olga@example.com has it since" in page
        assert [taking.holder for taking in Taking.objects.all()] == ["olga@example.com"]

    def test_twice_is_once(self, operator, run):
        operator.post(TAKE, {"item": run.pk})
        operator.post(TAKE, {"item": run.pk})

        assert Taking.objects.count() == 1

    def test_ends_with_the_answer(self, operator, run):
        operator.post(TAKE, {"item": run.pk})
        emit("parcel.found", run.entity_ref)
        emit("parcel.lost", run.entity_ref)

        assert "has it since" not in text_of(operator.get(PEOPLE))
        assert "You have it since" not in text_of(operator.get(PEOPLE))

    def test_ends_at_the_deadline(self, operator, ada, clock):
        made("parcel.sent")
        run = TimelineRun.objects.get()
        operator.post(TAKE, {"item": run.pk})
        clock.set(clock.now + 4 * HOUR)
        assert "You have it since" not in text_of(operator.get(PEOPLE))

        ada.post(TAKE, {"item": run.pk})

        assert "ada@example.com has it" in text_of(operator.get(PEOPLE))

    def test_is_for_who_may_answer(self, person, browse, run):
        vera = browse(person("vera", "view_scheduledtask"))

        assert "Take it" not in text_of(vera.get(PEOPLE))
        assert vera.post(TAKE, {"item": run.pk}).status_code == 404
        assert vera.get(HAND_OVER, {"item": run.pk}).status_code == 404
        assert not Taking.objects.exists()

    @pytest.mark.parametrize("item", ["", "x", "01900000-0000-7000-8000-000000000000"])
    def test_makes_nothing_of_what_is_not_there(self, operator, item):
        assert operator.post(TAKE, {"item": item}).status_code == 404

    def test_changes_nothing_where_a_page_is_only_opened(self, operator, run):
        assert operator.get(TAKE, {"item": run.pk}).status_code == 302
        assert not Taking.objects.exists()

    def test_is_handed_over_and_both_are_named(self, operator, ada, run):
        operator.post(TAKE, {"item": run.pk})
        operator.post(f"{HAND_OVER}?item={run.pk}", {"to": "ada@example.com"})

        assert "You have it since" in text_of(ada.get(PEOPLE))
        handed = Taking.objects.latest("seq")
        assert (handed.holder, handed.actor) == ("ada@example.com", "olga@example.com")

    def test_is_not_handed_to_who_may_not_answer(self, operator, person, run):
        person("vera", "view_scheduledtask")
        operator.post(TAKE, {"item": run.pk})
        for to in ("vera@example.com", "nobody"):
            page = text_of(operator.post(f"{HAND_OVER}?item={run.pk}", {"to": to}))
            assert f"{to} is nobody who may answer this." in page
        assert Taking.objects.count() == 1

    def test_is_a_list_of_ones_own(self, operator, ada, run):
        other = made("parcel.sent", "parcel.lost")
        assert "You have taken nothing" in text_of(operator.get(PEOPLE, {"mine": "1"}))
        operator.post(TAKE, {"item": run.pk})
        ada.post(TAKE, {"item": TimelineRun.objects.get(entity_id=other.pk).pk})

        assert entities(operator.get(PEOPLE, {"mine": "1"})) == [run.entity_id]
        operator.post(f"{HAND_OVER}?item={run.pk}", {"to": "ada@example.com"})
        assert entities(operator.get(PEOPLE, {"mine": "1"})) == []
        assert len(entities(ada.get(PEOPLE, {"mine": "1"}))) == 2

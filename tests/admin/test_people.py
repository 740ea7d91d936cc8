"""What waits for people, and what they say."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import timedelta
from typing import Literal

import pytest
from django.db import connection
from django.test.utils import CaptureQueriesContext
from django.urls import reverse

from tests.admin.conftest import ALL, ENTITY, LIST, text_of
from tests.testapp.models import Order
from timeline import BACK, OPEN, Machine, never, on
from timeline.models import Event, RunEntry, TimelineRun
from timeline.policy import TimelinePolicy
from timeline.shortcuts import emit
from timeline.testing import only_timelines

PEOPLE = reverse("admin:timeline_scheduledtask_people")


@dataclass
class Refund:
    cents: int
    way: Literal["bank", "voucher"]
    reason: str
    lines: list[int] | None = None


class Complaint(Machine):
    """Waits for an operator, and is refused when nobody comes."""

    entity = "testapp.Order"
    starts_on = "complaint.made"
    initial = "open"
    table = {
        "open": {"complaint.settled": "settled", "complaint.refunded": "settled", "complaint.parked": "parked"},
        "parked": {"complaint.unparked": BACK, "complaint.late": "settled"},
        "settled": {},
        OPEN: {"complaint.called_off": "settled"},
    }
    timers = {"complaint.late": on("parked", hours=4), "open": never}
    payloads = {"complaint.refunded": Refund}
    asks = {
        "complaint.settled": "timeline.cancel_scheduledtask",
        "complaint.refunded": ("timeline.cancel_scheduledtask", "timeline.move_scheduledtask"),
        "complaint.parked": "timeline.move_scheduledtask",
    }


class Hiding(TimelinePolicy):
    """Of a host that shows not all of its entities to all of its staff."""

    def sees_timeline(self, user, timeline, ref, *, using):
        return False


class Discreet(TimelinePolicy):
    """Of a host that tells nobody what staff write."""

    def sees_decisions(self, user, task):
        return False


@pytest.fixture(autouse=True)
def _known(clock):
    with only_timelines(Complaint):
        yield


@pytest.fixture
def order(clock):
    order = Order.objects.create()
    emit("complaint.made", order)
    return order


@pytest.fixture
def operator(person, browse):
    return browse(person("olga", *ALL))


def links(page, event):
    """Addresses of the buttons of an event on a page."""
    return [
        part.partition('"')[0].replace("&amp;", "&")
        for part in page.split('href="')
        if f"event={event}" in part.partition('"')[0]
    ]


def button(client, order, event="complaint.settled"):
    [link] = links(client.get(f"{ENTITY}?label=testapp.order&id={order.pk}").content.decode(), event)
    return link


class TestPeople:
    def test_lists_what_has_no_deadline_the_longest_wait_first(self, operator, clock):
        for _ in range(3):
            order = Order.objects.create()
            emit("complaint.made", order)
            clock.set(clock.now + timedelta(hours=1))
        page = text_of(operator.get(PEOPLE))

        runs = TimelineRun.objects.order_by("state_at")
        places = [page.index(f"id={run.entity_id}") for run in runs]
        assert places == sorted(places)
        assert PEOPLE in text_of(operator.get(LIST))
        assert "too late" not in page

    def test_has_a_button_only_for_what_the_user_may_say(self, person, browse, order):
        viewer = browse(person("vera", "view_scheduledtask", "move_scheduledtask"))

        page = viewer.get(PEOPLE).content.decode()

        assert not links(page, "complaint.settled")
        assert len(links(page, "complaint.parked")) == len(links(page, "complaint.refunded")) == 1

    def test_asks_for_a_reason_in_the_language_of_who_looks(self, operator, order):
        page = operator.get(button(operator, order), headers={"Accept-Language": "de"}).content.decode()

        assert '<label for="id_reason">Grund' in page

    def test_goes_on_where_there_is_more(self, operator, monkeypatch):
        monkeypatch.setattr("timeline.features.machines.people.SHOWN", 2)
        for _ in range(5):
            emit("complaint.made", Order.objects.create())
        seen, address = [], PEOPLE
        while address:
            page = operator.get(address).content.decode()
            seen += [part.partition('"')[0] for part in page.split("id=")[1:] if part[0].isdigit()]
            more = [part.partition('"')[0] for part in page.split('href="') if "after=" in part.partition('"')[0]]
            address = more[0].replace("&amp;", "&") if more else ""

        assert len(set(seen)) == len(seen) == 5

    def test_asks_as_much_for_many_as_for_few(self, operator, order):
        def statements():
            with CaptureQueriesContext(connection) as queries:
                operator.get(PEOPLE)
            return len(queries)

        few = statements()
        for _ in range(30):
            emit("complaint.made", Order.objects.create())
        assert statements() == few
        assert few <= 12

    def test_leaves_out_what_a_policy_of_the_host_does_not_show(self, operator, order, settings):
        settings.TIMELINE = settings.TIMELINE | {"POLICY": "tests.admin.test_people.Hiding"}

        page = text_of(operator.get(PEOPLE))

        assert "complaint.settled" not in page
        assert f"order {order.pk}" not in page

    @pytest.mark.parametrize("query", ["?machine=nobody", "?machine=%00"])
    def test_knows_no_other_machine(self, operator, query):
        assert operator.get(PEOPLE + query).status_code == 404

    @pytest.mark.parametrize(
        "after",
        [
            *("x", "until/2026-03-01/x", "since/2026-03-01T09:00/00000000-0000-0000-0000-000000000000", "%00"),
            *("never/2026-03-01T09:00%2B00:00/" + "0" * 32, "until/0001-01-01T00:00%2B14:00/" + "0" * 32),
            *("since/9999-12-31T23:59-14:00/" + "0" * 32, "2026-03-01T09:00%2B00:00/" + "0" * 32),
        ],
    )
    def test_begins_anew_where_a_place_makes_no_sense(self, operator, order, after):
        assert links(operator.get(f"{PEOPLE}?after={after}").content.decode(), "complaint.settled")

    def test_is_for_who_may_see_all_tasks(self, person, browse):
        assert browse(person("mia", "view_payload")).get(PEOPLE).status_code == 403


class TestSay:
    def test_moves_the_run_with_a_reason_and_a_name(self, operator, order):
        where = button(operator, order)
        assert "open since" in text_of(operator.get(where))

        page = text_of(operator.post(where, {"reason": "paid <b>by</b> hand"}, follow=True))

        assert "Recorded: complaint.settled." in page
        event = Event.objects.get(name="complaint.settled")
        assert (event.payload, event.actor) == ({"reason": "paid <b>by</b> hand"}, "olga@example.com")
        entry = RunEntry.objects.latest("seq")
        assert (entry.to_state, entry.actor, entry.cause_id) == ("settled", "olga@example.com", event.pk)

    def test_asks_why(self, operator, order):
        page = text_of(operator.post(button(operator, order), {"reason": " "}))

        assert "Nothing was changed yet." in page
        assert TimelineRun.objects.get().state == "open"

    def test_asks_for_what_the_payload_is_declared_to_be(self, operator, order):
        where = button(operator, order, "complaint.refunded")
        assert "cents: " in text_of(operator.post(where, {"cents": "many", "way": "cash", "reason": "x"}))

        operator.post(where, {"cents": "1200", "way": "bank", "reason": "broken"})

        event = Event.objects.get(name="complaint.refunded")
        assert event.payload == {"cents": 1200, "way": "bank", "reason": "broken"}

    @pytest.mark.parametrize(
        "lines", ["[" * 20_000, "9" * 5_000, "[", "NaN"], ids=["deep", "long", "half", "no number"]
    )
    def test_takes_no_json_that_cannot_be_read(self, operator, order, lines):
        given = {"cents": "1200", "way": "bank", "reason": "broken", "lines": lines}

        page = operator.post(button(operator, order, "complaint.refunded"), given)

        assert page.status_code == 200
        assert TimelineRun.objects.get().state == "open"

    def test_sent_twice_is_recorded_once(self, operator, order):
        where = button(operator, order)

        operator.post(where, {"reason": "paid"})
        page = text_of(operator.post(where, {"reason": "paid"}, follow=True))

        assert "It was recorded already: complaint.settled." in page
        assert Event.objects.filter(name="complaint.settled").count() == 1

    def test_from_an_old_page_is_refused_though_the_state_is_the_same_again(self, operator, order):
        where = button(operator, order)
        emit("complaint.parked", order)
        emit("complaint.unparked", order)
        assert TimelineRun.objects.get().state == "open"

        assert "It has moved since this was asked" in text_of(operator.get(where))
        page = text_of(operator.post(where, {"reason": "paid"}))

        assert "has moved since, and is open. Look at it again." in page
        assert not Event.objects.filter(name="complaint.settled").exists()

    def test_is_told_with_its_reason_to_who_may_read_people(self, operator, order, settings):
        operator.post(button(operator, order), {"reason": "paid <b>twice</b>"})
        where = f"{ENTITY}?label=testapp.order&id={order.pk}"

        assert "paid &lt;b&gt;twice&lt;/b&gt;" in text_of(operator.get(where))
        settings.TIMELINE = settings.TIMELINE | {"POLICY": "tests.admin.test_people.Discreet"}
        assert "twice" not in text_of(operator.get(where))

    def test_is_not_taken_by_the_next_run_of_the_entity(self, operator, order):
        where = button(operator, order)
        emit("complaint.called_off", order)
        emit("complaint.made", order)

        page = text_of(operator.post(where, {"reason": "paid"}))

        assert "has moved since, and is open. Look at it again." in page
        assert TimelineRun.objects.get(ended_at=None).moves == 0

    def test_is_nothing_without_the_right(self, person, browse, order, operator):
        where = button(operator, order)
        stranger = browse(person("vera", "view_scheduledtask"))

        assert stranger.get(where).status_code == 404
        absent = where.replace(str(TimelineRun.objects.get().pk), "01900000-0000-7000-8000-000000000000")
        assert stranger.get(absent).status_code == 404
        assert stranger.post(where, {"reason": "x"}).status_code == 404
        assert TimelineRun.objects.get().state == "open"

    @pytest.mark.parametrize(
        "query",
        ["", "?run=x&event=complaint.settled&moves=0", "?run=01900000-0000-7000-8000-000000000000&event=x&moves=x"],
    )
    def test_makes_nothing_of_what_makes_no_sense(self, operator, order, query):
        assert operator.get(reverse("admin:timeline_scheduledtask_say") + query).status_code == 404

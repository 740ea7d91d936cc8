"""The page "What if"."""

from __future__ import annotations

from datetime import timedelta

import pytest
from django.urls import reverse

from tests.admin.conftest import ENTITY, text_of
from tests.testapp.models import Order
from timeline import Machine, Timeline, after, at, task, to
from timeline.features.plans import pages as admin_trying
from timeline.features.plans import what_if
from timeline.models import Event, ScheduledTask, TimelineRun
from timeline.shortcuts import emit
from timeline.testing import only_timelines

WHAT_IF = reverse("admin:timeline_scheduledtask_what_if")


class Shipping(Timeline):
    """Follows a time and a date of the order."""

    entity = "testapp.Order"
    starts_on = "order.placed"
    exits = {"order.returned": "returned"}

    @task(at("ships_at"))
    def ship(self, order): ...

    @task(after(ship, days=7))
    def ask(self, order): ...

    @task(at("due_on"))
    def remind(self, order): ...


@pytest.fixture(autouse=True)
def _known(clock):
    with only_timelines(Shipping):
        yield


@pytest.fixture
def placed(clock):
    order = Order.objects.create(ships_at=(clock.now + timedelta(days=3)).replace(second=0, microsecond=0))
    emit("order.placed", order)
    return order


def where(order):
    return f"{WHAT_IF}?label=testapp.order&id={order.pk}"


def as_it_is(order):
    """What the form sends where nobody typed anything."""
    return {"ships_at": order.ships_at.strftime("%Y-%m-%dT%H:%M"), "due_on": "", "event": ""}


class TestWhatIf:
    def test_offers_the_fields_as_they_are_and_the_events_there_are(self, operator, placed):
        page = text_of(operator.get(where(placed)))

        assert f'value="{as_it_is(placed)["ships_at"]}"' in page
        assert '<option value="order.returned">' in page
        assert where(placed).replace("&", "&amp;") in text_of(
            operator.get(ENTITY, {"label": "testapp.order", "id": placed.pk})
        )

    def test_shows_what_would_move_and_moves_nothing(self, operator, placed):
        was = list(ScheduledTask.objects.order_by("pk").values())
        later = placed.ships_at + timedelta(days=30)

        page = text_of(operator.post(where(placed), as_it_is(placed) | {"ships_at": later.strftime("%Y-%m-%dT%H:%M")}))

        assert page.count("<strong>moved</strong>") == 2
        assert f"{later:%Y-%m-%d %H:%M}" in page
        assert f"{later + timedelta(days=7):%Y-%m-%d %H:%M}" in page
        assert "<figure" in page
        assert list(ScheduledTask.objects.order_by("pk").values()) == was
        placed.refresh_from_db()
        assert placed.ships_at < later

    def test_shows_what_an_event_would_call_off(self, operator, placed):
        page = text_of(operator.post(where(placed), as_it_is(placed) | {"event": "order.returned"}))

        assert "<strong>called off: the run ended by the exit “returned”</strong>" in page
        assert Event.objects.count() == 1

    def test_says_that_nothing_would_change(self, operator, placed):
        page = text_of(operator.post(where(placed), as_it_is(placed)))

        assert "as it is" in page
        assert "<strong>" not in page.partition("What would be ahead")[2]

    def test_takes_a_date_too(self, operator, placed, clock):
        day = (clock.now + timedelta(days=9)).date()

        page = text_of(operator.post(where(placed), as_it_is(placed) | {"due_on": day.isoformat()}))

        assert "<strong>new</strong>" in page
        assert f"{day}" in page

    @pytest.mark.parametrize(
        "given", [{"ships_at": "soon"}, {"due_on": "2027-13-45"}, {"ships_at": "9999-12-31T00:00"}]
    )
    def test_says_what_is_wrong(self, operator, placed, given):
        page = text_of(operator.post(where(placed), as_it_is(placed) | given))

        assert 'role="alert"' in page
        assert "What would be ahead" not in page

    def test_shows_some_of_very_many_those_that_change_first(self, operator, placed, about, monkeypatch):
        monkeypatch.setattr(admin_trying, "MOST_SHOWN", 2)
        for _row in range(3):
            about(placed, hours=1)

        page = text_of(operator.post(where(placed), as_it_is(placed) | {"event": "order.returned"}))

        assert "2 of 5 are shown: those that change first." in page
        assert page.count("<strong>called off") == 2

    def test_refuses_an_entity_with_very_many_rows(self, operator, placed, about, monkeypatch):
        monkeypatch.setattr(what_if, "MOST_OPEN", 0)

        page = text_of(operator.post(where(placed), as_it_is(placed) | {"event": "order.returned"}))

        assert "it has more than 0 open tasks" in page
        assert "What would be ahead" not in page

    @pytest.mark.parametrize("word", ["when", "do"])
    def test_shows_what_a_condition_or_an_effect_raises(self, operator, placed, word, caplog):
        def ask_stock(order):
            raise LookupError("no stock")

        class Sale(Machine):
            entity = "testapp.Order"
            starts_on = "sale.opened"
            initial = "open"
            table = {"open": {"sale.paid": to("paid", **{word: ask_stock})}, "paid": {}}

        with only_timelines(Sale):
            emit("sale.opened", placed)
            page = text_of(operator.post(where(placed), as_it_is(placed) | {"event": "sale.paid"}))

        assert "The code of this site raised LookupError: no stock" in page
        assert "What would be ahead" not in page
        assert TimelineRun.objects.get(timeline="sale").state == "open"
        assert "Traceback" in caplog.text

    def test_refuses_an_event_that_no_timeline_knows(self, operator, placed):
        page = text_of(operator.post(where(placed), as_it_is(placed) | {"event": "order.retruned"}))

        assert "Did you mean &#x27;order.returned&#x27;?" in page
        assert "What would be ahead" not in page

    def test_is_for_who_may_see_all_tasks(self, person, browse, placed):
        assert browse(person("ulla", "view_user")).get(where(placed)).status_code in (302, 403)

    @pytest.mark.parametrize("query", ["", "?label=testapp.order&id=999", "?label=auth.group&id=1", "?label=x&id=%00"])
    def test_is_not_there_for_what_is_not(self, operator, query):
        assert operator.get(f"{WHAT_IF}{query}").status_code == 404

    def test_names_the_events_there_are_in_the_language_of_who_asks(self, operator, placed):
        assert "Known: order.placed, order.returned." in text_of(operator.get(where(placed)))
        page = text_of(operator.get(where(placed), headers={"accept-language": "de"}))

        assert ">Ereignis</label>" in page
        assert "Bekannt: order.placed, order.returned." in page

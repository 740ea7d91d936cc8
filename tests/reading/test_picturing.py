"""Picture: past, now and foreseen on one axis."""

from datetime import timedelta

import pytest

from tests.testapp.models import Order
from timeline import Timeline, after, at, task
from timeline.lifecycle import State
from timeline.models import ScheduledTask
from timeline.reading.text_pictures import picture
from timeline.shortcuts import cancel, start
from timeline.testing import only_timelines


class Delivery(Timeline):
    entity = "testapp.Order"

    @task(after(days=1))
    def pack(self, order):
        return None

    @task(after(days=2))
    def ship(self, order):
        return None

    @task(after(ship, days=2))
    def ask(self, order):
        return None

    @task(at("ships_at"))
    def bill(self, order):
        return None

    @task(after(bill, days=1))
    def remind(self, order):
        return None


class DeliveryInShadow(Delivery):
    name = "delivery"
    shadow = True


@pytest.fixture(autouse=True)
def _story(clock, now):
    clock.set(now)
    with only_timelines(Delivery):
        yield


class TestPicture:
    def test_marks_past_now_and_what_is_foreseen(self, order, clock):
        start(Delivery, order)
        clock.advance(days=1, hours=1)

        assert picture(order, now=clock.now, using="default").split("\n") == [
            f"testapp.order {order.pk}",
            "  ✓ 2026-03-02 09:00  delivery.pack    completed",
            "  ── now: 2026-03-02 10:00 UTC ──",
            "  ○ 2026-03-03 09:00  delivery.ship    scheduled",
            "  ┄ 2026-03-05 09:00  delivery.ask     foreseen: 2 days after ship completes",
            "  ┄ some day          delivery.remind  foreseen: 1 day after bill completes",
        ]

    def test_shows_seconds_where_things_are_of_one_minute(self, order, clock):
        start(Delivery, order)
        order.ships_at = clock.now + timedelta(days=1, seconds=10)
        order.save()

        assert picture(order, now=clock.now, using="default").split("\n") == [
            f"testapp.order {order.pk}",
            "  ── now: 2026-03-01 09:00:00 UTC ──",
            "  ○ 2026-03-02 09:00:00  delivery.pack    scheduled",
            "  ○ 2026-03-02 09:00:10  delivery.bill    scheduled",
            "  ○ 2026-03-03 09:00:00  delivery.ship    scheduled",
            "  ┄ 2026-03-03 09:00:10  delivery.remind  foreseen: 1 day after bill completes",
            "  ┄ 2026-03-05 09:00:00  delivery.ask     foreseen: 2 days after ship completes",
        ]

    def test_leaves_room_for_them_where_there_is_no_time(self, order, clock):
        start(Delivery, order)
        clock.set(clock.now + timedelta(days=1, seconds=-10))

        shown = picture(order, now=clock.now, using="default").split("\n")
        assert "  ┄ some day          delivery.remind  foreseen: 1 day after bill completes" in shown
        clock.advance(seconds=20)
        shown = picture(order, now=clock.now, using="default").split("\n")
        assert "  ┄ some day             delivery.remind  foreseen: 1 day after bill completes" in shown

    def test_marks_what_would_have_run_and_what_is_ahead_in_shadow(self, order, clock):
        with only_timelines(DeliveryInShadow):
            start(DeliveryInShadow, order)
            clock.advance(days=1, hours=1)
            order.ships_at = clock.now
            order.save()
            shown = picture(order, now=clock.now, using="default").split("\n")

        assert shown == [
            f"testapp.order {order.pk}",
            "  ✓ 2026-03-02 09:00  delivery.pack    completed (in shadow: would have run)",
            "  ◎ 2026-03-02 10:00  delivery.bill    available, in shadow",
            "  ── now: 2026-03-02 10:00 UTC ──",
            "  ○ 2026-03-03 09:00  delivery.ship    scheduled, in shadow",
            "  ┄ 2026-03-03 10:00  delivery.remind  foreseen: 1 day after bill completes, in shadow",
            "  ┄ 2026-03-05 09:00  delivery.ask     foreseen: 2 days after ship completes, in shadow",
        ]

    def test_marks_nothing_ahead_once_the_shadow_is_lifted(self, order, clock):
        with only_timelines(DeliveryInShadow):
            start(DeliveryInShadow, order)
            clock.advance(days=1, hours=1)

        past, ahead = picture(order, now=clock.now, using="default").split("── now")
        assert "delivery.pack    completed (in shadow: would have run)" in past
        assert "delivery.ship" in ahead
        assert "shadow" not in ahead

    def test_says_that_nothing_is_ahead(self, order, now):
        assert picture(order, now=now, using="default").split("\n") == [
            f"testapp.order {order.pk}",
            "  ── now: 2026-03-01 09:00 UTC ──",
            "  nothing ahead",
        ]

    def test_puts_what_ended_where_it_ended_with_its_reason(self, order, now):
        start(Delivery, order)
        cancel(ScheduledTask.objects.get(task_key="delivery.ship"), reason="not now", actor="ada")

        past, ahead = picture(order, now=now, using="default").split("── now")

        assert "– 2026-03-01 09:00  delivery.ship    cancelled (not now, by ada)" in past
        assert "delivery.ship" not in ahead
        assert "delivery.ask" not in past + ahead

    def test_leaves_out_other_entities(self, order, now):
        start(Delivery, Order.objects.create())

        assert "delivery" not in picture(order, now=now, using="default")

    def test_shows_the_systems_own(self, make_task, now):
        make_task(task_key="sweep.sweep")

        shown = picture(None, now=now, using="default").split("\n")

        assert (shown[0], shown[1]) == ("the system", "  ○ 2026-03-01 09:00  sweep.sweep  scheduled")

    def test_has_a_sign_for_each_state(self, make_task, now):
        for state in State:
            make_task(state=state, task_key=f"a.{state}")

        shown = picture(None, now=now, using="default").split("\n")

        assert {line.split()[0] for line in shown[1:-2]} == set("○◎●↻✓✗–")
        assert {line.split()[4] for line in shown[1:-2]} == set(State)


class TestPictureOfAFailure:
    @pytest.mark.parametrize(
        ("reason", "error", "said"),
        [
            ("error", "builtins.KeyError: 'name'", "discarded (builtins.KeyError: 'name')"),
            ("error", "", "discarded ('name')"),  # Erased.
            ("handler", "timeline.exceptions.Discard: 'name'", "discarded (its handler decided so: 'name')"),
        ],
    )
    def test_names_the_class_of_an_error(self, order, make_task, now, reason, error, said):
        about = {"entity_label": "testapp.order", "entity_id": str(order.pk)}
        told = {"state": State.DISCARDED, "reason_code": reason, "reason": "'name'", "error": error}
        make_task(task_key="delivery.pack", **about, **told)

        assert picture(order, now=now, using="default").split("\n")[1].endswith(said)

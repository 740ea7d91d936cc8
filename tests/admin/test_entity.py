"""The page of an entity, and the ways that lead to it."""

from __future__ import annotations

import random
import re
from datetime import timedelta
from itertools import pairwise

import pytest
from django.contrib.admin import AdminSite, ModelAdmin
from django.db import connection
from django.test import RequestFactory
from django.test.utils import CaptureQueriesContext
from django.urls import reverse

from tests.admin.conftest import ALL, ENTITY, Care, detail, text_of
from tests.testapp.models import Order
from timeline import Timeline, after, task
from timeline.admin import TaskAdmin, TimelineAdminMixin
from timeline.admin.entities import MAX_RUNS, MAX_SHOWN, Item
from timeline.admin.entity_picture import LETTER, drawing
from timeline.lifecycle import State
from timeline.models import ScheduledTask, TimelineRun
from timeline.policy import TimelinePolicy
from timeline.shortcuts import cancel, emit, hold, leave, start
from timeline.testing import only_timelines


class Packing(Timeline):
    """About the same orders, again and again."""

    entity = "testapp.Order"

    @task(after(days=1))
    def pack(self, order): ...


def page(client, entity):
    return client.get(ENTITY, {"label": entity._meta.label_lower, "id": entity.pk})


class TestWhatItShows:
    def test_past_now_and_future_with_what_is_foreseen_dashed(self, operator, order, about, clock):
        emit("order.placed", order)
        about(order, -5, state=State.CANCELLED, reason="they asked", reason_code="operator")

        text = text_of(page(operator, order))

        assert re.search(r'<g class="tl-mark tl-foreseen"><title>care.follow_up, 2026-03-11', text)
        assert "stroke-dasharray" in text
        assert "7 days after greet completes" in text
        assert re.search(r'<g class="tl-mark tl-cancelled tl-ghost"><title>care.call, [^<]* – they asked</title>', text)
        assert 'class="tl-now"' in text

    def test_signs_lead_to_their_tasks(self, operator, order, about):
        row = about(order, 5)
        emit("order.placed", order)

        text = text_of(page(operator, order))

        signs = re.findall(r'<svg class="tl-place"[^>]*>(?:<a href="([^"]*)" tabindex="-1">)?<g class="tl-mark', text)
        assert detail(row) in signs
        assert signs.count("") == 2  # What is foreseen, and the event.

    def test_heads_of_tables_are_in_the_language_of_who_looks(self, operator, order, about):
        """They are written once for each language, and kept."""
        about(order, 5)

        told = [
            text_of(operator.get(ENTITY, {"label": "testapp.order", "id": order.pk}, headers={"accept-language": code}))
            for code in ("en", "de", "en")
        ]

        assert [">When</th>" in text for text in told] == [True, False, True]
        assert [">Wann</th>" in text for text in told] == [False, True, False]

    def test_says_each_state_in_words_and_by_shape(self, operator, order, about):
        for number, state in enumerate(State):
            about(order, 24 * number, state=state)

        text = text_of(page(operator, order))

        for state in State:
            ghost = " tl-ghost" if state == State.CANCELLED else ""
            assert f'tl-mark tl-{state}{ghost}"><title>' in text
        shapes = set(re.findall(r'class="tl-ground" r="9"/> (.*?) ?</g>', text))
        assert len(shapes) == len(State)

    def test_keeps_the_page_of_what_cannot_be_read(self, operator, order, monkeypatch):
        def unseal(*_value):
            raise ValueError("the key is lost")

        emit("order.placed", order)
        monkeypatch.setattr(Order._meta.get_field("note"), "from_db_value", unseal, raising=False)

        text = text_of(page(operator, order))

        assert f"order {order.pk}" in text
        assert "This entity has been deleted" not in text

    def test_keeps_the_page_of_what_was_deleted(self, operator, order):
        emit("order.placed", order)
        key = order.pk
        order.delete()

        text = text_of(operator.get(ENTITY, {"label": "testapp.order", "id": key}))

        assert "This entity has been deleted" in text
        assert "the entity was deleted" in text

    def test_shows_runs_and_how_they_ended(self, operator, order):
        emit("order.placed", order)
        leave("care", order, reason="wrong address")

        text = text_of(page(operator, order))
        assert "wrong address" in text
        assert f'<a href="{reverse("admin:timeline_scheduledtask_timeline", args=["care"])}">care</a>' in text

    def test_shows_the_latest_runs_and_what_is_foreseen_of_an_older_one(self, operator, order, clock):
        with only_timelines(Care, Packing):
            start("care", order)
            for _ in range(MAX_RUNS + 1):
                clock.advance(minutes=1)
                start("packing", order)
                leave("packing", order, reason="packed")

            context = page(operator, order).context

        latest = TimelineRun.objects.filter(timeline="packing").order_by("-started_at")[:MAX_RUNS]
        assert [run for run, _why in context["runs"]] == list(latest)
        assert [item.key for item in context["ahead"]] == ["care.greet", "care.follow_up"]

    def test_is_there_for_an_entity_that_has_nothing_yet(self, operator, order):
        text = text_of(page(operator, order))

        assert "Nothing is ahead." in text
        assert "<figure" not in text

    def test_is_there_for_the_system(self, operator, about):
        about(None)

        assert "Timeline of the system" in text_of(operator.get(ENTITY))

    def test_shows_the_nearest_of_very_many(self, operator, order, about):
        rows = [about(order, hours + 1) for hours in range(MAX_SHOWN + 5)]

        text = text_of(page(operator, order))

        assert detail(rows[0]) in text
        assert detail(rows[-1]) not in text
        assert f"Only the {MAX_SHOWN} nearest" in text

    def test_asks_as_often_for_ten_rows_as_for_a_hundred(self, operator, about):
        counts = []
        for number in (10, 100):
            order = Order.objects.create()
            emit("order.placed", order)
            for hours in range(number):
                about(order, hours)
            with CaptureQueriesContext(connection) as queries:
                page(operator, order)
            counts.append(len(queries))

        assert (
            counts[0] == counts[1] == 7
        )  # Four of them are Django's: session and user of the request, and what they may.


class TestEvents:
    def test_are_flags_in_the_picture_and_lines_of_the_past(self, operator, order):
        emit("order.placed", order)

        response = page(operator, order)

        text = text_of(response)
        assert re.search(r'<g class="tl-mark tl-event"><title>order.placed, [^<]*</title>', text)
        assert [item.full_key for item in response.context["past"]] == ["order.placed"]
        assert response.context["drawing"].lanes[0].name == "Events"

    def test_that_mean_nothing_to_a_timeline_one_sees_are_left_out(self, operator, order, settings):
        settings.TIMELINE = {**settings.TIMELINE, "RECORDED_EVENTS": ["order.looked_at"]}
        emit("order.looked_at", order)

        assert "order.looked_at" not in text_of(page(operator, order))

    def test_are_those_of_this_entity(self, operator, order):
        emit("order.placed", Order.objects.create())

        assert "order.placed" not in text_of(page(operator, order))


class TestTheAnswer:
    """One line on top."""

    def test_says_what_is_next_when_and_that_it_is_not_on_hold(self, operator, order, about):
        about(order, 24)
        about(order, 30)

        text = text_of(page(operator, order))

        assert "<strong>Next: care.call, tomorrow 09:00, in 1 day. Held: no.</strong>" in text

    def test_says_until_when_it_is_on_hold(self, operator, order, about, clock):
        about(order, 72)
        hold(order, reason="so", until=clock.now + timedelta(days=1))

        text = text_of(page(operator, order))

        assert "<strong>Next: care.call, 2026-03-04 09:00, in 3 days. Held until 2026-03-02 09:00.</strong>" in text

    def test_says_that_nothing_is_ahead(self, operator, order, about):
        about(order, -5, state=State.COMPLETED)

        assert "<strong>Nothing is ahead. Held: no.</strong>" in text_of(page(operator, order))

    def test_says_that_it_is_late(self, operator, order, about):
        about(order, -2)

        assert "<strong>Next: care.call, today 07:00, 2 hours ago. Held: no.</strong>" in text_of(page(operator, order))

    def test_says_what_runs(self, operator, order, about):
        about(order, -2, state=State.ACTIVE)

        assert "<strong>Now: care.call is running. Held: no.</strong>" in text_of(page(operator, order))


class TestRelativeTimes:
    def test_stand_beside_what_is_ahead_alone(self, operator, order, about):
        about(order, 24)
        about(order, -24, state=State.COMPLETED)

        text = text_of(page(operator, order))

        assert text.count('<span class="tl-quiet tl-away">') == 1
        assert '<span class="tl-quiet tl-away">in 1 day</span>' in text


class TestDays:
    def page(self, operator, order, day):
        return operator.get(ENTITY, {"label": "testapp.order", "id": order.pk, "span": "day", "day": day})

    def test_lead_to_the_one_before_and_the_one_after(self, operator, order, about):
        about(order, 5)

        links = [
            re.findall(r"day=([\d-]+)\" rel=\"(\w+)", text_of(self.page(operator, order, day)))
            for day in ("", "2026-03-10")
        ]

        assert links == [
            [("2026-02-28", "prev"), ("2026-03-02", "next")],
            [("2026-03-09", "prev"), ("2026-03-11", "next")],
        ]

    def test_show_what_is_on_them_from_midnight_to_midnight(self, operator, order, about):
        about(order, 24 * 9)
        about(order, 24 * 10, task_key="care.greet")

        response = self.page(operator, order, "2026-03-10")

        assert [lane.key for lane in response.context["drawing"].lanes] == ["care.call"]
        assert response.context["drawing"].lanes[0].marks[0].x == pytest.approx(37.5)
        assert response.context["drawing"].now_x is None
        assert 'class="tl-now"' not in text_of(response)

    def test_that_have_nothing_say_so(self, operator, order, about):
        about(order, 5)

        assert "The picture shows 2026-03-20: nothing is on that day." in text_of(
            self.page(operator, order, "2026-03-20")
        )

    @pytest.mark.parametrize("day", ["0001-01-01", "9999-12-31", "tomorrow", "2026-02-30", "2026-W10-1\x00"])
    def test_that_there_are_none_are_today(self, operator, order, about, day):
        about(order, 5)

        assert self.page(operator, order, day).context["drawing"].now_x == pytest.approx(50)

    def test_say_where_the_rest_is_of_very_many(self, operator, order, about):
        for number in range(101):
            about(order, number + 1)

        text = text_of(self.page(operator, order, "2026-04-10"))

        assert "There may be more on this day than was read:" in text
        assert f"state=all&amp;day=2026-04-10&amp;q=testapp.order%20{order.pk}" in text


class TestGhosts:
    def test_stand_where_they_were_due_and_in_the_table_when_they_were_called_off(self, operator, order, about, clock):
        row = about(order, 48)
        cancel(row, reason="they asked", actor="eva")

        response = page(operator, order)
        [mark] = response.context["drawing"].lanes[0].marks

        assert mark.item.drawn_at == clock.now + timedelta(hours=48)
        assert [item.at for item in response.context["past"]] == [clock.now]
        assert "care.call, 2026-03-03 09:00: cancelled, 2026-03-01 09:00 – they asked" in text_of(response)


class TestSigns:
    def test_explained_are_those_in_the_picture(self, operator, order, about, clock):
        about(order, 5)
        about(order, -5, state=State.COMPLETED)
        about(order, -24 * 20, state=State.DISCARDED, finished_at=clock.now - timedelta(days=19))
        where = {"label": "testapp.order", "id": order.pk}

        told = [
            [state for state, _label in operator.get(ENTITY, where | more).context["signs"]]
            for more in ({}, {"span": "day"})
        ]

        assert told == [["scheduled", "completed", "discarded"], ["scheduled", "completed"]]


class TestSpans:
    @pytest.mark.parametrize(
        ("span", "keys"),
        [("day", {"care.call"}), ("week", {"care.call", "care.greet"}), ("", {"care.call", "care.greet", "care.late"})],
    )
    def test_narrow_the_picture_and_leave_the_tables(self, operator, order, about, span, keys):
        for key, hours in (("care.call", 5), ("care.greet", 50), ("care.late", 500)):
            about(order, hours, task_key=key)

        response = operator.get(ENTITY, {"label": "testapp.order", "id": order.pk, "span": span})

        assert {lane.key for lane in response.context["drawing"].lanes} == keys
        assert len(response.context["ahead"]) == 3
        assert response.context["drawing"].now_x == pytest.approx(50) or not span

    def test_that_are_none_show_all_of_it(self, operator, order, about):
        about(order, 500)

        response = operator.get(ENTITY, {"label": "testapp.order", "id": order.pk, "span": "<b>"})

        assert response.context["span"] == ""
        assert len(response.context["drawing"].lanes) == 1


class TestWhoSees:
    def test_an_entity_one_may_not_see_is_as_one_that_is_not_there(self, browse, person, about):
        ada = person("ada")
        about(ada, task_key="account.welcome")
        client = browse(person("staff", is_staff=True))

        missing = client.get(ENTITY, {"label": "accounts.user", "id": "999999"})
        answer = page(client, ada)

        assert (answer.status_code, answer.content) == (404, missing.content)

    @pytest.mark.parametrize(
        "given",
        [
            {"label": "testapp.order"},
            {"id": "1"},
            {"label": "no.model", "id": "1"},
            {"label": "testapp.order", "id": "x"},
            {"label": "testapp.order", "id": "9" * 30},
            {"label": "testapp.order", "id": "\x00"},
            {"label": "testapp.order\x00", "id": "1"},
        ],
    )
    def test_what_was_never_there_is_not_found(self, operator, given):
        assert operator.get(ENTITY, given).status_code == 404

    @pytest.mark.parametrize("spelling", ["0{}", " {}", "+{}", "{}.0"])
    def test_each_has_one_address(self, operator, order, about, spelling):
        """Else two addresses would show one entity, and half of its rows each."""
        about(order)

        assert page(operator, order).status_code == 200
        assert operator.get(ENTITY, {"label": "testapp.order", "id": spelling.format(order.pk)}).status_code == 404
        assert operator.get(ENTITY, {"label": "Testapp.Order", "id": order.pk}).status_code == 404

    def test_digits_of_other_scripts_name_nothing(self, operator, about):
        order = Order.objects.create(pk=17)
        about(order)

        assert operator.get(ENTITY, {"label": "testapp.order", "id": "١٧"}).status_code == 404

    def test_of_another_no_row_is_read(self, browse, person, about):
        """How long it takes to find none of one's own would tell how many there are."""
        order = Order.objects.create()
        about(order)
        client = browse(person("eve", is_staff=True))

        for key in (order.pk, 987654):
            with CaptureQueriesContext(connection) as asked:
                answer = client.get(ENTITY, {"label": "testapp.order", "id": key})
            assert answer.status_code == 404
            assert not [one["sql"] for one in asked if "timeline_scheduledtask" in one["sql"]]

    def test_staff_see_their_own(self, browse, person, about):
        staff = person("staff", is_staff=True)

        assert page(browse(staff), staff).status_code == 200


class TestDrawing:
    def test_keeps_everything_on_the_axis_in_order(self, now, clock):
        clock.advance(days=1)
        at = [now.replace(day=day) for day in (1, 2, 20, 28)]
        items = [Item("care.call", moment, "scheduled", "scheduled", "") for moment in at]

        drawn = drawing(items, now=clock.now, zone=now.tzinfo)

        places = [mark.x for lane in drawn.lanes for mark in lane.marks]
        assert places == sorted(places)
        assert all(4 <= place <= 96 for place in [*places, drawn.now_x])
        assert 2 <= len(drawn.ticks) <= 8

    def test_is_cut_before_what_is_far_away_so_that_what_is_near_can_be_told_apart(self, now):
        near = [Item("a.b", now + timedelta(minutes=each), "completed", "completed", "") for each in (-12, -6, -1, 10)]
        far = Item("a.over", now + timedelta(days=240), "scheduled", "scheduled", "")

        drawn = drawing([*near, far], held_until=now + timedelta(days=500), now=now, zone=now.tzinfo)

        places = [mark.x for mark in drawn.lanes[0].marks]
        assert drawn.cut_x is not None
        assert places == sorted(places)
        assert places[-1] - places[0] > 60
        assert max(*places, drawn.now_x) < drawn.cut_x
        [mark] = drawn.lanes[1].marks
        assert drawn.cut_x < mark.x < 96
        assert mark.text == "in 7\xa0months, 3\xa0weeks"
        assert mark.is_before
        assert drawn.ticks[-1].text == f"{far.at:%Y-%m-%d}"
        assert drawn.held_x + drawn.held <= 100

    @pytest.mark.parametrize("days", [[25, 30], [-30, -5, 0.2, 25, 30], [-1, -0.5, 0.5, 3, 60, 61, 62, 63]])
    def test_is_not_cut_where_much_is_far_away_or_nothing_very_far(self, now, days):
        items = [Item("a.b", now + timedelta(days=each), "scheduled", "scheduled", "") for each in days]

        assert drawing(items, now=now, zone=now.tzinfo).cut_x is None

    def test_is_not_cut_where_a_span_was_asked_for(self, now):
        items = [
            Item("a.b", now + timedelta(minutes=each), "done", "", "") for each in (-12, -6, -1, 10, 60 * 24 * 240)
        ]

        assert drawing(items, span=timedelta(days=1), now=now, zone=now.tzinfo).cut_x is None

    @pytest.mark.parametrize("years", [0, 1, 100, 6000])
    def test_takes_any_span(self, now, years):
        items = [Item("a.b", now.replace(year=now.year + years), "scheduled", "scheduled", "")]

        drawn = drawing(items, now=now, zone=now.tzinfo)

        assert len(drawn.ticks) <= 8

    def test_lets_no_words_overlap(self, now):
        items = [Item("a.b", now.replace(minute=minute), "completed", "completed", "") for minute in range(60)]

        [lane] = drawing(items, now=now, zone=now.tzinfo).lanes

        assert len([mark for mark in lane.marks if mark.text]) < 15

    @pytest.mark.parametrize("seed", range(20))
    def test_lets_no_words_overlap_another_sign_other_words_or_the_line_of_now(self, now, seed):
        chance = random.Random(seed)  # noqa: S311 (the same places each time)
        hours = [chance.uniform(-50, 50) for _ in range(chance.randint(1, 14))]
        items = [Item("a.b", now + timedelta(hours=each), "retryable", "long words of a state", "") for each in hours]

        drawn = drawing(items, now=now, zone=now.tzinfo)
        marks, pixel = drawn.lanes[0].marks, 600 / 100
        words = []
        for mark in marks:
            begin, width = mark.x * pixel + 12, LETTER * len(mark.text)
            if mark.text:
                words.append(
                    (mark.x * pixel - 12 - width, mark.x * pixel - 12) if mark.is_before else (begin, begin + width)
                )

        for begin, end in words:
            assert not begin < drawn.now_x * pixel < end
            assert not [mark for mark in marks if begin < mark.x * pixel < end]
            assert begin >= 0
            assert end <= 600
        assert all(end <= begin for (_begin, end), (begin, _end) in pairwise(sorted(words)))

    def test_cuts_words_that_do_not_fit(self, now):
        items = [
            Item("a.b", now + timedelta(hours=each), "active", "long words of a state", "") for each in (1, 6, 11, 25)
        ]

        texts = [mark.text for mark in drawing(items, now=now, zone=now.tzinfo).lanes[0].marks]

        assert texts == ["long words …", "long words …", "long words of a state", "long words of a sta…"]

    @pytest.mark.parametrize("hours", [18, 20, 30, 40, 60, 100, 400])
    def test_keeps_days_where_half_of_the_words_are_left_out(self, now, hours):
        items = [Item("a.b", now + timedelta(hours=hours), "scheduled", "scheduled", "")]

        ticks = drawing(items, now=now, zone=now.tzinfo).ticks

        assert [tick.text for tick in ticks if "-" in tick.text and not tick.is_minor]
        assert all(one.is_minor != other.is_minor for one, other in pairwise(ticks))

    @pytest.mark.parametrize(("hours", "share"), [(None, 0), (-1, 0), (12, 0.5), (24, 1), (10_000, 1)])
    def test_is_hatched_as_long_as_it_is_on_hold(self, now, hours, share):
        items = [Item("a.b", now, "scheduled", "scheduled", "")]
        until = None if hours is None else now + timedelta(hours=hours)

        drawn = drawing(items, span=timedelta(hours=48), held_until=until, now=now, zone=now.tzinfo)

        assert drawn.held == pytest.approx(share * (100 - drawn.now_x))

    def test_is_none_of_nothing(self, now):
        assert drawing([], now=now, zone=now.tzinfo) is None


class TestTheButton:
    def test_leads_from_an_accounts_own_page(self, person, browse):
        admin = person("admin", is_staff=True, is_superuser=True)

        text = text_of(browse(admin).get(reverse("admin:accounts_user_change", args=[admin.pk])))

        where = re.search(r'<a href="([^"]+)" class="timelinelink">Timeline</a>', text).group(1).replace("&amp;", "&")
        assert browse(admin).get(where).status_code == 200
        assert "historylink" in text

    def test_is_there_for_those_who_may_see_the_timeline(self, person, browse, user):
        permissions = ("view_user", "change_user")
        without, also = person("one", *permissions), person("two", *permissions, "view_scheduledtask")
        where = reverse("admin:accounts_user_change", args=[user.pk])

        assert "timelinelink" not in text_of(browse(without).get(where))
        assert "timelinelink" in text_of(browse(also).get(where))

    def test_keeps_a_template_of_the_hosts_own(self, person, user):
        class Own(TimelineAdminMixin, ModelAdmin):
            change_form_template = "admin/own_change_form.html"

        request = RequestFactory().get("/")
        request.user = person("admin", *ALL, is_superuser=True)

        site = AdminSite()
        site.register(ScheduledTask, TaskAdmin)
        own = Own(type(user), site)
        with pytest.raises(Exception, match="own_change_form"):
            own.change_view(request, str(user.pk))
        assert ScheduledTask.objects.count() == 0


class TestItsOwnPage:
    def where(self, user):
        return f"{ENTITY}?label=accounts.user&id={user.pk}"

    @pytest.mark.parametrize("may_view", [True, False])
    def test_is_for_who_may_open_it(self, person, browse, about, may_view):
        about(ada := person("ada"), task_key="account.welcome")
        eva = person("eva", "view_scheduledtask", *(["view_user"] if may_view else []))

        page = text_of(browse(eva).get(self.where(ada)))

        address = reverse("admin:accounts_user_change", args=[ada.pk])
        assert (f'href="{address}">Its own page</a>' in page) == may_view

    def test_is_none_where_the_model_has_no_admin(self, operator, order, about):
        about(order)

        assert "Its own page" not in text_of(operator.get(f"{ENTITY}?label=testapp.order&id={order.pk}"))


class ShowsCustomers(TimelinePolicy):
    """Has a page for each order, for those who may call off."""

    def customer_page(self, user, entity):
        return f"/orders/{entity.pk}/?a=1&b=2" if user.has_perm("timeline.cancel_scheduledtask") else ""


class TestWhatTheCustomerSees:
    @pytest.mark.parametrize("may_cancel", [True, False])
    def test_is_where_the_policy_says(self, settings, person, browse, order, about, may_cancel):
        settings.TIMELINE = {**settings.TIMELINE, "POLICY": "tests.admin.test_entity.ShowsCustomers"}
        about(order)
        eva = person("eva", "view_scheduledtask", *(["cancel_scheduledtask"] if may_cancel else []))

        page = text_of(browse(eva).get(f"{ENTITY}?label=testapp.order&id={order.pk}"))

        address = f'href="/orders/{order.pk}/?a=1&amp;b=2">What the customer sees</a>'
        assert (address in page) == may_cancel

    def test_is_nowhere_unless_it_says_so(self, operator, order, about):
        about(order)

        assert "What the customer sees" not in text_of(operator.get(f"{ENTITY}?label=testapp.order&id={order.pk}"))

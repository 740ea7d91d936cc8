"""Holds in the admin: seen, made and released."""

from __future__ import annotations

import re
from datetime import UTC, datetime, timedelta
from urllib.parse import urlencode
from zoneinfo import ZoneInfo

import pytest
from django.db import connection
from django.test.utils import CaptureQueriesContext
from django.urls import reverse

from tests.admin import conftest as admin
from tests.admin.conftest import ALL, ENTITY, LIST, text_of
from tests.testapp.models import Order
from timeline.features.holds import pages
from timeline.features.holds.store import names_to_hold
from timeline.features.holds.verbs import park
from timeline.models import EntityRef, Hold, Scope
from timeline.reading import attention
from timeline.shortcuts import hold, release

about = admin.about  # Fixtures.
browse = admin.browse
clock = admin.clock
operator = admin.operator
person = admin.person

HOLDS = reverse("admin:timeline_scheduledtask_holds")
NEW = reverse("admin:timeline_scheduledtask_hold")
RELEASE = reverse("admin:timeline_scheduledtask_release")


@pytest.fixture
def holder(person, browse):
    return browse(person("hanna", *ALL, "hold_tasks"))


@pytest.fixture
def where(order):
    """What the addresses say of the order."""
    return {"label": "testapp.order", "id": str(order.pk)}


def releasing(held, **where):
    """The address of the page that asks whether it is to be released."""
    return f"{RELEASE}?{urlencode({'hold': getattr(held, 'pk', held), **where})}"


def asked(where):
    """The address of the page that asks."""
    return f"{NEW}?label={where['label']}&id={where['id']}"


class TestHold:
    def test_says_first_what_it_would_hold(self, holder, about, order, where):
        about(order, 50)
        about(order, -1)

        page = text_of(holder.get(asked(where)))

        assert f"Put order {order.pk} on hold" in page
        assert "It holds 2 tasks, of which 1 is due now or in the next 24 hours." in page
        assert "Or until another time (UTC)</label>" in page
        assert f'<li><a href="{ENTITY}?label=testapp.order&amp;id={order.pk}">order {order.pk}</a></li>' in page
        assert not Hold.objects.exists()

    def test_puts_an_entity_on_hold_for_a_reason(self, holder, order, where, clock):
        until = (clock.now + timedelta(days=2)).strftime("%Y-%m-%dT%H:%M")

        answer = holder.post(asked(where), {"until": until, "then": "shift", "reason": "a dispute"})

        made = Hold.objects.get()
        assert answer["Location"] == f"{ENTITY}?label=testapp.order&id={order.pk}"
        assert (made.entity_ref, made.then, made.reason) == (
            EntityRef("testapp.order", str(order.pk)),
            "shift",
            "a dispute",
        )
        assert made.actor == "hanna@example.com"
        assert made.until.strftime("%Y-%m-%dT%H:%M") == until

    def test_is_made_once_though_it_is_sent_twice(self, holder, where):
        for _ in range(2):
            holder.post(asked(where), {"then": "run", "reason": "a dispute"})

        assert Hold.objects.count() == 1

    def test_is_made_and_released_by_who_has_a_longer_name_than_rows_hold(self, person, browse, where):
        """Their name may be an address, which is often longer."""
        long = browse(person("h" * 180, *ALL, "hold_tasks"))
        for _ in range(2):
            long.post(asked(where), {"then": "run", "reason": "a dispute"})
        long.post(releasing(Hold.objects.get()))

        made = Hold.objects.get()
        assert made.actor == made.released_by == f"{'h' * 149}…"

    @pytest.mark.parametrize(
        ("given", "said"),
        [
            ({"then": "run", "reason": ""}, "This field is required"),
            ({"then": "run", "reason": "x" * 201}, "at most 200"),
            ({"then": "explode", "reason": "x"}, "Select a valid choice"),
            ({"then": "run", "reason": "x", "until": "2001-01-01T00:00"}, "This time has passed"),
            ({"then": "run", "reason": "x", "until": "9999-01-01T00:00"}, "between the years"),
            ({"then": "run", "reason": "x", "until": "soon"}, "Enter a valid date/time"),
            ({"then": "run", "reason": "x", "ends": "never"}, "Select a valid choice"),
            ({"then": "run", "reason": "x", "ends": "hour", "until": "2999-01-01T00:00"}, "and not both"),
            ({"then": "run", "reason": "x", "ends": "hour", "asked_at": "AGES"}, "This time has passed"),
        ],
    )
    def test_says_what_is_wrong_and_holds_nothing(self, holder, where, clock, given, said):
        if "asked_at" in given:
            given = {**given, "asked_at": (clock.now - timedelta(hours=9)).isoformat()}
        page = text_of(holder.post(asked(where), given))

        assert said in page
        assert not Hold.objects.exists()

    @pytest.mark.parametrize(
        ("what", "scope", "target"),
        [
            ("timeline:care", "timeline", "care"),
            ("task:care.call", "task", "care.call"),
            ("queue:default", "queue", "default"),
            ("tag:mail", "tag", "mail"),
            ("everything", "everything", ""),
        ],
    )
    def test_holds_whatever_can_be_chosen(self, holder, what, scope, target):
        assert f'value="{what}"' in text_of(holder.get(HOLDS))

        answer = holder.post(f"{NEW}?what={what}", {"then": "run", "reason": "moving"})

        assert answer["Location"] == HOLDS
        assert [(made.scope, made.target) for made in Hold.objects.all()] == [(scope, target)]

    def test_holds_several_things_at_once(self, holder, about, order):
        about(order, 50)
        several = f"{NEW}?what=task:care.call&what=queue:default&what=tag:mail&what=task:care.call"

        page = text_of(holder.get(several))
        for _ in range(2):
            answer = holder.post(several, {"then": "run", "reason": "moving"})

        assert "<h1>Put 3 things on hold</h1>" in page
        assert "<li>care.call</li><li>queue default</li><li>tag mail</li>" in page
        assert "It holds 1 task." in page
        assert answer["Location"] == HOLDS
        made = [(made.scope, made.target) for made in Hold.objects.order_by("pk")]
        assert made == [("task", "care.call"), ("queue", "default"), ("tag", "mail")]

    @pytest.mark.django_db(transaction=True)
    def test_holds_all_of_them_or_nothing(self, holder, monkeypatch):
        names = {**names_to_hold(), Scope.TIMELINE: ["care", "gone"]}
        monkeypatch.setattr(pages, "names_to_hold", lambda: names)

        page = text_of(holder.post(f"{NEW}?what=timeline:care&what=timeline:gone", {"then": "run", "reason": "moving"}))

        assert "gone" in page
        assert not Hold.objects.exists()

    def test_asks_to_choose_where_nothing_is_chosen(self, holder):
        assert "Choose first what to hold." in text_of(holder.get(NEW, follow=True))

    def test_counts_what_the_user_sees_up_to_a_bound(self, holder, about, order, where, monkeypatch, person, browse):
        for hours in (-1, 30, 50):
            about(order, hours)
        about(order, -1, state="active")
        about(order, -1, state="completed")
        monkeypatch.setattr(attention, "MAX_COUNTED", 2)
        assert "It holds 2 or more tasks, of which 1 is due now or" in text_of(holder.get(asked(where)))

        sees_none = browse(person("hugo", "hold_tasks"))

        assert "It holds no task that you can see now." in text_of(sees_none.get(asked(where)))

    @pytest.mark.parametrize(
        ("at", "chosen", "until", "told"),
        [
            ("2026-11-28 18:45:59", "hour", "2026-11-28 19:45", "in 1 hour (2026-11-28 19:45)"),
            ("2026-11-28 23:45", "tomorrow", "2026-11-29 09:00", "tomorrow 09:00 (2026-11-29)"),
            ("2026-11-28 18:45", "monday", "2026-11-30 09:00", "Monday 09:00 (2026-11-30)"),
            ("2026-11-30 08:00", "monday", "2026-12-07 09:00", "Monday 09:00 (2026-12-07)"),
            ("2026-03-28 18:45", "tomorrow", "2026-03-29 09:00", "tomorrow 09:00 (2026-03-29)"),  # Summer time begins.
        ],
    )
    def test_ends_at_a_moment_that_was_chosen(self, holder, where, clock, settings, at, chosen, until, told):
        settings.TIME_ZONE, zone = "Europe/Berlin", ZoneInfo("Europe/Berlin")
        clock.set(datetime.fromisoformat(at).replace(tzinfo=zone))
        page = text_of(holder.get(asked(where)))
        asked_at = re.search(r'name="asked_at" value="([^"]*)"', page)[1]
        clock.advance(minutes=40)  # What counts is what was shown.

        holder.post(asked(where), {"asked_at": asked_at, "ends": chosen, "then": "run", "reason": "a dispute"})

        assert told in page
        assert Hold.objects.get().until == datetime.fromisoformat(until).replace(tzinfo=zone)

    def test_offers_other_moments_where_one_has_passed_meanwhile(self, holder, where, clock):
        asked_at = clock.now.isoformat()
        given = {"asked_at": asked_at, "ends": "hour", "then": "run", "reason": "a dispute"}
        clock.advance(hours=2)

        page = text_of(holder.post(asked(where), given))

        assert "This time has passed" in page
        assert "in 1 hour (2026-03-01 12:00)" in page
        again = re.search(r'name="asked_at" value="([^"]*)"', page)[1]
        holder.post(asked(where), given | {"asked_at": again})
        assert Hold.objects.get().until == clock.now + timedelta(hours=1)

    def test_tells_of_monday_once(self, holder, where, clock):
        clock.set(datetime(2026, 11, 29, 12, tzinfo=UTC))

        page = text_of(holder.get(asked(where)))

        assert "tomorrow 09:00 (2026-11-30)" in page
        assert "Monday" not in page

    @pytest.mark.parametrize(
        "query",
        [
            "?what=tag:nothing",
            "?what=care.call&what=timeline:nothing",
            "?what=timeline:nothing",
            "?what=care",
            "?what=entity:x",
            "?label=testapp.order&id=999",
            "?label=auth.group&id=1",
        ],
    )
    def test_holds_nothing_that_is_not_there(self, holder, query):
        assert holder.get(f"{NEW}{query}").status_code == 404

    def test_is_for_who_may_hold(self, operator, where):
        assert operator.get(asked(where)).status_code == 403
        assert operator.post(asked(where), {"then": "run", "reason": "x"}).status_code == 403
        assert not Hold.objects.exists()


class TestHolds:
    def test_leads_to_whom_it_holds(self, holder, person, browse, order):
        hold(order, reason="a dispute")
        ended = hold(Order.objects.create(), reason="another")
        release(ended, actor="ada")
        link = f'<a href="{ENTITY}?label=testapp.order&amp;id='

        page, without = text_of(holder.get(HOLDS)), text_of(browse(person("hugo", "hold_tasks")).get(HOLDS))

        assert f'{link}{order.pk}"><strong>order {order.pk}</strong></a>' in page
        assert f'{link}{ended.entity_id}">order {ended.entity_id}</a>' in page
        assert f"testapp.order {order.pk}" in without
        assert link not in without

    def test_names_nobody_whom_the_hosts_policy_hides(self, holder, order, settings):
        hold(order, reason="dispute", actor="ada")
        link = f'<a href="{ENTITY}?label='
        assert link in text_of(holder.get(HOLDS))

        settings.TIMELINE = settings.TIMELINE | {"POLICY": "tests.admin.test_people.Hiding"}

        page = text_of(holder.get(HOLDS))
        assert link not in page
        assert f"testapp.order {order.pk}" in page
        asking = text_of(holder.get(releasing(Hold.objects.get())))
        assert f"testapp.order {order.pk}" in asking
        assert f" order {order.pk}" not in asking.replace(f"testapp.order {order.pk}", "")

    def test_shows_what_is_on_hold_and_releases_it(self, holder, order):
        held = hold(order, reason="<a dispute>", actor="ada")

        page = text_of(holder.get(HOLDS))
        answer = holder.post(releasing(held), follow=True)

        held.refresh_from_db()
        assert "by ada: &lt;a dispute&gt;" in page
        assert held.released_by == "hanna@example.com"
        assert "It is released." in text_of(answer)
        assert "&lt;a dispute&gt;" in text_of(answer)  # Below what is over.

    def test_says_so_where_somebody_was_sooner(self, holder, order):
        held = hold(order, reason="a dispute")

        pages = [text_of(holder.post(releasing(held), follow=True)) for _ in range(2)]

        assert "messagelist" in pages[1]
        assert "It is released." not in pages[1]

    @pytest.mark.parametrize("key", ["", "x", "00000000-0000-7000-8000-000000000000"])
    def test_releases_nothing_that_is_not_there(self, holder, key):
        assert holder.get(releasing(key)).status_code == 302
        assert holder.post(releasing(key)).status_code == 302

    def test_shows_only_to_who_may_see_holds(self, operator, person, browse, order):
        held = hold(order, reason="a dispute")
        seer = browse(person("sina", "view_scheduledtask", "view_hold"))

        assert operator.get(HOLDS).status_code == 403
        assert "a dispute" in text_of(seer.get(HOLDS))
        assert "Release" not in text_of(seer.get(HOLDS))
        assert seer.get(releasing(held)).status_code == seer.post(releasing(held)).status_code == 403
        assert HOLDS in text_of(seer.get(LIST))
        assert HOLDS not in text_of(operator.get(LIST))


class TestRelease:
    @pytest.fixture
    def tasks(self, about, order, clock):
        """Two that are due, of which it is too late for one, and one that is ahead."""
        about(order, -1)
        about(order, -2, expires_at=clock.now - timedelta(hours=1))
        about(order, 5)

    def test_says_first_what_becomes_of_the_tasks_and_changes_nothing(self, holder, tasks, order):
        held = hold(timeline="care", reason="moving")

        page = text_of(holder.get(releasing(held)))

        assert re.search("Release the hold: .*care</h1>", page)
        assert "2 tasks are due, and run at once. They are about: <a" in page
        assert f'id={order.pk}">order {order.pk}</a>' in page
        assert "Of these, 1 is dropped, because it is too late for it." in page
        assert "1 is ahead, and keeps its time." in page
        held.refresh_from_db()
        assert held.is_open

    def test_says_what_something_else_holds(self, holder, tasks, order):
        held = hold(timeline="care", reason="moving")
        hold(order, reason="a dispute")

        assert "Of these, 2 stay on hold: something else holds them, too." in text_of(holder.get(releasing(held)))

    def test_says_what_is_cancelled(self, holder, tasks, order):
        held = hold(order, reason="a dispute", then="expire")

        assert "2 tasks are due, and are cancelled." in text_of(holder.get(releasing(held)))

    def test_says_what_moves_and_how_far(self, holder, tasks, order, clock):
        held = hold(order, reason="a dispute", then="shift")
        clock.advance(days=2)

        page = text_of(holder.get(releasing(held)))

        assert "3 tasks move on by the time for which they were held, up to 2 days" in page.replace("\xa0", " ")

    def test_says_that_nothing_is_under_it(self, holder, order):
        assert "Nothing that you can see is under it now." in text_of(holder.get(releasing(hold(order, reason="x"))))

    def test_leads_back_to_the_page_of_the_entity(self, holder, order, where):
        answer = holder.post(releasing(hold(order, reason="x"), **where), {"reason": "they agree"})

        assert answer["Location"] == f"{ENTITY}?{urlencode(where)}"
        assert Hold.objects.get().release_reason == "they agree"

    def test_releases_one_that_is_not_among_the_first(self, holder, order, monkeypatch):
        hold(order, reason="x")
        monkeypatch.setattr(pages, "MOST", 0)

        answer = holder.post(releasing(hold(timeline="care", reason="x")), follow=True)

        assert "It is released." in text_of(answer)

    def test_costs_as_many_statements_for_many_as_for_few(self, person, browse, about):
        browser = browse(person("root", is_superuser=True, is_staff=True))
        held = hold(timeline="care", reason="moving")

        def statements():
            with CaptureQueriesContext(connection) as queries:
                browser.get(releasing(held))
            return len(queries)

        for _ in range(2):
            about(Order.objects.create(), -1)
        few = statements()
        for _ in range(30):
            about(Order.objects.create(), -1)

        assert statements() == few <= 12

    def test_is_offered_where_holds_are_listed(self, holder, order, where):
        held = hold(order, reason="a dispute")
        attention = reverse("admin:timeline_scheduledtask_attention")

        assert f'href="{releasing(held)}"' in text_of(holder.get(HOLDS))
        assert f'href="{releasing(held)}"' in text_of(holder.get(attention))


class TestWhatABrakeHasStopped:
    @pytest.fixture
    def parked(self, about, order, clock):
        about(order, -1)
        return park("care.call", most=3, within=timedelta(hours=1), now=clock.now, using="default")

    def test_is_said_with_what_to_do_and_how_much_is_due(self, holder, parked):
        page = text_of(holder.get(HOLDS))

        assert "more than 3 of it would have started within 1 hour" in page
        assert "cancel what must not run, then release it" in page
        assert "1 task of it is due." in page
        assert f'href="{LIST}?state=overdue&amp;task=care.call"' in page

    def test_is_released_with_a_reason_only(self, holder, parked):
        page = text_of(holder.post(releasing(parked), {"reason": " "}, follow=True))
        parked.refresh_from_db()
        assert "Why it is right that they run: This field is required." in page
        assert parked.is_open

        page = text_of(holder.post(releasing(parked), {"reason": "they left"}, follow=True))

        parked.refresh_from_db()
        assert (parked.released_by, parked.release_reason) == ("hanna@example.com", "they left")
        assert 'actor=hanna%40example.com">hanna@example.com</a>: they left' in page
        assert "its brake" in page

    def test_is_released_on_the_page_of_an_entity_too(self, holder, parked, where):
        page = text_of(holder.get(ENTITY, where))
        assert f'href="{releasing(parked, **where)}"'.replace("&", "&amp;") in page
        assert "It holds tasks of others, too" in text_of(holder.get(releasing(parked, **where)))
        assert "It holds tasks of others, too, and they are released with these." in page
        assert "It holds tasks of others" not in text_of(holder.get(HOLDS))

        holder.post(releasing(parked, **where), {"reason": "they left"})

        assert not Hold.objects.open().exists()

    def test_costs_a_page_without_any_no_statement(self, holder, order, clock, django_assert_num_queries):
        hold(order, reason="a dispute")
        with CaptureQueriesContext(connection) as without:
            holder.get(HOLDS)
        park("care.call", most=3, within=timedelta(hours=1), now=clock.now, using="default")

        with django_assert_num_queries(len(without) + 1):
            holder.get(HOLDS)


class TestEntity:
    def test_says_that_it_is_on_hold_and_leads_back_when_released(self, holder, about, order, where):
        about(order)
        held = hold(order, reason="a dispute", actor="ada")

        page = text_of(holder.get(ENTITY, where))
        answer = holder.post(releasing(held, **where))

        assert "by ada: a dispute" in page
        assert "It holds tasks of others" not in page
        assert 'fill="url(#tl-hatch)"' in page
        assert answer["Location"] == f"{ENTITY}?label=testapp.order&id={order.pk}"

    def test_tells_who_may_see_no_holds_neither_who_nor_why(self, operator, about, order, where):
        about(order)
        hold(order, reason="a dispute", actor="ada")

        page = text_of(operator.get(ENTITY, where))

        assert "On hold since" in page
        assert "a dispute" not in page
        assert "Release" not in page
        assert "Hold…" not in page

    def test_tells_of_a_hold_of_its_timeline_and_of_no_other(self, holder, about, order, where):
        about(order)
        hold(timeline="care", reason="moving house")
        hold(timeline="account", reason="painting walls")

        page = text_of(holder.get(ENTITY, where))

        assert "moving house" in page
        assert "painting walls" not in page
        assert "tl-hatch" not in page  # Which stands for all that is about the entity.


class TestPageOfATask:
    """A task that is on hold: from its page to what releases it."""

    def page_of(self, viewer, task):
        return text_of(viewer.get(reverse("admin:timeline_scheduledtask_change", args=[task.pk])))

    def test_leads_to_the_release_of_what_holds_it(self, holder, about, order, where):
        task = about(order, 50)
        held = hold(order, reason="a dispute")

        page = self.page_of(holder, task)

        assert "until somebody releases it" in page
        [link] = re.findall(r'href="([^"]*/release/[^"]*)"', page)
        assert link == releasing(held, **where).replace("&", "&amp;")
        answer = holder.post(link.replace("&amp;", "&"), {"reason": "settled"})
        assert answer["Location"] == f"{ENTITY}?label=testapp.order&id={order.pk}"
        assert not Hold.objects.open().exists()

    def test_leads_to_each_of_several_by_its_name(self, holder, about, order):
        task = about(order, 50)
        for target in ({"everything": True}, {"task": task.task_key}):
            hold(**target, reason="an incident")

        page = self.page_of(holder, task)

        assert page.count("/holds/release/?hold=") == 2
        assert f"<span> {task.task_key}</span>" in page

    def test_has_no_link_for_who_may_not_release(self, operator, about, order):
        task = about(order, 50)
        hold(order, reason="a dispute")

        page = self.page_of(operator, task)

        assert "until somebody releases it" in page
        assert "/holds/release/" not in page

    def test_has_no_link_where_nothing_holds_it_or_it_is_released_already(self, holder, about, order):
        task = about(order, 50)
        release(hold(order, reason="a dispute"))

        assert "/holds/release/" not in self.page_of(holder, task)

"""What pages of webhooks say at first glance: the bar, what is in trouble, what arrived, what was sent, what it tells of."""

from __future__ import annotations

import json
from datetime import timedelta

import pytest
from django.contrib.auth.models import Permission
from django.db import connection
from django.test.utils import CaptureQueriesContext
from django.urls import reverse

from tests.webhooks import test_admin as admin
from tests.webhooks.test_admin import ADD, given
from tests.webhooks.test_sending import deliver, told_order
from timeline.ids import uuid7
from timeline.models import ScheduledTask
from timeline.webhooks.disabling import disable
from timeline.webhooks.models import Attempt, Delivery, Disabled, Endpoint, State
from timeline.webhooks.shares import charts_of, shares_of

admin_client, person_of_staff = admin.admin_client, admin.person_of_staff  # Fixtures.

MOST_QUERIES = 12


def at(kind, name, *args):
    return reverse(f"admin:timeline_webhooks_{kind}_{name}", args=args)


def pages_of(endpoint):
    """Where each page is that shows an endpoint, or what was sent to it."""
    delivery = endpoint.deliveries.order_by("pk").first()
    return {
        "endpoints": at("endpoint", "changelist"),
        "endpoint": at("endpoint", "change", endpoint.pk),
        "replay": at("endpoint", "replay", endpoint.pk),
        "deliveries": at("delivery", "changelist"),
        "delivery": at("delivery", "change", delivery.pk),
    }


def written(endpoint, *, states, created_at):
    """Deliveries as they were written at a time, one of each of these states."""
    Delivery.objects.bulk_create(
        Delivery(
            endpoint=endpoint,
            source=uuid7(),
            topic="told.told.asked",
            body="{}",
            state=state,
            created_at=created_at,
            due_at=created_at,
            give_up_at=created_at + timedelta(days=3),
            ended_at=None if state == State.WAITING else created_at,
        )
        for state in states
    )


@pytest.fixture
def told(endpoint_for, receiver):
    """Two endpoints that were told of an order, and of a task that has ended; one of them answers with an error."""
    good = endpoint_for("told", "task.completed", description="Books")
    bad = endpoint_for("told", path="/bad", description="Letters")
    receiver.answer = lambda request: (500, b'{"why": "<b>full</b>"}') if "bad" in request.path else (200, b"")
    told_order("told.asked")
    deliver()
    return {"good": good, "bad": bad}


class TestEachPage:
    @pytest.mark.parametrize("page", ["endpoints", "endpoint", "replay", "deliveries", "delivery"])
    def test_has_the_bar_with_webhooks_as_the_present_one(self, page, admin_client, told):
        said = admin_client.get(pages_of(told["bad"])[page]).content.decode()

        here = f'<li><a href="{at("endpoint", "changelist")}" aria-current="page">Webhooks'
        assert here in said
        assert said.count('aria-current="page">Webhooks') == 1
        assert reverse("admin:timeline_scheduledtask_health") in said
        assert "Times are those of UTC." in said

    @pytest.mark.parametrize("page", ["endpoints", "endpoint", "deliveries", "delivery"])
    def test_asks_as_much_of_many_as_of_few(self, page, admin_client, told, clock):
        where = pages_of(told["bad"])[page]

        def look():
            with CaptureQueriesContext(connection) as queries:
                assert admin_client.get(where).status_code == 200
            return len(queries)

        few = look()
        written(told["bad"], states=[State.DELIVERED, State.FAILED] * 30, created_at=clock.now)
        Attempt.objects.bulk_create(
            Attempt(delivery=each, number=number, at=clock.now, duration_ms=3)
            for each in Delivery.objects.all()
            for number in range(20)
        )

        assert few == look() <= MOST_QUERIES

    def test_has_no_bar_for_who_may_open_none_of_its_pages(self, client, told, person_of_staff):
        person_of_staff.user_permissions.set(Permission.objects.filter(codename="view_delivery"))
        client.force_login(person_of_staff)

        said = client.get(pages_of(told["bad"])["delivery"]).content.decode()

        assert "tl-bar-nav" not in said
        assert at("endpoint", "change", told["bad"].pk) not in said
        assert reverse("admin:timeline_scheduledtask_entity") not in said


class TestTheLists:
    def test_lead_to_each_other_who_may_see_both(self, client, admin_client, told, person_of_staff):
        lists = [at("endpoint", "changelist"), at("delivery", "changelist")]
        link = '<a class="tl-button" href="{}">'

        both = [admin_client.get(each).content.decode() for each in lists]
        person_of_staff.user_permissions.set(Permission.objects.filter(codename="view_delivery"))
        client.force_login(person_of_staff)
        one = client.get(lists[1]).content.decode()

        assert link.format(lists[1]) in both[0]
        assert link.format(lists[0]) in both[1]
        assert link.format(lists[0]) not in one


class TestTheListOfDeliveries:
    def test_looks_through_the_latest_and_says_so(self, admin_client, told, clock, monkeypatch):
        monkeypatch.setattr("timeline.webhooks.admin_deliveries.LOOKED", 3)
        oldest = told["good"].deliveries.get()
        for endpoint in (told["good"], told["bad"]):
            for minutes in (1, 2):
                states = [State.DELIVERED, State.FAILED]
                written(endpoint, states=states, created_at=clock.now + timedelta(minutes=minutes))
        where = at("delivery", "changelist")

        def found(query):
            answer = admin_client.get(f"{where}?{query}")
            return [each.pk for each in answer.context["cl"].result_list], answer.content.decode()

        newest = Delivery.objects.latest("pk").pk
        every, said = found("")
        failed, _said = found("state__exact=failed")
        own, _said = found(f"endpoint__id__exact={told['good'].pk}")

        assert every == [newest, newest - 1, newest - 2]
        assert failed == [newest, newest - 2]
        assert set(own) <= set(told["good"].deliveries.values_list("pk", flat=True))
        assert own[0] == told["good"].deliveries.latest("pk").pk
        assert "look through the latest 3 only" in said
        admin_client.post(where, {"action": "send_again", "index": "0", "_selected_action": [oldest.pk]})
        oldest.refresh_from_db()
        assert oldest.state == State.WAITING


class TestTheListOfEndpoints:
    def test_has_those_in_trouble_first(self, admin_client, endpoint_for, clock):
        named = {name: endpoint_for("told", description=name) for name in ("fine", "gone", "off", "paused", "shaky")}
        disable(named["gone"], Disabled.GONE, now=clock.now, using="default")
        disable(named["off"], Disabled.OPERATOR, now=clock.now, using="default")
        for name, failures in (("paused", 7), ("shaky", 1)):
            Endpoint.objects.filter(pk=named[name].pk).update(failures=failures, failing_since=clock.now)

        answer = admin_client.get(at("endpoint", "changelist"))

        assert [str(each) for each in answer.context["cl"].result_list] == ["gone", "paused", "shaky", "fine", "off"]
        said = answer.content.decode()
        assert "7 failures since 2026" in said
        assert "it answered 410: gone" in said

    def test_says_how_much_has_arrived(self, admin_client, told, clock):
        written(told["good"], states=[State.DELIVERED] * 3 + [State.FAILED], created_at=clock.now)
        written(told["good"], states=[State.FAILED] * 5, created_at=clock.now - timedelta(hours=25))

        said = admin_client.get(at("endpoint", "changelist")).content.decode()

        assert "4 of 5 delivered in 24 h · 1 failed for good" in said
        assert "0 of 1 delivered in 24 h · 1 not delivered yet" in said


class TestTheShare:
    def test_is_of_the_latest_where_there_are_very_many_and_says_so(self, endpoint_for, clock, monkeypatch):
        monkeypatch.setattr("timeline.webhooks.shares.MOST_IN_LIST", 3)
        busy, calm = endpoint_for("told"), endpoint_for("told")
        written(busy, states=[State.FAILED] * 5, created_at=clock.now - timedelta(hours=2))
        written(busy, states=[State.DELIVERED] * 2, created_at=clock.now)

        with CaptureQueriesContext(connection) as queries:
            shares = shares_of([busy.pk, calm.pk], now=clock.now, using="default")

        assert len(queries) == 1
        assert shares[busy.pk].words("24 h") == "2 of 3 delivered, of the latest 3 in 24 h"
        assert shares[calm.pk].words("24 h") == "nothing sent in 24 h"

    def test_leaves_out_what_was_cancelled(self, endpoint_for, clock):
        endpoint = endpoint_for("told")
        written(endpoint, states=[State.CANCELLED, State.DELIVERED], created_at=clock.now)

        share = shares_of([endpoint.pk], now=clock.now, using="default")[endpoint.pk]

        assert share.words("24 h") == "1 of 1 delivered in 24 h"
        assert share.rest == ["1 cancelled"]


class TestTheCharts:
    def test_are_of_a_day_and_of_a_week(self, endpoint_for, clock):
        endpoint = endpoint_for("told")
        written(endpoint, states=[State.DELIVERED] * 2 + [State.FAILED], created_at=clock.now)
        written(endpoint, states=[State.FAILED], created_at=clock.now - timedelta(days=3))
        written(endpoint, states=[State.FAILED], created_at=clock.now - timedelta(days=8))

        day, week = charts_of(endpoint, now=clock.now, using="default")

        assert (day.words, day.rest) == ("2 of 3 delivered in 24 h", ["1 failed for good"])
        assert (week.words, week.rest) == ("2 of 4 delivered in 7 days", ["2 failed for good"])
        assert [len(day.bars), len(week.bars)] == [24, 28]
        assert (day.bars[-1].good, day.bars[-1].bad, day.bars[0].good) == (60.0, 30.0, 0.0)
        assert [(row.good, row.bad) for row in week.rows] == [(2, 1), (0, 1)]
        assert day.cut == week.cut == ""

    def test_say_which_were_counted_where_there_are_very_many(self, admin_client, told, clock, monkeypatch):
        monkeypatch.setattr("timeline.webhooks.shares.MOST", 4)
        written(told["good"], states=[State.FAILED] * 5, created_at=clock.now - timedelta(days=2))
        written(told["good"], states=[State.DELIVERED] * 2, created_at=clock.now)

        with CaptureQueriesContext(connection) as queries:
            day, week = charts_of(told["good"], now=clock.now, using="default")

        assert len(queries) == 1
        assert "LIMIT 5" in queries[0]["sql"]
        assert day.cut == ""
        assert week.cut.startswith("Only the latest 4 deliveries are counted: those since ")
        said = admin_client.get(at("endpoint", "change", told["good"].pk)).content.decode()
        assert week.cut in said


class TestTopics:
    def test_are_boxes_with_titles_and_those_chosen_are_marked(self, admin_client, told):
        said = admin_client.get(at("endpoint", "change", told["good"].pk)).content.decode()

        assert 'value="told" checked> Everything that it tells <code>told</code>' in said
        assert 'value="task.completed" checked' in said
        assert 'value="told.done"> done' in said

    def test_that_are_not_told_any_more_stay_until_somebody_takes_them_away(self, admin_client, told):
        where = at("endpoint", "change", told["good"].pk)
        Endpoint.objects.filter(pk=told["good"].pk).update(topics=["told", "told.renamed"])

        said = admin_client.get(where).content.decode()
        refused = admin_client.post(where, given(told["good"].url, ["told", "told.renamed"]))
        admin_client.post(where, given(told["good"].url, ["told", "task.discarded.told"]))

        assert 'value="told.renamed" checked' in said
        assert "Not told any more" in said
        assert "told.renamed" in refused.context["adminform"].errors["topics"][0]
        assert Endpoint.objects.get(pk=told["good"].pk).topics == ["told", "task.discarded.told"]

    def test_are_needed(self, admin_client, clock):
        answer = admin_client.post(reverse(ADD), given("https://receiver.example.com/", []))

        assert answer.context["adminform"].errors["topics"][0] == "Choose at least one topic."


class TestTheBody:
    def page(self, client, delivery):
        return client.get(at("delivery", "change", delivery.pk)).content.decode()

    def test_is_indented_and_escaped(self, admin_client, told):
        delivery = told["bad"].deliveries.get()
        Delivery.objects.filter(pk=delivery.pk).update(body=json.dumps({"type": "<b>", "data": {"id": 1}}))

        said = self.page(admin_client, delivery)

        assert "{\n  &quot;type&quot;: &quot;&lt;b&gt;&quot;,\n  &quot;data&quot;: {\n    &quot;id&quot;: 1" in said
        assert "&lt;b&gt;full" in said
        assert "<b>" not in said
        assert delivery.message_id in said

    def test_is_cut_where_it_is_long_and_that_is_said(self, admin_client, told):
        delivery = told["bad"].deliveries.get()
        Delivery.objects.filter(pk=delivery.pk).update(body="x" * 12_345)

        said = self.page(admin_client, delivery)

        assert "x" * 10_000 in said
        assert "x" * 10_001 not in said
        assert "2,345 more characters are not shown." in said

    @pytest.mark.parametrize("body", ["[" * 30_000, '"\\ud800"', "9" * 6_000, "no json"])
    def test_that_cannot_be_read_is_shown_as_it_is(self, body, admin_client, told):
        delivery = told["bad"].deliveries.get()
        Delivery.objects.filter(pk=delivery.pk).update(body=body)

        assert body[:30].replace('"', "&quot;") in self.page(admin_client, delivery)

    def test_is_sent_again_from_its_page(self, admin_client, told, receiver):
        delivery = told["good"].deliveries.first()
        page = self.page(admin_client, delivery)
        assert f'name="_selected_action" value="{delivery.pk}"' in page

        form = {"action": "send_again", "index": "0", "_selected_action": [delivery.pk]}
        admin_client.post(at("delivery", "changelist"), form)

        delivery.refresh_from_db()
        assert delivery.state == State.WAITING
        assert 'name="_selected_action"' not in self.page(admin_client, delivery)


class TestAttempts:
    def test_are_in_order_and_the_state_is_in_words(self, admin_client, told, clock):
        clock.advance(minutes=10)
        deliver()

        answer = admin_client.get(at("delivery", "change", told["bad"].deliveries.get().pk))

        assert [each.number for each, _answer in answer.context["attempts"]] == [1, 2]
        assert "will try again" in answer.content.decode()


class TestWhatADeliveryTellsOf:
    def test_is_linked_from_there_and_back(self, admin_client, told):
        [first, other] = Delivery.objects.order_by("pk")
        entity = reverse("admin:timeline_scheduledtask_entity")
        query = f"label={first.entity_label}&id={first.entity_id}"

        page = admin_client.get(at("delivery", "change", first.pk)).content.decode()
        back = admin_client.get(f"{entity}?{query}").content.decode()

        assert f'<a href="{entity}?{query.replace("&", "&amp;")}">told.asked</a>' in page
        assert at("delivery", "change", other.pk) in page
        assert "Told to 2 endpoints" in back
        assert at("delivery", "change", first.pk) in back

    def test_is_the_task_that_has_ended(self, admin_client, told, clock):
        told_order("told.seen", "told.quiet")
        clock.advance(hours=2)
        deliver()
        task = ScheduledTask.objects.get(state="completed")
        delivery = Delivery.objects.get(source=task.pk)
        where = reverse("admin:timeline_scheduledtask_change", args=[task.pk])

        page = admin_client.get(at("delivery", "change", delivery.pk)).content.decode()
        back = admin_client.get(where).content.decode()

        assert where in page
        assert "Told to 1 endpoint<" in back
        assert at("delivery", "change", delivery.pk) in back

    def test_is_linked_to_nobody_who_may_not_see_it(self, client, told, clock, person_of_staff):
        """Who may see tasks sees no deliveries of them without that right, and the other way round."""
        told_order("told.seen", "told.quiet")
        clock.advance(hours=2)
        deliver()
        task = ScheduledTask.objects.get(state="completed")
        delivery = Delivery.objects.get(source=task.pk)
        where = reverse("admin:timeline_scheduledtask_change", args=[task.pk])
        client.force_login(person_of_staff)

        person_of_staff.user_permissions.set(Permission.objects.filter(codename="view_scheduledtask"))
        back = client.get(where).content.decode()
        person_of_staff.user_permissions.set(Permission.objects.filter(codename="view_delivery"))
        page = client.get(at("delivery", "change", delivery.pk)).content.decode()

        assert "Told to" not in back
        assert where not in page
        assert f"{delivery.entity_label}:{delivery.entity_id}" in page

"""Each page of ours, none left out, for those who need it dark, narrow, in German or read aloud."""

from __future__ import annotations

from datetime import timedelta

import pytest
from django.urls import reverse

from tests.admin.conftest import ENTITY, LIST, detail
from tests.admin.test_people import Complaint
from tests.admin.test_trying import Shipping
from tests.features.bulk_actions.bulk import bulk_action  # of bulk_actions
from tests.testapp.models import Order
from timeline.admin.pages import live_names, plain_names
from timeline.features.bulk_actions.poll import begin_bulk  # of bulk_actions
from timeline.lifecycle import State
from timeline.models import ScheduledTask, TimelineRun, ref_of
from timeline.shortcuts import emit, hold
from timeline.testing import only_timelines

LOOKS = {"desk-light": (1280, False, "en"), "phone-dark": (390, True, "de")}  # Each width, theme and language once.
GROUP = "1" * 16


def page(name, given="", of=()):
    return reverse(f"admin:timeline_scheduledtask_{name}", args=of) + given


@pytest.fixture
def addresses(clock, staff, make_task):
    """Name of a page → its addresses, with something on each. Of ``act``: whose button leads there."""
    with only_timelines(Complaint, Shipping):
        order = Order.objects.create(
            note="one with a long name that is broken into lines", ships_at=clock.now + timedelta(days=3)
        )
        emit("order.placed", order)
        emit("complaint.made", order)
        ref, run = ref_of(order), TimelineRun.objects.get(timeline="complaint")
        about = {"entity_label": ref.label, "entity_id": ref.id, "task_key": "shipping.ship"}
        dead = make_task(
            state=State.DISCARDED, fingerprint=GROUP, error="ConnectionError: no", reason_code="error", **about
        )
        full = make_task(state=State.AVAILABLE, **about, occurrence="2")
        ScheduledTask.objects.filter(pk=full.pk).update(limit_key="payout", held_until="opened")
        held = hold(order, reason="they dispute the bill", actor="ada")
        bulk = begin_bulk(  # of bulk_actions
            bulk_action("move", asker=staff.pk, filters={"task": "shipping.ship"}, by_days=2),
            ScheduledTask.objects.all(),
            using="default",
        )
        whose = f"?label={ref.label}&id={ref.id}"
        yield {
            "changelist": [LIST, f"{LIST}?state=all&day={clock.now.date()}", f"{LIST}?q=nobody@example.com"],
            "attention": [page("attention")],
            "change": [detail(dead), detail(full)],
            "act": [detail(full)],
            "bulk": [page("bulk")],  # of bulk_actions
            "bulk_action": [page("bulk_action", of=[bulk.pk])],  # of bulk_actions
            "entity": [ENTITY + whose],
            "find": [page("find"), page("find", "?words=example")],
            "dead": [page("dead"), page("dead", f"?group={GROUP}")],
            "redrive": [page("redrive", f"?group={GROUP}")],
            "health": [page("health")],
            "inventory": [page("inventory")],
            "journal": [page("journal"), page("journal", "?actor=ada")],
            "limits": [page("limits")],  # of limits
            "matching": [page("matching"), page("matching", "?action=cancel")],
            "holds": [page("holds")],
            "hold": [page("hold", whose)],
            "release": [page("release", f"?hold={held.pk}")],
            "people": [page("people")],
            "take": [page("take")],  # Which takes nothing when it is opened, and leads there.
            "hand_over": [page("hand_over", f"?item={run.pk}")],
            "apply": [page("apply", "?timeline=shipping")],
            "plan": [page("plan"), page("plan", "?timeline=shipping")],
            "timeline": [
                reverse("admin:timeline_scheduledtask_timeline", args=[name]) for name in ("complaint", "shipping")
            ],
            "say": [page("say", f"?run={run.pk}&moves={run.moves}&event=complaint.refunded")],
            "what_if": [page("what_if", whose)],
        }


@pytest.mark.parametrize(("width", "dark", "language"), LOOKS.values(), ids=LOOKS)
def test_keeps_nobody_out(start_browser, staff, addresses, width, dark, language):
    """Nothing for axe-core, level A or AA; no sideways scrolling; the console is silent; its name is on top, its zone named."""
    assert set(addresses) == {*plain_names(), *live_names(), "change"} - {"task"}
    browser = start_browser(width=width, dark=dark)
    browser.driver.execute_cdp_cmd("Network.setExtraHTTPHeaders", {"headers": {"Accept-Language": language}})
    browser.log_in(staff)
    for name, where in [(name, where) for name, all_of_it in addresses.items() for where in all_of_it]:
        browser.open(where)
        if name == "act":
            browser.click("button[value=cancel]")
            browser.wait_for("#id_reason")
        browser.wait_for("#content-main h1")

        assert browser.find("html").get_attribute("lang") == language, name
        assert "UTC" in browser.text, name  # The zone of the times.
        assert browser.barriers() == [], name
        assert browser.width_needed() <= width, name
        assert browser.complaints() == [], name

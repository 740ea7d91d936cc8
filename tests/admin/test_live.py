"""Live pages: what they are told when nothing has changed, when something has, and when they may not look any more."""

from __future__ import annotations

import pytest
from django.db import connection
from django.test.utils import CaptureQueriesContext
from django.urls import reverse

from tests.admin.conftest import ALL, ENTITY, LIST, detail
from tests.testapp.models import Order
from timeline.live import versions
from timeline.models import ref_of
from timeline.shortcuts import cancel

PAGES = {
    name: reverse(f"admin:timeline_scheduledtask_{name}")
    for name in (
        "bulk",  # of bulk_actions
        "dead",
        "health",
        "holds",
        "inventory",
        "limits",  # of limits
        "people",
    )
}


@pytest.fixture(autouse=True)
def _no_time_passes(monkeypatch):
    monkeypatch.setattr(versions.time, "time", lambda: 1_000_000.0)


@pytest.fixture
def operator(person, browse):
    return browse(person("operator", *ALL, "view_hold"))


@pytest.fixture
def row(about, order):
    return about(order)


def addresses(row, order):
    ref = ref_of(order)
    return {
        "list": f"{LIST}?part",
        "task": detail(row),
        "entity": f"{ENTITY}?label={ref.label}&id={ref.id}",
        **PAGES,
    }


def ask(client, address, seen=""):
    return client.get(address, headers={"X-Timeline-Seen": seen})


class TestLive:
    def test_says_nothing_until_a_task_changes(self, operator, row, order):
        for name, address in addresses(row, order).items():
            first = ask(operator, address)
            assert first.status_code == 200, name
            assert "data-timeline-part" in first.content.decode(), name
            again = ask(operator, address, first["X-Timeline-Version"])
            assert (again.status_code, again.content) == (204, b""), name
            assert "no-store" in again["Cache-Control"], name

        seen = {name: ask(operator, at)["X-Timeline-Version"] for name, at in addresses(row, order).items()}
        cancel(row, reason="so")

        for name, address in addresses(row, order).items():
            changed = ask(operator, address, seen[name])
            assert changed.status_code == 200, name
            assert changed["X-Timeline-Version"] != seen[name], name

    def test_of_one_thing_does_not_hear_of_another(self, operator, about, row, order):
        seen = {name: ask(operator, at)["X-Timeline-Version"] for name, at in addresses(row, order).items()}
        about(Order.objects.create())

        statuses = {name: ask(operator, at, seen[name]).status_code for name, at in addresses(row, order).items()}
        assert (statuses["task"], statuses["entity"], statuses["list"]) == (204, 204, 200)

    def test_ends_with_the_right_to_look(self, person, browse, row, order, monkeypatch):
        vera = person("vera", "view_scheduledtask")
        client = browse(vera)
        seen = {name: ask(client, at) for name, at in addresses(row, order).items()}
        vera.user_permissions.clear()
        monkeypatch.setattr(versions.time, "time", lambda: 1_000_000.0 + versions.RIGHTS_AFTER)

        for name, address in addresses(row, order).items():
            refused = ask(client, address, seen[name].get("X-Timeline-Version", ""))
            assert refused.status_code in (302, 403, 404), name
            assert "X-Timeline-Version" not in refused, name

    def test_version_of_another_is_worth_nothing(self, operator, person, browse, row):
        version = ask(operator, detail(row))["X-Timeline-Version"]
        nora, absent = (
            browse(person("nora", is_staff=True)),
            detail(row).replace(str(row.pk), "0" * 8 + str(row.pk)[8:]),
        )

        assert [ask(nora, at, version).status_code for at in (detail(row), absent)] == [404, 404]

    def test_leads_who_is_signed_out_to_the_login(self, client, row):
        assert ask(client, detail(row), "x").status_code == 302

    def test_asks_little_when_nothing_has_changed(self, operator, row, order):
        for name, address in addresses(row, order).items():
            seen = ask(operator, address)["X-Timeline-Version"]
            with CaptureQueriesContext(
                connection,
            ) as asked:
                assert ask(operator, address, seen).status_code == 204
            signs = name == "health"  # Of workers: one statement more.
            assert len(asked) == 3 + signs, (name, [each["sql"] for each in asked])

    def test_is_drawn_again_after_a_while(self, operator, row, monkeypatch):
        seen = ask(operator, detail(row))["X-Timeline-Version"]
        monkeypatch.setattr(versions.time, "time", lambda: 1_000_000.0 + versions.AGES_AFTER)

        assert ask(operator, detail(row), seen).status_code == 200

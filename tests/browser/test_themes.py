"""Our pages in a theme of the admin that has other names for its colours than Django's, as django-unfold."""

from __future__ import annotations

import re
from pathlib import Path
from types import SimpleNamespace

import pytest
from django.apps import apps
from django.test import Client
from django.urls import reverse

import timeline
from tests.admin.conftest import LIST

STYLES = (Path(timeline.__file__).parent / "static" / "timeline" / "admin.css").read_text(encoding="utf-8")
# What such a theme has not: Django's own styles; and what it has, a mark of its own on the page.
THEMED = """
document.querySelectorAll('link[href*="/admin/css/"]').forEach((link) => { link.disabled = true; });
document.documentElement.setAttribute("x-data", "");
document.documentElement.className = arguments[0];
document.body.style.background = arguments[0] === "dark" ? "#121826" : "#fff";
"""
LOOK = """
const of = (what) => getComputedStyle(document.querySelector(what));
return [
  of(".tl h1").color,
  of(".tl-button").borderColor,
  of(".tl-band-overdue h2").borderBottomColor,
  of(".tl-rows a").color,
  of("#tl-day").colorScheme,
];
"""


def test_each_colour_has_one_of_ours_behind_it():
    used = set(re.findall(r"var\((--(?!tl-)[\w-]+)", STYLES))
    layer = STYLES.partition("@layer tl-host {")[2].partition("\n}")[0]

    assert used - set(re.findall(r"(--[\w-]+):", layer)) == set()


def test_what_leads_back_is_on_each_page_of_ours_where_the_theme_does_not_show_it(staff, orders, monkeypatch):
    """As django-unfold, whose pages have a block for messages, and none for breadcrumbs."""
    client = Client()
    client.force_login(staff)
    where = reverse("admin:timeline_scheduledtask_timeline", args=["care"])

    with monkeypatch.context() as patch:
        patch.setitem(apps.app_configs, "unfold", SimpleNamespace(name="unfold", path=""))
        themed = client.get(where).content.decode()

    trail = themed.partition('<nav class="px-4 tl-trail" aria-label="Breadcrumbs">')[2].partition("</nav>")[0]
    assert f'<a href="{reverse("admin:timeline_scheduledtask_inventory")}">Timelines</a>' in trail
    assert "tl-trail" not in client.get(where).content.decode()


@pytest.mark.parametrize("system_is_dark", [False, True])
def test_light_and_dark_are_those_of_the_theme(start_browser, staff, orders, system_is_dark):
    """Whatever the system prefers: lines and letters differ, can be read, and each page has its name on top."""
    browser = start_browser(dark=system_is_dark)
    browser.log_in(staff)
    browser.open(LIST)
    browser.wait_for(".tl-rows")

    looks = {}
    for theme in ("light", "dark"):
        browser.driver.execute_script(THEMED, theme)
        looks[theme] = browser.driver.execute_script(LOOK)
        assert [line for line in browser.barriers() if line.startswith("color-contrast") and "tl-" in line] == []

    assert looks["light"] == ["rgb(51, 51, 51)", "rgb(195, 200, 208)", "rgb(173, 31, 31)", "rgb(33, 90, 134)", "light"]
    assert looks["dark"] == [
        "rgb(238, 238, 238)",
        "rgb(69, 80, 102)",
        "rgb(255, 156, 147)",
        "rgb(140, 196, 240)",
        "dark",
    ]

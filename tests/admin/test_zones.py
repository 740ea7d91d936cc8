"""One zone on each page: the site's, or the one that the site has activated for who looks."""

from __future__ import annotations

import re
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
from django.urls import reverse
from django.utils import timezone

import timeline
from tests.admin.conftest import ACT, ALL, ENTITY, detail, text_of
from timeline import Timeline, after, daily, task
from timeline.models import LogEntry, ScheduledTask
from timeline.shortcuts import emit, hold, move
from timeline.testing import only_timelines

HOST = "tests.admin.test_zones.in_kolkata"
TOKYO, KOLKATA = "Asia/Tokyo", "Asia/Kolkata"  # At 9:00 UTC: 18:00 and 14:30.
UTC_HOURS = re.compile(r"\d\d:\d\d(:\d\d)? UTC")
PAGES = (
    *("changelist", "dead", "inventory", "health", "holds", "people", "plan"),
    "limits",  # of limits
    "bulk",  # of bulk_actions
)


def in_kolkata(get_response):
    """A host's middleware: each of its people has a zone."""

    def answer(request):
        with timezone.override(KOLKATA):
            return get_response(request)

    return answer


class Nightly(Timeline):
    """Settles."""

    starts_on = daily("02:00", zone="Europe/Berlin")

    @task(after())
    def settle(self): ...


@pytest.fixture
def moved(order, clock, settings):
    """A task with a log: due three days later, moved to the next day."""
    settings.TIME_ZONE = TOKYO
    emit("order.placed", order)
    row = ScheduledTask.objects.get()
    move(row, at=clock.now + timedelta(days=1), reason="they are away", actor="ben")
    return row


class TestOneZone:
    def test_is_that_of_facts_story_and_log(self, operator, moved):
        text = text_of(operator.get(detail(moved)))

        for said in (
            "started on 2026-03-01 18:00",
            "It was moved from",
            "2026-03-02 18:00",
            ">2026-03-01 18:00:00</td>",
        ):
            assert said.lower() in text.lower()
        assert not UTC_HOURS.search(text)
        assert text.count(TOKYO) == 1

    def test_is_that_of_who_looks_where_the_site_has_one(self, operator, moved, settings):
        settings.MIDDLEWARE = [*settings.MIDDLEWARE, HOST]

        text = text_of(operator.get(detail(moved)))

        assert "started on 2026-03-01 14:30" in text
        assert ">2026-03-02 14:30<" in text
        assert (TOKYO in text, text.count(KOLKATA)) == (False, 1)

    def test_is_that_in_which_who_looks_types_times(self, operator, moved, settings):
        settings.MIDDLEWARE = [*settings.MIDDLEWARE, HOST]
        given = {"action": "move", "task": str(moved.pk), "at": "2026-07-01T12:00", "reason": "asked", "alone": "1"}
        asked = text_of(operator.post(ACT, given))
        seen = re.search(r'name="seen" value="([^"]+)"', asked)[1]

        operator.post(ACT, {**given, "seen": seen, "confirmed": "1"})

        moved.refresh_from_db()
        assert moved.scheduled_at == datetime(2026, 7, 1, 6, 30, tzinfo=UTC)

    def test_is_not_what_is_stored(self, operator, moved):
        given = {"action": "move", "task": str(moved.pk), "at": "2026-07-01T12:00", "reason": "asked", "alone": "1"}
        seen = re.search(r'name="seen" value="([^"]+)"', text_of(operator.post(ACT, given)))[1]

        operator.post(ACT, {**given, "seen": seen, "confirmed": "1"})

        entry = LogEntry.objects.filter(task=moved).latest("seq")
        assert entry.detail["scheduled_at"] == "2026-07-01T03:00:00+00:00"

    @pytest.mark.parametrize("name", PAGES)
    def test_is_that_of_each_page(self, person, browse, moved, order, name):
        hold(order, reason="they dispute the bill", actor="ada")

        page = browse(person("fay", *ALL, "view_hold")).get(reverse(f"admin:timeline_scheduledtask_{name}"))

        assert page.status_code == 200
        assert not UTC_HOURS.search(text_of(page))
        assert text_of(page).count(TOKYO) == 1

    def test_is_that_of_the_page_of_an_entity(self, operator, moved, order, clock):
        hold(order, reason="they dispute the bill", actor="ada", until=clock.now + timedelta(hours=3))

        text = text_of(operator.get(ENTITY, {"label": "testapp.order", "id": order.pk}))

        assert "from 2026-03-01 18:00 to 2026-03-01 21:00" in text
        assert not UTC_HOURS.search(text)
        assert text.count(TOKYO) == 1

    def test_is_that_of_what_is_refused(self, operator, moved, clock):
        given = {"action": "move", "task": str(moved.pk), "at": "2026-07-01T12:00", "reason": "asked", "alone": "1"}
        seen = re.search(r'name="seen" value="([^"]+)"', text_of(operator.post(ACT, given)))[1]
        move(moved, at=clock.now + timedelta(days=2), reason="they are back", actor="cleo")

        text = text_of(operator.post(ACT, {**given, "seen": seen, "confirmed": "1"}))

        assert "2026-03-03 18:00" in text
        assert not UTC_HOURS.search(text)


class TestASchedule:
    """Every day at 02:00 in Berlin, which is 10:00 in Tokyo."""

    @pytest.fixture(autouse=True)
    def _site(self, clock, settings):
        settings.TIME_ZONE = TOKYO
        with only_timelines(Nightly):
            yield

    def test_says_beside_its_next_time_what_the_clock_shows_there(self, operator):
        text = text_of(operator.get(reverse("admin:timeline_scheduledtask_inventory")))

        assert "every day at 02:00 in Europe/Berlin" in text
        assert re.search(r"10:00</time> \(02:00 there\)", text)

    def test_says_so_on_its_page(self, operator):
        text = text_of(operator.get(reverse("admin:timeline_scheduledtask_timeline", args=["nightly"])))

        assert re.search(r"10:00</time> \(02:00 there\)<span", text)

    def test_says_so_on_the_page_of_its_task(self, operator, clock):
        clock.advance(days=1)

        text = text_of(operator.get(detail(ScheduledTask.objects.open().get())))

        assert "next 3 March 2026 10:00 (02:00 there)" in text
        assert "next 3 March 2026 02:00" not in text

    def test_says_nothing_of_it_where_the_clocks_agree(self, operator, settings):
        settings.TIME_ZONE = "Europe/Paris"

        text = text_of(operator.get(reverse("admin:timeline_scheduledtask_inventory")))

        assert "02:00</time>" in text
        assert "there)" not in text


class TestTheCode:
    """Of what pages show, nothing says UTC by itself, and nothing takes the site's zone where a person has another."""

    ROOT = Path(timeline.__file__).parent
    # Times of plans are worked out in the site's zone, whoever looks.
    PLANS = frozenset({"admin/outcomes.py", "features/plans/drift_query.py"})

    def files(self, *folders):
        return {
            file.relative_to(self.ROOT).as_posix(): file.read_text()
            for folder in folders
            for file in sorted((self.ROOT / folder).rglob("*.py"))
        }

    def test_of_readings_tells_times_as_the_page_does(self):
        readings = {
            name: text
            for name, text in self.files("reading", "features").items()
            if name.startswith("reading/") or name.endswith(("reading.py", "page.py", "pages.py"))
        }

        assert len(readings) > 20
        assert [name for name, text in readings.items() if re.search(r"\bin_utc\b", text)] == []

    def test_of_pages_takes_the_zone_of_who_looks(self):
        pages = {
            name: text
            for name, text in self.files("admin", "features").items()
            if name.startswith("admin/") or name.endswith(("page.py", "pages.py"))
        }

        assert len(pages) > 20
        assert {name for name, text in pages.items() if "get_default_timezone" in text} <= self.PLANS

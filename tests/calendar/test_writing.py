"""A calendar as text, in the format that calendar programs read."""

from __future__ import annotations

from datetime import datetime, timedelta
from zoneinfo import ZoneInfo

import pytest
from icalendar import Calendar

from timeline.calendar.views import Entry, calendar_of


@pytest.fixture
def write(now):
    """Write entries, and read them again as a calendar program would."""
    return lambda *entries: Calendar.from_ical(calendar_of(entries, name="Mine", now=now))


class TestCalendarOf:
    def test_is_what_a_calendar_program_reads(self, write, now):
        written = write(Entry("one", 3, now, "Trial: remind", "seat 7"))

        [event] = written.walk("VEVENT")
        assert (written["version"], str(written["x-wr-calname"])) == ("2.0", "Mine")
        assert written["refresh-interval"].dt == timedelta(hours=1)
        assert (str(event["uid"]), event["sequence"]) == ("one", 3)
        assert (event["dtstart"].dt, event["dtstamp"].dt) == (now, now)
        assert (str(event["summary"]), str(event["description"])) == ("Trial: remind", "seat 7")
        assert event["transp"] == "TRANSPARENT"

    def test_says_the_same_under_the_names_that_apple_and_microsoft_read(self, now):
        lines = calendar_of([Entry("one", 0, now, "x", "")], name="Mine", now=now).splitlines()

        said = {
            b"METHOD:PUBLISH",
            b"NAME:Mine",
            b"X-WR-CALNAME:Mine",
            b"X-PUBLISHED-TTL:PT1H",
            b"X-MICROSOFT-CDO-BUSYSTATUS:FREE",
        }
        assert said <= set(lines)

    def test_is_one_too_where_nothing_is_ahead(self, write):
        assert write().walk("VEVENT") == []

    def test_says_times_in_utc(self, now):
        at = datetime(2026, 7, 1, 9, 0, tzinfo=ZoneInfo("Europe/Berlin"))

        assert b"DTSTART:20260701T070000Z\r\n" in calendar_of([Entry("one", 0, at, "x", "")], name="", now=now)

    @pytest.mark.parametrize(
        "text",
        [
            "x\r\nEND:VEVENT\r\nBEGIN:VEVENT\r\nSUMMARY:y",
            "x\nATTACH:file:///etc/passwd",
            "x\rATTACH:y",
            "x\u2028ATTACH:y\x85\x0b\x00",
            'a;b,c:d\\n"e',
            "\ud800",
            "ü" * 300,
        ],
    )
    def test_lets_no_text_be_more_than_text(self, write, now, text):
        written = write(Entry("one", 0, now, text, text), Entry("two", 0, now, "y", ""))

        events = written.walk("VEVENT")
        assert [str(event["uid"]) for event in events] == ["one", "two"]
        assert "ATTACH" not in events[0]
        assert str(events[0]["summary"]) == str(events[0]["description"])

    def test_keeps_what_can_be_written(self, write, now):
        said = 'Zahlung fällig; 10,50 € \\n "heute": ✓'

        assert str(write(Entry("one", 0, now, said, "")).walk("VEVENT")[0]["summary"]) == said

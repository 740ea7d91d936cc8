"""Moments that tests of times name: on the clocks of Berlin, and in UTC."""

from datetime import UTC, datetime
from zoneinfo import ZoneInfo

BERLIN = ZoneInfo("Europe/Berlin")  # Clocks go forward on 29 March 2026 at 2:00, back on 25 October 2026 at 3:00.


def berlin(*parts, fold=0):
    return datetime(*parts, tzinfo=BERLIN, fold=fold)


def utc(*parts):
    return datetime(*parts, tzinfo=UTC)

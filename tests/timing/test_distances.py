"""Distances: within a piece, what an offset gives is always as far away."""

from datetime import UTC, date, datetime, timedelta
from zoneinfo import ZoneInfo

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from timeline.exceptions import DateOutOfRange
from timeline.timing import LATEST, Offset, as_anchor_value, distances_of_days, distances_of_moments

ZONES = [ZoneInfo(name) for name in ("UTC", "Europe/Berlin", "Africa/Casablanca", "Pacific/Apia", "America/Sao_Paulo")]
OFFSETS = [
    Offset(exact=timedelta(hours=-5)),
    Offset(days=-5),
    Offset(days=2, exact=timedelta(hours=3)),
    Offset(months=1),
    Offset(months=-12, days=1),
]
MOMENTS = st.datetimes(datetime(2022, 1, 1), datetime(2030, 1, 1), timezones=st.just(UTC))  # noqa: DTZ001 (Hypothesis)


def piece(distances, base):
    """What is said of this moment."""
    before = [known for begin, known in zip(distances.begins, distances.known, strict=True) if begin <= base]
    return before[-1] if before else None


class TestOfMoments:
    @settings(deadline=None)  # The first time in a zone, all its pieces are found.
    @given(moment=MOMENTS, offset=st.sampled_from(OFFSETS), zone=st.sampled_from(ZONES))
    def test_are_those_of_the_offset(self, moment, offset, zone):
        known = piece(distances_of_moments(offset, zone, 2026), moment)

        assert known is None or (known.to_anchor, moment + known.to_time) == (timedelta(0), offset.apply(moment, zone))

    @pytest.mark.parametrize("offset", OFFSETS)
    def test_are_told_but_for_the_days_at_which_clocks_change(self, offset):
        distances = distances_of_moments(offset, ZoneInfo("Europe/Berlin"), 2026)
        days = [datetime(2026, 1, 1, 12, tzinfo=UTC) + timedelta(days=number) for number in range(365)]

        assert sum(piece(distances, day) is None for day in days) <= 6

    def test_are_not_told_of_what_is_far_away(self):
        distances = distances_of_moments(Offset(days=1), ZoneInfo("Europe/Berlin"), 2026)

        assert piece(distances, datetime(2040, 1, 1, tzinfo=UTC)) is None
        assert piece(distances, datetime(2010, 1, 1, tzinfo=UTC)) is None

    def test_are_not_told_where_the_time_would_be_out_of_range(self):
        offset = Offset(exact=timedelta(days=10))

        with pytest.raises(DateOutOfRange):
            offset.apply(LATEST - timedelta(days=5), UTC)
        assert piece(distances_of_moments(offset, UTC, 2026), LATEST - timedelta(days=5)) is None


class TestOfDays:
    @settings(deadline=None)
    @given(
        day=st.dates(date(2022, 1, 1), date(2030, 1, 1)), offset=st.sampled_from(OFFSETS), zone=st.sampled_from(ZONES)
    )
    def test_are_those_of_the_midnight_of_the_zone(self, day, offset, zone):
        base = datetime(day.year, day.month, day.day, tzinfo=UTC)
        value = as_anchor_value(day, zone, "day")

        known = piece(distances_of_days(offset, zone, 2026), base)

        assert (base + known.to_anchor, base + known.to_time) == (value, offset.apply(value, zone))

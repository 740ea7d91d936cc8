"""How long a receiver asks to be left alone."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pytest

from timeline.webhooks.retry import LONGEST_WAIT, wait_asked_for

AT = datetime(2026, 3, 1, 9, 0, tzinfo=UTC)


class TestWaitAskedFor:
    @pytest.mark.parametrize(
        ("said", "wait"),
        [
            ("120", timedelta(minutes=2)),
            ("0000000000120", timedelta(minutes=2)),
            ("Sun, 01 Mar 2026 10:00:00 GMT", timedelta(hours=1)),
            ("Sun, 01 Mar 2026 10:00:00 -0000", timedelta(hours=1)),
            ("Sun, 01 Mar 2026 12:00:00 +0200", timedelta(hours=1)),
        ],
    )
    def test_reads_seconds_and_dates(self, said, wait):
        assert wait_asked_for(said, at=AT) == wait

    @pytest.mark.parametrize("said", ["86400", "9" * 5_000, "Fri, 31 Dec 9999 23:59:59 -2359"])
    def test_is_bounded(self, said):
        assert wait_asked_for(said, at=AT) == LONGEST_WAIT

    @pytest.mark.parametrize(
        "said",
        [
            *("", "0", "-5", "1.5", "soon", "\N{ARABIC-INDIC DIGIT NINE}", "Sun, 01 Mar 2026 08:00:00 GMT"),
            *(
                "Sun, 01 Mar 99999999999 08:00:00 GMT",
                "Sun, 99 Mar 2026 08:00:00 GMT",
                "Mon, 01 Jan 0001 00:00:00 +2359",
            ),
        ],
    )
    def test_is_nothing_where_nothing_is_asked_for(self, said):
        assert wait_asked_for(said, at=AT) == timedelta()

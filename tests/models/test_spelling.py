"""Each entity has one spelling."""

from __future__ import annotations

from uuid import UUID

import pytest

from tests.testapp.models import Booking
from timeline.models import EntityRef, exact_ref

KEY = UUID("0195b7a0-0000-7000-8000-000000000001")


class TestExactRef:
    @pytest.mark.parametrize(
        ("label", "key"),
        [
            ("testapp.order", "17"),
            ("testapp.order", "-1"),
            ("testapp.parcel", str(KEY)),
            ("testapp.country", "DE"),
            ("testapp.country", "017"),
            ("testapp.country", "١"),
            ("gone.model", "017"),
            ("", ""),
        ],
    )
    def test_takes_what_rows_say(self, label, key):
        assert exact_ref(label, key) == EntityRef(label, key)

    @pytest.mark.parametrize(
        ("label", "key"),
        [
            ("testapp.order", "017"),
            ("testapp.order", "١٧"),
            ("testapp.order", "１７"),
            ("testapp.order", " 17"),
            ("testapp.order", "+17"),
            ("testapp.order", "1_7"),
            ("testapp.order", "17.0"),
            ("testapp.order", "x"),
            ("testapp.order", "9" * 5000),
            ("Testapp.Order", "17"),
            ("testapp.parcel", KEY.hex),
            ("testapp.parcel", str(KEY).upper()),
            ("testapp.country", "D\x00E"),
            ("testapp.country", "\ud800"),
            ("testapp.order", ""),
            ("", "17"),
            ("gone.model", "x" * 101),
            ("x" * 101, "17"),
            ("gone.model", "\x00"),
        ],
    )
    def test_takes_no_other_spelling(self, label, key):
        assert exact_ref(label, key) is None

    def test_takes_no_key_of_several_columns(self):
        assert exact_ref(Booking._meta.label_lower, "(1, 2)") is None

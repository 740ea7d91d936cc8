"""Primary keys."""

import time
from concurrent.futures import ThreadPoolExecutor
from functools import reduce
from itertools import islice
from operator import and_, or_
from uuid import RFC_4122

from timeline import ids
from timeline.ids import fresh_ids, uuid7, uuid7s


def milliseconds(key):
    return key.int >> 80


class TestUuid7:
    def test_is_of_version_7(self):
        key = uuid7()

        assert (key.version, key.variant) == (7, RFC_4122)

    def test_begins_with_the_time(self):
        """It may be a little ahead, where many were made at once."""
        before = time.time_ns() // 1_000_000

        stamp = milliseconds(uuid7())

        assert before <= stamp <= time.time_ns() // 1_000_000 + 100

    def test_has_milliseconds_in_48_bits_and_parts_of_them_in_the_next_12(self, monkeypatch):
        """The third quarter of a millisecond is 0xC00 of 0x1000."""
        monkeypatch.setattr(ids, "_last", 0)
        monkeypatch.setattr(time, "time_ns", lambda: 0x17F22E279B0 * 1_000_000 + 750_000)

        assert str(uuid7()).startswith("017f22e2-79b0-7c00-")
        assert str(uuid7()).startswith("017f22e2-79b0-7c01-")

    def test_sorts_after_every_earlier_one(self):
        """As number and as text, also within one millisecond."""
        keys = [uuid7() for _ in range(20_000)]

        assert keys == sorted(set(keys))
        assert [str(key) for key in keys] == sorted(str(key) for key in keys)

    def test_grows_also_when_the_clock_of_the_system_goes_back(self, monkeypatch):
        first = uuid7()
        monkeypatch.setattr(time, "time_ns", lambda: 0)

        second = uuid7()

        assert second > first
        assert milliseconds(second) - milliseconds(first) <= 1

    def test_differs_between_threads(self):
        with ThreadPoolExecutor(8) as pool:
            batches = list(pool.map(lambda _: [uuid7() for _ in range(500)], range(8)))

        assert len({key for batch in batches for key in batch}) == 4_000
        assert all(batch == sorted(batch) for batch in batches)

    def test_has_62_random_bits_behind_the_time(self):
        tails = [uuid7().int & (1 << 62) - 1 for _ in range(200)]

        assert len(set(tails)) == 200
        assert reduce(or_, tails) == (1 << 62) - 1
        assert reduce(and_, tails) == 0


class TestManyAtOnce:
    def test_are_as_if_made_one_by_one(self):
        keys = [uuid7(), *uuid7s(1000), uuid7(), *islice(fresh_ids(), 1000), uuid7()]

        assert keys == sorted(set(keys))
        assert {(key.version, key.variant) for key in keys} == {(7, RFC_4122)}

    def test_differ_in_62_random_bits(self):
        tails = [key.int & (1 << 62) - 1 for key in uuid7s(200)]

        assert len(set(tails)) == 200
        assert reduce(or_, tails) == (1 << 62) - 1
        assert reduce(and_, tails) == 0

    def test_may_be_none(self):
        assert uuid7s(0) == []

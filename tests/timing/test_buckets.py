"""Lengths of time in buckets, and what is told from their counts."""

from __future__ import annotations

from datetime import timedelta

import pytest

from timeline.features.maintenance.figures import BOUNDS, SIZE, bucket_of, merged, quantile


class TestBucketOf:
    @pytest.mark.parametrize(
        ("seconds", "bucket"), [(-5, 0), (0, 0), (0.1, 0), (0.11, 1), (1, 2), (86400, SIZE - 2), (86401, SIZE - 1)]
    )
    def test_is_the_first_whose_bound_it_does_not_pass(self, seconds, bucket):
        assert bucket_of(timedelta(seconds=seconds)) == bucket


class TestMerged:
    def test_adds_up_and_takes_what_is_missing_as_nothing(self):
        assert merged([1, 2], [])[:3] == [1, 2, 0]
        assert merged([1] * SIZE, [2] * SIZE) == [3] * SIZE


class TestQuantile:
    def test_is_none_of_nothing(self):
        assert quantile([0] * SIZE, 0.5) is None

    def test_lies_within_its_bucket(self):
        counts = merged([0, 0, 0, 0, 90], [0, 0, 0, 0, 0, 10])

        assert quantile(counts, 0.45) == pytest.approx(3.5)
        assert quantile(counts, 0.95) == pytest.approx(7.5)

    def test_is_the_greatest_bound_for_what_lies_beyond(self):
        assert quantile([0] * (SIZE - 1) + [3], 0.5) == BOUNDS[-1]

"""How long a failed task waits."""

from datetime import timedelta

import pytest

from timeline.definition import Retry


class TestDelay:
    @pytest.mark.parametrize(("failures", "seconds"), [(1, 15), (2, 30), (3, 60), (4, 120), (11, 15360)])
    def test_doubles_with_each_failure(self, failures, seconds):
        assert Retry(jitter=0).delay(failures) == timedelta(seconds=seconds)

    @pytest.mark.parametrize("factor", [1, 1.0])
    def test_stays_the_same_with_a_factor_of_one(self, factor):
        assert Retry(jitter=0, factor=factor).delay(9) == timedelta(seconds=15)

    @pytest.mark.parametrize("failures", [12, 100, 10_000])
    @pytest.mark.parametrize("factor", [2.0, 1000.0, 1000])
    @pytest.mark.parametrize("jitter", [0.0, 1.0])
    def test_is_never_over_the_cap(self, failures, factor, jitter):
        retry = Retry(factor=factor, jitter=jitter)

        assert retry.delay(failures) == retry.cap

    def test_is_lengthened_at_random_by_the_jitter_at_most(self):
        retry = Retry(base=timedelta(seconds=100), jitter=0.5)

        delays = {retry.delay(1) for _ in range(200)}

        assert all(timedelta(seconds=100) <= delay <= timedelta(seconds=150) for delay in delays)
        assert max(delays) - min(delays) > timedelta(seconds=20)

    def test_takes_the_longest_base_and_cap_there_are(self):
        longest = timedelta(days=3653)

        assert Retry(base=longest, cap=longest).problems() == []
        assert Retry(base=longest, cap=longest).delay(3) == longest


class TestProblems:
    @pytest.mark.parametrize(
        "retry",
        [
            Retry(),
            Retry(max_attempts=1),
            Retry(max_attempts=2**31 - 1),
            Retry(base=timedelta(seconds=1), cap=timedelta(seconds=1)),
            Retry(factor=1, jitter=0),
            Retry(factor=1000, jitter=1),
        ],
    )
    def test_are_none_of_a_proper_one(self, retry):
        assert retry.problems() == []

    @pytest.mark.parametrize(
        ("retry", "problem"),
        [
            (Retry(max_attempts=0), "max_attempts=0"),
            (Retry(max_attempts=-1), "max_attempts=-1"),
            (Retry(max_attempts=2.0), "max_attempts=2.0"),
            (Retry(max_attempts=True), "max_attempts=True"),
            (Retry(max_attempts=2**31), "max_attempts=2147483648"),
            (Retry(base=timedelta(0)), "no positive base"),
            (Retry(base=timedelta(seconds=-1)), "no positive base"),
            (Retry(base=timedelta(hours=7)), "a cap below it"),
            (Retry(cap=timedelta(days=3654)), "too long"),
            (Retry(base=15), "base=15, which is no timedelta"),
            (Retry(cap=3600), "cap=3600, which is no timedelta"),
            (Retry(factor=0.5), "factor outside 1 to 1000"),
            (Retry(factor=1001), "factor outside 1 to 1000"),
            (Retry(factor=float("nan")), "factor outside 1 to 1000"),
            (Retry(factor="2"), "factor outside 1 to 1000"),
            (Retry(jitter=-0.1), "jitter outside 0 to 1"),
            (Retry(jitter=1.1), "jitter outside 0 to 1"),
            (Retry(jitter=float("nan")), "jitter outside 0 to 1"),
            (Retry(jitter=None), "jitter outside 0 to 1"),
        ],
    )
    def test_say_what_is_wrong_and_what_to_do(self, retry, problem):
        [(text, remedy)] = retry.problems()

        assert problem in text
        assert remedy.startswith("Give ")

    def test_are_all_listed(self):
        assert len(Retry(max_attempts=0, base=timedelta(0), factor=0).problems()) == 3

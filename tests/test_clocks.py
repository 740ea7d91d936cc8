"""Story time and machine time."""

from datetime import UTC, datetime, timedelta

import pytest
from django.core.exceptions import ImproperlyConfigured

from tests.testapp.models import Order
from timeline.clocks import MachineTime, SteadyClock, story_now, story_time

LONG_AGO = datetime(2001, 2, 3, 4, 5, 6, tzinfo=UTC)


def long_ago():
    return LONG_AGO


class TestStoryNow:
    def test_is_the_clock_of_the_database(self, db):
        early = datetime.now(UTC) - timedelta(milliseconds=2)

        now = story_now("default")

        assert now.tzinfo is UTC
        assert early <= now <= datetime.now(UTC)

    def test_is_the_clock_of_the_settings_where_there_is_one(self, settings):
        settings.TIMELINE = {"CLOCK": "tests.test_clocks.long_ago"}

        assert story_now("default") == LONG_AGO

    def test_can_be_what_a_package_that_freezes_time_says(self, settings, monkeypatch):
        """Such packages put a class of theirs in the place of each ``datetime`` of Python's that a module has imported."""

        class Frozen(datetime):
            @classmethod
            def now(cls, tz=None):
                return LONG_AGO

        monkeypatch.setattr("django.utils.timezone.datetime", Frozen)
        settings.TIMELINE = {"CLOCK": "django.utils.timezone.now"}

        assert story_now("default") == LONG_AGO


class TestStoryTime:
    def test_tells_story_time_within_the_block_only(self, db):
        with story_time(long_ago):
            within = story_now("default")

        assert within == LONG_AGO
        assert story_now("default") > LONG_AGO

    def test_wins_over_the_clock_of_the_settings(self, settings):
        settings.TIMELINE = {"CLOCK": "tests.test_clocks.long_ago"}
        later = LONG_AGO + timedelta(days=1)

        with story_time(lambda: later):
            assert story_now("default") == later

    def test_gives_back_to_the_block_around_it(self):
        later = LONG_AGO + timedelta(days=1)

        with story_time(long_ago):
            with story_time(lambda: later):
                inner = story_now("default")
            outer = story_now("default")

        assert (inner, outer) == (later, LONG_AGO)

    def test_ends_with_an_error_too(self, db):
        with pytest.raises(KeyError), story_time(long_ago):
            raise KeyError

        assert story_now("default") != LONG_AGO

    def test_asks_the_clock_each_time(self):
        times = iter([LONG_AGO, LONG_AGO + timedelta(hours=1)])

        with story_time(lambda: next(times)):
            read = [story_now("default"), story_now("default")]

        assert read == [LONG_AGO, LONG_AGO + timedelta(hours=1)]


class TestSteadyClock:
    def test_asks_the_database_once_a_second(self, db, django_assert_num_queries):
        """In between it counts; it never runs backwards, nor ahead of the database."""
        clock = SteadyClock("default")

        with django_assert_num_queries(1):
            read = [clock() for _ in range(100)]

        assert read == sorted(read)
        assert read[-1] > read[0]
        assert read[-1] <= story_now("default") + timedelta(milliseconds=2)  # SQLite tells milliseconds.

    def test_asks_again_when_the_second_is_over(self, db, django_assert_num_queries, monkeypatch):
        clock, at = SteadyClock("default"), [100.0]
        monkeypatch.setattr("timeline.clocks.monotonic", lambda: at[-1])

        with django_assert_num_queries(1):
            first = clock()
            at.append(100.9)
            then = clock()
        at.append(101.1)
        with django_assert_num_queries(1):
            again = clock()

        assert abs(then - first - timedelta(seconds=0.9)) < timedelta(milliseconds=1)
        assert again < then  # It was the real database that was asked, where no second has passed.

    def test_tells_aware_times_in_utc(self, db):
        assert SteadyClock("default")().tzinfo is UTC

    def test_asks_the_clock_of_a_block_each_time(self):
        times, clock = iter([LONG_AGO, LONG_AGO + timedelta(hours=1)]), SteadyClock("default")

        with story_time(lambda: next(times)):
            assert [clock(), clock()] == [LONG_AGO, LONG_AGO + timedelta(hours=1)]

    def test_asks_the_clock_of_the_settings_each_time(self, settings, monkeypatch):
        settings.TIMELINE = {"CLOCK": "tests.test_clocks.long_ago"}
        clock = SteadyClock("default")
        before = clock()

        monkeypatch.setattr("tests.test_clocks.long_ago", lambda: LONG_AGO + timedelta(hours=1))

        assert (before, clock()) == (LONG_AGO, LONG_AGO + timedelta(hours=1))

    def test_is_the_databases_again_after_the_block(self, db):
        clock = SteadyClock("default")

        with story_time(long_ago):
            within = clock()

        assert within == LONG_AGO
        assert clock() > LONG_AGO + timedelta(days=1)


class TestMachineTime:
    def test_is_the_real_time_whatever_the_story_says(self, order):
        early = datetime.now(UTC) - timedelta(milliseconds=2)

        with story_time(long_ago):
            read = Order.objects.annotate(read_at=MachineTime()).get().read_at

        assert early <= read <= datetime.now(UTC)

    @pytest.mark.parametrize("plus", [timedelta(hours=1), timedelta(seconds=-90), timedelta(milliseconds=250)])
    def test_adds_what_it_is_told(self, order, plus):
        both = Order.objects.annotate(read_at=MachineTime(), then=MachineTime(plus)).get()

        assert abs(both.then - both.read_at - plus) < timedelta(milliseconds=240)

    def test_can_be_written_to_a_row_and_compared_with(self, order):
        Order.objects.update(ships_at=MachineTime(timedelta(minutes=1)))

        assert Order.objects.filter(ships_at__gt=MachineTime()).exists()
        assert not Order.objects.filter(ships_at__gt=MachineTime(timedelta(minutes=2))).exists()

    def test_differs_from_one_with_another_distance(self):
        assert MachineTime(timedelta(minutes=1)) == MachineTime(timedelta(minutes=1))
        assert MachineTime(timedelta(minutes=1)) != MachineTime(timedelta(minutes=2))


def naive():
    return datetime(2001, 2, 3)  # noqa: DTZ001


class TestClockOfTheSettings:
    def test_must_tell_aware_times(self, settings):
        settings.TIMELINE = {"CLOCK": "tests.test_clocks.naive"}

        with pytest.raises(ImproperlyConfigured, match="without a zone"):
            story_now("default")

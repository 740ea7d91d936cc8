"""A brake is lifted by hand: what waited because of it looks again at once, and the rate still holds."""

from __future__ import annotations

import asyncio
from datetime import timedelta

import pytest
from django.core.management import CommandError, call_command

from tests.features.rates.test_engine import CALLS, RAISED, Paced, go, states
from tests.testapp.models import Order
from timeline import Rate, RateLimited, Timeline, after, task, window
from timeline.clocks import story_time
from timeline.exceptions import InvalidInput
from timeline.features.rates import verbs
from timeline.models import LogEntry, RateKey, ScheduledTask
from timeline.shortcuts import alift_brake, emit, lift_brake
from timeline.testing import only_timelines

pytestmark = pytest.mark.django_db(transaction=True)

HOUR = timedelta(hours=1)
MINUTE = timedelta(minutes=1)
WHY = {"reason": "the provider is back", "actor": "ada"}


class Nightly(Timeline):
    entity = "testapp.Order"
    starts_on = "order.placed"

    @task(after(), rate=Rate("2/h", key="stripe"), atomic=False, window=window("08:30-09:01", zone="UTC"))
    def late(self, order): ...


@pytest.fixture(autouse=True)
def known():
    CALLS.clear()
    RAISED.clear()
    with only_timelines(Paced, Nightly):
        yield


@pytest.fixture
def braked(due, now):
    """One was told to wait for an hour, and so another waits that shares its key."""
    tasks = due("charge", "a") + due("refund", "b")
    RAISED.append(RateLimited(HOUR))
    go(tasks[:1], now)
    go(tasks[1:], now + MINUTE)
    assert states(tasks) == ["retryable"] * 2
    return tasks


def at(moment, act, *args, **options):
    with story_time(lambda: moment):
        return act(*args, **options)


class TestLiftBrake:
    def test_lets_what_waits_look_again_at_once(self, braked, now):
        woken = at(now + 2 * MINUTE, lift_brake, "stripe", **WHY)

        assert woken == 2
        assert states(braked) == ["available"] * 2
        go(braked, now + 2 * MINUTE)
        assert sorted(states(braked)) == ["completed", "retryable"]  # Two an hour, and one has begun before.

    def test_lets_the_next_begin_when_the_rate_has_room_and_not_behind_the_brake(self, braked, now):
        at(now + 2 * MINUTE, lift_brake, "stripe", **WHY)
        go(braked, now + 2 * MINUTE)

        [waiting] = ScheduledTask.objects.filter(state="retryable")
        assert waiting.scheduled_at == now + HOUR
        assert "is used up" in waiting.reason

    def test_leaves_a_trace_of_who_and_why(self, braked, now, caplog):
        with caplog.at_level("INFO", "timeline"):
            at(now + 2 * MINUTE, lift_brake, "stripe", **WHY)

        for entry in LogEntry.objects.filter(to_state="available", actor="ada"):
            assert (entry.reason_code, entry.reason, entry.at) == ("operator", WHY["reason"], now + 2 * MINUTE)
        assert LogEntry.objects.filter(to_state="available", actor="ada").count() == 2
        assert "The brake of the rate 'stripe' was lifted by ada (the provider is back): 2 tasks" in caplog.text

    def test_does_many_in_batches(self, braked, now, monkeypatch):
        monkeypatch.setattr(verbs, "BATCH", 1)

        assert at(now + 2 * MINUTE, lift_brake, "stripe", **WHY) == 2

    def test_brakes_anew_if_a_handler_asks_for_it(self, braked, now):
        at(now + 2 * MINUTE, lift_brake, "stripe", **WHY)
        RAISED.append(RateLimited(HOUR))
        go(braked[:1], now + 2 * MINUTE)

        assert RateKey.objects.get().braked_until == now + 2 * MINUTE + HOUR

    def test_leaves_what_waits_for_its_rate_or_is_outside_its_window(self, due, braked, now):
        at(now, emit, "order.placed", Order.objects.create())
        night = list(ScheduledTask.objects.filter(task_key="nightly.late"))
        go(night, now + MINUTE / 2)
        other = due("call", *"abcd")
        go(other, now + MINUTE)
        before = states(night + other)

        assert at(now + 2 * MINUTE, lift_brake, "stripe", **WHY) == 2
        assert states(night + other) == before
        assert before.count("retryable") == 2

    def test_is_for_one_value_of_a_field_or_for_all(self, due, now):
        tasks = due("of_tenant", "a", "b", "c")
        RAISED.extend([RateLimited(HOUR), RateLimited(HOUR), RateLimited(HOUR)])
        for each in tasks:
            go([each], now)

        at(now + MINUTE, lift_brake, "paced.of_tenant", "a", **WHY)
        one = dict(RateKey.objects.values_list("key", "braked_until"))
        at(now + MINUTE, lift_brake, "paced.of_tenant", **WHY)

        assert {key for key, until in one.items() if until is None} == {"paced.of_tenant:a"}
        assert not RateKey.objects.filter(braked_until__isnull=False).exists()

    def test_can_be_awaited(self, braked, now):
        with story_time(lambda: now + MINUTE):
            assert asyncio.run(alift_brake("stripe", **WHY)) == 2

    @pytest.mark.parametrize(
        ("key", "said"),
        [("strip", "Did you mean 'stripe'?"), ("paced.call", "raises RateLimited"), ("x" * 101, "100")],
    )
    def test_refuses_what_is_not_braked(self, braked, now, key, said):
        with pytest.raises(InvalidInput, match="key") as refused:
            at(now + 2 * MINUTE, lift_brake, key, **WHY)

        assert said in str(refused.value)
        assert states(braked) == ["retryable"] * 2

    def test_refuses_when_the_brake_is_over(self, braked, now):
        with pytest.raises(InvalidInput, match="'stripe' is not braked"):
            at(now + 2 * HOUR, lift_brake, "stripe", **WHY)

    def test_refuses_without_a_reason(self, braked, now):
        with pytest.raises(InvalidInput, match="reason"):
            at(now + MINUTE, lift_brake, "stripe", reason=" ")

        assert RateKey.objects.get().braked_until == now + HOUR

    def test_refuses_a_key_that_somebody_has_locked(self, braked, now, monkeypatch):
        monkeypatch.setattr(verbs, "lift", lambda *_args, **_options: False)

        with pytest.raises(InvalidInput, match="somebody has locked the rate of 'stripe'"):
            at(now + MINUTE, lift_brake, "stripe", **WHY)

        assert states(braked) == ["retryable"] * 2


class TestCommand:
    def test_shows_what_is_braked_and_lifts_it(self, braked, now, capsys):
        with story_time(lambda: now + MINUTE):
            call_command("timeline_rates")
            call_command("timeline_rates", "--lift", "stripe", "--reason", "it is back", "--actor", "ada")
            call_command("timeline_rates")

        assert capsys.readouterr().out.splitlines() == [
            "stripe: 2026-03-01 10:00 UTC",
            "2 tasks look again.",
            "No rate is braked.",
        ]
        assert states(braked) == ["available"] * 2

    def test_refuses_what_the_verb_refuses(self, braked):
        with pytest.raises(CommandError, match=r"'paced\.call' is not braked"):
            call_command("timeline_rates", "--lift", "paced.call", "--reason", "why")

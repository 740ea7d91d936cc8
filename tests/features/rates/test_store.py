"""The ledger of a key: in no period do more begin than are allowed, and what waits gets its turn."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from heapq import heappop, heappush

import pytest
from django.db import transaction
from hypothesis import given
from hypothesis import strategies as st

from timeline.clocks import story_time
from timeline.features.rates.declaration import Allowance
from timeline.features.rates.store import Asked, Ledger, admit, admit_here, forget, ledgers, micros, slow_down
from timeline.models import RateKey

SECOND = 1_000_000
HOUR = timedelta(hours=1)
AT = datetime(2026, 3, 1, 9, tzinfo=UTC)

allowances = st.builds(
    Allowance, st.integers(1, 5), st.sampled_from([timedelta(seconds=1), timedelta(minutes=1), HOUR])
)


def most_within(starts, period):
    """How many starts there are at most in any time of this length."""
    return max((sum(start <= other < start + period for other in starts) for start in starts), default=0)


class TestLedger:
    @given(
        allowance=allowances,
        comes=st.lists(st.tuples(st.integers(0, 2000), st.booleans(), st.booleans()), max_size=80),
    )
    def test_lets_no_more_begin_in_any_period(self, allowance, comes):
        """They come at any moments, at once or apart; some have waited, and some are counted anew before they are entered."""
        period, now = allowance.period // timedelta(microseconds=1), micros(AT)
        ledger, begun, entered = Ledger(now, []), [], []
        for share, waited, again in comes:
            ledger.now = now = now + period * share // 1000 // 4
            asked = begun.pop() if again and begun else Asked(waited)
            if asked.counted:
                entered.remove(asked.counted)
            if ledger.admit(asked, allowance):
                begun.append(asked)
                entered.append(now)

            assert most_within(entered, period) <= allowance.most
        assert len(ledger.starts) <= allowance.most

    @given(allowance=allowances, number=st.integers(1, 40), lag=st.integers(0, 900))
    def test_lets_all_begin_in_the_end_and_leaves_few_starts_unused(self, allowance, number, lag):
        """All come at once, and each comes again when it is told to, a little late."""
        period, now = allowance.period // timedelta(microseconds=1), micros(AT)
        ledger, starts = Ledger(now, []), []
        due = [(now, place, Asked(False)) for place in range(number)]
        rounds = 0
        while due:
            due.sort(key=lambda each: each[:2])
            at, place, asked = due.pop(0)
            ledger.now = max(ledger.now, at + lag * 1000)
            rounds += 1
            if ledger.admit(asked, allowance):
                starts.append(ledger.now)
            else:
                due.append((micros(asked.due_at), place, Asked(True)))

        assert most_within(starts, period) <= allowance.most
        needed = (number - 1) // allowance.most
        longest = (needed + 1) * (period + 2 * lag * 1000) * 2 + 2 * max(period, 300 * SECOND)
        assert max(starts) - micros(AT) <= longest
        assert rounds <= number * (needed + 3)

    @pytest.mark.parametrize(
        ("allowance", "number"),
        [(Allowance(100, HOUR), 2000), (Allowance(1, timedelta(minutes=1)), 300), (Allowance(10, HOUR / 60), 2000)],
        ids=["100/h", "1/m", "10/m"],
    )
    def test_looks_few_times_for_each_and_leaves_no_period_unused(self, allowance, number):
        """All come at once; polls are half a second late on average."""
        period, now = allowance.period // timedelta(microseconds=1), micros(AT)
        ledger, looks = Ledger(now, []), [0] * number
        due = [(now, place) for place in range(number)]
        while due:
            at, place = heappop(due)
            ledger.now = max(ledger.now, -(-at // SECOND) * SECOND)
            looks[place] += 1
            asked = Asked(looks[place] > 1)
            if not ledger.admit(asked, allowance):
                heappush(due, (micros(asked.due_at), place))

        assert sum(looks) < 5 * number
        assert ledger.now - now <= (number / allowance.most + 1) * period

    def test_does_not_trust_what_a_clock_that_was_set_back_said_of_the_last_that_waits(self):
        now, allowance = micros(AT), Allowance(2, HOUR)
        ledger, refused = Ledger(now, [now, now], tail=now + 10**15), Asked(True)

        ledger.admit(refused, allowance)

        assert refused.due_at == AT + HOUR

    def test_does_not_trust_what_a_clock_that_was_set_back_calls_the_future(self):
        now, allowance = micros(AT), Allowance(2, HOUR)
        ledger = Ledger(now, [now + 10**15, now + 10**15])

        refused = Asked(False)
        first = ledger.admit(refused, allowance)
        ledger.now += 3600 * SECOND

        assert (first, refused.due_at) == (False, AT + HOUR)
        assert ledger.admit(Asked(True), allowance)

    def test_leaves_the_last_free_start_to_one_that_has_waited(self):
        now, allowance = micros(AT), Allowance(2, HOUR)
        ledger = Ledger(now, [now - SECOND], tail=now + SECOND)

        assert not ledger.admit(Asked(False), allowance)
        assert ledger.admit(Asked(True), allowance)

    def test_lets_one_begin_that_was_counted_and_not_entered_yet(self):
        """Meanwhile others wait: it has come before them."""
        now, allowance = micros(AT), Allowance(2, HOUR)
        ledger, asked = Ledger(now, []), Asked(False)
        ledger.admit(asked, allowance)
        ledger.admit(Asked(False), allowance)
        refused = Asked(False)
        ledger.admit(refused, allowance)
        ledger.now += SECOND // 10

        assert refused.due_at == AT + HOUR
        assert ledger.admit(asked, allowance)
        assert ledger.starts == [now, now + SECOND // 10]

    def test_waits_for_nobody_who_does_not_come(self):
        """All that waited were cancelled."""
        now, allowance = micros(AT), Allowance(1, timedelta(seconds=1))
        ledger = Ledger(now, [now - 10 * SECOND], tail=now + 300 * SECOND)

        assert ledger.admit(Asked(False), allowance)

    def test_counts_what_other_code_allowed(self):
        """A deploy has lowered the rate: what has begun under the old one counts."""
        now = micros(AT)
        ledger = Ledger(now, [now - SECOND * (100 - number) for number in range(100)])
        asked = Asked(True)

        assert not ledger.admit(asked, Allowance(10, HOUR))
        assert micros(asked.due_at) == now - 10 * SECOND + 3600 * SECOND


@pytest.mark.django_db(transaction=True)
class TestAdmit:
    ALLOWED = Allowance(2, HOUR)

    def ask(self, number=1, key="key", at=AT):
        several = [Asked(False) for _ in range(number)]
        with story_time(lambda: at):
            busy = admit({key: (self.ALLOWED, several)}, now=at, using="default")
        return [bool(each.counted) for each in several], busy

    def test_is_kept(self):
        assert self.ask(3)[0] == [True, True, False]
        assert self.ask(1, at=AT + HOUR - timedelta(microseconds=1))[0] == [False]
        assert RateKey.objects.get().starts == f"[{micros(AT)},{micros(AT)}]"

    @pytest.mark.parametrize("broken", ["", "{", "7", '["x"]', "[null]", "[" * 3000, "null", "[Infinity]"])
    def test_counts_a_row_that_cannot_be_read_as_used_up_for_a_period(self, broken):
        self.ask()
        RateKey.objects.update(starts=broken)

        first = self.ask()[0]

        assert first == [False]
        assert self.ask(2, at=AT + HOUR)[0] == [True, False]
        assert self.ask(2, at=AT + 3 * HOUR)[0] == [True, True]

    def test_is_braked_no_longer_than_can_be_asked_for(self):
        """The clock was wrong when somebody braked it."""
        self.ask()
        RateKey.objects.update(braked_until=AT + timedelta(days=999))
        self.ask()

        assert self.ask(1, at=AT + timedelta(days=31))[0] == [True]

    def test_knows_each_key_by_itself(self):
        assert [self.ask(2, key=key)[0] for key in ("a", "b", "ü" * 100)] == [[True, True]] * 3


@pytest.mark.django_db(transaction=True)
class TestAdmitHere:
    """Counting within the transaction of whoever asks."""

    def ask(self, keys="a", number=2, most=2, at=AT):
        several = {key: [(Allowance(most, HOUR), Asked(waited=True)) for _ in range(number)] for key in keys}
        with transaction.atomic(), story_time(lambda: at):
            admit_here(several, now=at, using="default")
        return {key: [asked.due_at is None for _allowance, asked in those] for key, those in several.items()}

    def test_is_kept(self):
        assert self.ask(["b", "a"], number=3) == {"a": [True, True, False], "b": [True, True, False]}
        assert self.ask(at=AT + HOUR - timedelta(microseconds=1)) == {"a": [False, False]}
        assert self.ask(at=AT + HOUR, number=3) == {"a": [True, True, False]}

    def test_is_undone_with_the_transaction(self):
        with transaction.atomic():
            self.ask()
            transaction.set_rollback(True)

        assert self.ask() == {"a": [True, True]}

    def test_goes_by_the_allowance_of_each(self):
        self.ask(number=1)

        assert self.ask(most=1, number=1) == {"a": [False]}
        assert self.ask(most=3, number=3) == {"a": [True, True, False]}

    def test_may_be_asked_for_beforehand(self):
        self.ask(number=1)

        found = ledgers(["a", "b"], now=AT + HOUR, using="default")

        assert {key: ledger.starts for key, ledger in found.items()} == {"a": [micros(AT)], "b": []}
        assert RateKey.objects.count() == 1


@pytest.mark.django_db(transaction=True)
class TestForget:
    def test_deletes_what_says_nothing_any_more(self):
        TestAdmit().ask()
        with story_time(lambda: AT):
            slow_down("braked", until=AT + timedelta(days=9), now=AT, using="default")

        early = forget(now=AT + timedelta(hours=20), most=10, using="default")
        late = forget(now=AT + timedelta(hours=26), most=10, using="default")

        assert (early, late) == (0, 1)
        assert RateKey.objects.get().key == "braked"

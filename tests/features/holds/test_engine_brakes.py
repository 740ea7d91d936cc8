"""The brake at the last look: what it costs, and that what is refused counts for nothing."""

from __future__ import annotations

from datetime import timedelta

import pytest

from tests.testapp.models import Order
from timeline import Timeline, task
from timeline.dispatch.rescue import rescue
from timeline.engine.attempts import begin_attempts
from timeline.features.holds import precheck
from timeline.features.holds.precheck import braked
from timeline.features.holds.release import release
from timeline.features.holds.store import admit, would_start
from timeline.lifecycle import ReasonCode
from timeline.models import Admission, Hold, ScheduledTask
from timeline.shortcuts import schedule
from timeline.testing import only_timelines
from timeline.timing import EARLIEST

pytestmark = pytest.mark.django_db


class Closing(Timeline):
    """Closes accounts, which nobody can undo."""

    entity = "testapp.Order"

    @task(destructive=True, park_above=10)
    def close(self, order: Order) -> None: ...

    @task()
    def note(self, order: Order) -> None: ...


@pytest.fixture
def begun(clock):
    def begin(name, number):
        order = Order.objects.create()
        rows = [schedule(name, order, at=clock.now, key=str(key)).task.pk for key in range(number)]
        return begin_attempts(rows, token=None, worker="w", now=clock.now, using="default")

    with only_timelines(Closing):
        yield begin


class TestBraked:
    def test_asks_nothing_of_plain_tasks(self, begun, clock, django_assert_num_queries):
        attempts = begun("closing.note", 20)

        with django_assert_num_queries(0):
            assert braked(attempts, now=clock.now, using="default") == {}
            assert braked([], now=clock.now, using="default") == {}

    @pytest.mark.parametrize("number", [1, 10])
    def test_asks_a_fixed_number_of_statements(self, begun, clock, number, django_assert_num_queries):
        attempts = begun("closing.close", number)

        with django_assert_num_queries(5):  # Known, released, admit, let in, waiting.
            assert braked(attempts, now=clock.now, using="default") == {}
        with django_assert_num_queries(1):
            assert braked(attempts, now=clock.now, using="default") == {}

        assert Admission.objects.count() == number

    def test_gives_all_back_if_one_is_too_many(self, begun, clock):
        attempts = begun("closing.close", 11)

        refused = braked(attempts, now=clock.now, using="default")

        assert refused.keys() == {attempt.task.pk for attempt in attempts}
        assert {reason.code for reason in refused.values()} == {ReasonCode.HOLD}
        assert Hold.objects.get().target == "closing.close"
        assert not Admission.objects.exists()

    def test_counts_again_what_a_killed_worker_let_in_and_had_not_counted(self, begun, clock):
        lost = [attempt.task.pk for attempt in begun("closing.close", 11)]
        admit("closing.close", dict.fromkeys(lost, clock.now), using="default")
        ScheduledTask.objects.update(lease_expires_at=EARLIEST)
        rescue(now=clock.now, using="default")

        [alone] = begin_attempts(lost[:1], token=None, worker="w", retried=True, now=clock.now, using="default")

        assert braked([alone], now=clock.now, using="default")[lost[0]].code == ReasonCode.HOLD
        assert Hold.objects.get().target == "closing.close"

    def test_lets_in_again_what_is_tried_again(self, begun, clock):
        lost = [attempt.task.pk for attempt in begun("closing.close", 10)]
        admit("closing.close", dict.fromkeys(lost, clock.now), using="default")
        ScheduledTask.objects.update(lease_expires_at=EARLIEST)
        rescue(now=clock.now, using="default")

        [alone] = begin_attempts(lost[:1], token=None, worker="w", retried=True, now=clock.now, using="default")

        assert braked([alone], now=clock.now, using="default") == {}

    @pytest.mark.parametrize("later", [timedelta(0), timedelta(seconds=1)], ids=["at once", "read the clock later"])
    def test_does_not_hold_again_what_a_person_lets_go_while_it_looks(self, begun, clock, monkeypatch, later):
        attempts = begun("closing.close", 30)
        braked(attempts[:15], now=clock.now, using="default")
        held = Hold.objects.get()

        def count_while_somebody_releases(*asked, **given):
            count = would_start(*asked, **given)
            if Hold.objects.open().exists():
                release(hold_id=held.pk, actor="ada", reason="it is right", now=clock.now, using="default")
            return count

        monkeypatch.setattr(precheck, "would_start", count_while_somebody_releases)
        refused = braked(attempts[15:], now=clock.now + later, using="default")

        assert refused == {}
        assert not Hold.objects.open().exists()
        assert Admission.objects.filter(at=clock.now).count() == 30

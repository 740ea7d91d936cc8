"""What is aside keeps no run open; what is spread comes one after the other."""

from __future__ import annotations

from datetime import timedelta

import pytest

from tests.testapp.models import Order
from timeline import Timeline, after, task
from timeline.exceptions import DefinitionError, InvalidInput
from timeline.lifecycle import State
from timeline.models import ScheduledTask, TimelineRun
from timeline.shortcuts import emit_many, enroll, preview, reconcile, redrive, start
from timeline.testing import only_timelines

pytestmark = pytest.mark.django_db(transaction=True)

HOUR = timedelta(hours=1)


class Packing(Timeline):
    """Packed within a day, or somebody is told."""

    entity = "testapp.Order"
    starts_on = "order.placed"

    @task(after(hours=2))
    def pack(self, order): ...

    @task(after(days=1), aside=True)
    def tell_the_boss(self, order): ...

    @task(after(tell_the_boss, days=1), aside=True)
    def tell_again(self, order): ...


class Reminding(Timeline):
    """Everybody at the same time, if it were not spread."""

    entity = "testapp.Order"

    @task(after(hours=1), spread=HOUR, expires=timedelta(hours=2))
    def remind(self, order): ...


@pytest.fixture(autouse=True)
def known():
    with only_timelines(Packing, Reminding):
        yield


def row(name):
    return ScheduledTask.objects.filter(task_key=name).latest("revision")


class TestAside:
    def test_is_cancelled_with_the_run_that_ends_without_it(self, clock):
        run = start(Packing, Order.objects.create()).run

        clock.advance(hours=2)
        clock.run_due()

        run.refresh_from_db()
        told = row("packing.tell_the_boss")
        assert run.is_finished
        assert (told.state, told.reason_code) == (State.CANCELLED, "run_ended")
        assert not ScheduledTask.objects.filter(task_key="packing.tell_again").exists()

    def test_runs_while_the_run_is_open(self, clock):
        start(Packing, Order.objects.create())
        ScheduledTask.objects.filter(task_key="packing.pack").update(scheduled_at=clock.now + timedelta(days=5))

        clock.advance(days=1)
        clock.run_due()

        assert row("packing.tell_the_boss").state == State.COMPLETED
        assert row("packing.tell_again").state == State.SCHEDULED
        assert TimelineRun.objects.open().exists()

    def test_is_wanted_again_when_the_run_is_opened_again(self, clock):
        start(Packing, Order.objects.create())
        clock.advance(hours=2)
        clock.run_due()

        redrive(row("packing.pack"), reason="once more")

        again = row("packing.tell_the_boss")
        assert (again.revision, again.state) == (2, State.SCHEDULED)


class TestSpread:
    def test_gives_each_entity_a_moment_of_its_own_not_before_its_time(self, clock):
        orders = [Order.objects.create() for _ in range(30)]
        enroll(Reminding, Order.objects.all())

        rows = list(ScheduledTask.objects.all())
        assert all(clock.now + HOUR == row.nominal_at <= row.scheduled_at < row.nominal_at + HOUR for row in rows)
        assert len({row.scheduled_at for row in rows}) > 25
        for order in orders:
            reconcile(order)
        assert {row.pk: row.scheduled_at for row in ScheduledTask.objects.all()} == {
            row.pk: row.scheduled_at for row in rows
        }

    def test_is_the_same_alone_and_for_many_and_foreseen(self, clock):
        order = Order.objects.create()
        [outlook] = preview(Reminding, order)
        start(Reminding, order)

        assert row("reminding.remind").scheduled_at == outlook.expected_at

    @pytest.mark.parametrize("begin", ["emit_many", "enroll"])
    def test_of_a_verb_for_many_spreads_what_begins(self, clock, begin):
        for _ in range(30):
            Order.objects.create()
        if begin == "enroll":
            enroll(Packing, Order.objects.all(), started_at=clock.now - timedelta(days=10), spread=HOUR)
        else:
            long_ago = clock.now - timedelta(days=10)
            emit_many("order.placed", Order.objects.all(), occurred_at=long_ago, spread=HOUR)

        rows = list(ScheduledTask.objects.filter(task_key="packing.pack"))
        assert all(clock.now <= row.scheduled_at < clock.now + HOUR for row in rows)
        assert len({row.scheduled_at for row in rows}) > 25
        for order in Order.objects.all():
            reconcile(order)
        again = ScheduledTask.objects.filter(task_key="packing.pack")
        assert {row.scheduled_at for row in again} == {row.scheduled_at for row in rows}

    @pytest.mark.parametrize("spread", [timedelta(0), timedelta(days=31), 60])
    def test_refuses_what_is_none(self, clock, spread):
        Order.objects.create()

        with pytest.raises(InvalidInput, match="spread"):
            enroll(Packing, Order.objects.all(), spread=spread)
        with pytest.raises(InvalidInput, match="spread"):
            emit_many("order.placed", Order.objects.all(), spread=spread)

        assert not TimelineRun.objects.exists()


class TestDefinition:
    @pytest.mark.parametrize(
        ("options", "said"),
        [
            ({"aside": True}, "nothing would keep the run open"),
            ({"aside": "yes"}, "has aside = 'yes'"),
            ({"spread": timedelta(0)}, "has spread = "),
            ({"spread": timedelta(days=31)}, "30 days at most"),
            ({"spread": 60}, "has spread = 60"),
            ({"spread": HOUR, "expires": HOUR}, "may expire before it is due"),
        ],
    )
    def test_refuses_options_that_cannot_be(self, options, said):
        with pytest.raises(DefinitionError, match=f"Wrong.act: .*{said}"):

            class Wrong(Timeline):
                @task(after(hours=1), **options)
                def act(self): ...

    @pytest.mark.parametrize(("option", "said"), [("aside", "no schedule"), ("spread", "no schedule to spread")])
    def test_refuses_them_without_a_schedule(self, option, said):
        with pytest.raises(DefinitionError, match=f"Wrong.act: .*{said}"):

            class Wrong(Timeline):
                @task(**{option: True if option == "aside" else HOUR})
                def act(self): ...

                @task(after(hours=1))
                def keep(self): ...

    def test_refuses_a_follower_that_would_keep_the_run_open(self):
        with pytest.raises(DefinitionError, match=r"Wrong.follow: follows 'alarm', which is aside"):

            class Wrong(Timeline):
                @task(after(hours=1))
                def keep(self): ...

                @task(after(hours=1), aside=True)
                def alarm(self): ...

                @task(after(alarm, hours=1))
                def follow(self): ...

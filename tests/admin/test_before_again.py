"""What the page says, before failed tasks are all run again, that comes of them."""

from __future__ import annotations

from datetime import timedelta

import pytest
from django.db import connection
from django.db.models import Q
from django.test.utils import CaptureQueriesContext

from tests.admin.conftest import ENTITY, text_of
from tests.admin.test_redriving import DEAD, GIVEN, REDRIVE
from tests.testapp.models import Order
from timeline import Retry, Timeline, at, task
from timeline.admin import before_again
from timeline.lifecycle import State
from timeline.models import ScheduledTask, StepRecord, TimelineRun
from timeline.shortcuts import emit, hold
from timeline.testing import only_timelines


def is_quick(order):
    return order.note == "quick"


class Trip(Timeline):
    entity = "testapp.Order"
    starts_on = "trip.booked"
    exits = {"trip.cancelled": "cancelled"}

    @task(
        at("ships_at"),
        expires=timedelta(days=2),
        unless=is_quick,
        only_if=~Q(note="no mail"),
        retry=Retry(max_attempts=1),
    )
    def remind(self, order):
        raise ValueError("no")


@pytest.fixture
def failed(clock):
    """Make trips whose reminder has failed: ``failed("Ada")`` gives them; all are in one group."""
    with only_timelines(Trip):

        def make(*notes):
            orders = [Order.objects.create(note=note, ships_at=clock.now) for note in notes]
            for order in orders:
                emit("trip.booked", order)
            with clock.failing():
                clock.run_due()
            return orders

        yield make


def where():
    """The address of the page."""
    return f"{REDRIVE}?group={ScheduledTask.objects.dead_letters().values_list('fingerprint', flat=True)[0]}"


@pytest.fixture
def said(operator):
    """What the page says: sentence → count."""

    def read():
        fates = operator.get(where()).context["fates"]
        return {each.said: each.number for each in (fates.run, *fates.others)}

    return read


NOW = "they run now"


class TestFates:
    def test_count_what_runs_and_name_the_first(self, operator, failed, said):
        orders = failed(*"abcde")

        page = text_of(operator.get(where()))

        assert said() == {NOW: 5}
        assert f'<a href="{ENTITY}?label=testapp.order&amp;id={orders[0].pk}">order {orders[0].pk}</a>, <a' in page
        assert "and 2 more" in page

    @pytest.mark.parametrize(
        ("note", "why"), [("quick", "unless is_quick"), ("no mail", "only_if (NOT (AND: ('note', 'no mail')))")]
    )
    def test_tell_what_a_guard_calls_off(self, failed, said, note, why):
        failed("a", "b")
        Order.objects.filter(note="b").update(note=note)

        assert said() == {NOW: 1, f"they are dropped at once: {why}": 1}

    def test_tell_what_is_too_late_and_that_is_what_happens(self, operator, failed, said, clock):
        failed("a", "b")
        clock.advance(days=3)

        assert said() == {NOW: 0, "they are dropped at once: it is too late for them": 2}

        operator.post(where(), GIVEN)
        clock.run_due()

        again = ScheduledTask.objects.filter(revision=2)
        assert set(again.values_list("state", "reason_code")) == {(State.CANCELLED, "expired")}

    def test_tell_what_has_another_time_by_now(self, failed, said, clock):
        [order] = failed("a")
        Order.objects.filter(pk=order.pk).update(ships_at=clock.now + timedelta(days=5))

        assert said() == {
            NOW: 0,
            "they do not run now: ships_at changed; they come again at the time that is planned for them, if any": 1,
        }

    def test_tell_what_is_about_nothing_any_more(self, failed, said):
        [order] = failed("a")
        Order.objects.filter(pk=order.pk)._raw_delete("default")
        Order.objects.create()

        assert said() == {NOW: 0, "they are dropped at once: the entity is not there any more": 1}

    def test_tell_what_is_on_hold(self, failed, said):
        _ada, ben = failed("a", "b")
        hold(ben, reason="a dispute")

        assert said() == {NOW: 1, "held until somebody releases it": 1}

    def test_tell_what_stays_since_its_run_has_ended(self, failed, said):
        ada, _ben = failed("a", "b")
        emit("trip.cancelled", ada)

        assert said() == {NOW: 1, "they stay as they are: their run has ended otherwise": 1}

    def test_count_tasks_of_finished_runs_as_run(self, failed, said):
        failed("a")
        assert not TimelineRun.objects.open().exists()

        assert said() == {NOW: 1}

    def test_tell_how_many_were_looked_at(self, operator, failed, monkeypatch):
        failed("a", "b", "c")
        monkeypatch.setattr("timeline.admin.dead_letters.LOOKED_AT", 2)

        page = text_of(operator.get(where()))

        assert "What comes of the first 2 of 3" in page
        assert "Only the first 2 were looked at" in page

    def test_say_so_where_guards_take_too_long(self, failed, said, monkeypatch):
        failed("a")
        monkeypatch.setattr(before_again, "_GUARDS", 0)

        assert said() == {NOW: 0, "nobody can say whether they run": 1}

    def test_cost_as_many_statements_for_many_as_for_few(self, person, browse, failed):
        browser = browse(person("root", is_superuser=True, is_staff=True))

        def statements():
            address = where()
            with CaptureQueriesContext(connection) as queries:
                browser.get(address)
            return len([query for query in queries if "SAVEPOINT" not in query["sql"]])  # Of the test's transaction.

        failed(*"ab")
        few = statements()
        failed(*"cdefghijklmn")

        assert statements() == few <= 11

    def test_count_what_is_half_done_as_run(self, failed, said, clock):
        """It goes on behind the steps that are done, as it does where a worker looks."""
        failed("a")
        [task_id] = ScheduledTask.objects.values_list("pk", flat=True)
        done = {"attempt": 1, "kind": "done", "recorded_at": clock.now, "seconds": 1, "digest": "d"}
        StepRecord.objects.create(origin=task_id, name="pay", **done)
        clock.advance(days=3)

        assert said() == {NOW: 1}

    def test_are_told_of_a_cause_too(self, operator, failed):
        failed("a", "b")
        [cause] = operator.get(DEAD).context["causes"]

        assert operator.get(REDRIVE + cause.where).context["fates"].run.number == 2

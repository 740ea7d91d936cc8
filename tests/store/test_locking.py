"""The lock order: entities, then runs, then tasks. In which order they are taken: tests/postgresql/test_lock_order.py."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from uuid import uuid4

import pytest
from django.db import connection, transaction

from tests.testapp.models import Order
from timeline.exceptions import WrongEntity
from timeline.models import EntityRef, ScheduledTask, TimelineRun, ref_of
from timeline.models.entities import NO_ENTITY
from timeline.store.locks import lock_batch, lock_entity_now, lock_runs, lock_tasks, missing
from timeline.store.transactions import in_transaction

MINUTE = timedelta(minutes=1)
GONE = EntityRef("testapp.order", "4711")


@pytest.fixture
def orders(db):
    return Order.objects.bulk_create([Order() for _ in range(3)])


@pytest.fixture
def make_run(now):
    """Begin a run of an order."""

    def make(order):
        label, key = ref_of(order)
        return TimelineRun.objects.create(timeline="trial", started_at=now, entity_label=label, entity_id=key)

    return make


@pytest.mark.django_db(transaction=True)
class TestInTransaction:
    def test_is_one_of_its_own_outside_of_any(self):
        with in_transaction("default"):
            assert connection.in_atomic_block

        assert not connection.in_atomic_block

    def test_is_the_callers_without_a_savepoint(self, django_assert_num_queries):
        with transaction.atomic(), django_assert_num_queries(0), in_transaction("default"):
            pass


class TestLockBatch:
    def test_gives_those_that_are_there_in_the_order_given(self, orders):
        refs = [ref_of(order) for order in orders[::-1]]

        found = lock_batch([*refs[:1], GONE, *refs[1:]], gone=True, using="default")

        assert list(found.items()) == list(zip(refs, orders[::-1], strict=True))

    def test_reads_nothing_of_them_if_told_so(self, orders):
        assert lock_batch([ref_of(orders[0]), NO_ENTITY], read=False, using="default") == {
            ref_of(orders[0]): None,
            NO_ENTITY: None,
        }

    @pytest.mark.parametrize("read", [True, False])
    def test_names_the_first_that_is_not_there(self, orders, read):
        with pytest.raises(WrongEntity, match=r"testapp\.order 4711 is not in the database"):
            lock_batch([ref_of(orders[0]), GONE, EntityRef("testapp.order", "4712")], read=read, using="default")


class TestLockEntityNow:
    @pytest.mark.parametrize("read", [True, False])
    def test_goes_by_the_time_that_is_given(self, orders, now, read):
        found, told = lock_entity_now(ref_of(orders[0]), read=read, now=now, using="default")

        assert (found, told) == ({ref_of(orders[0]): orders[0] if read else None}, now)

    @pytest.mark.parametrize("read", [True, False])
    def test_goes_by_the_story_where_one_is_told(self, orders, clock, now, read):
        clock.set(now + timedelta(days=900))

        assert lock_entity_now(ref_of(orders[0]), read=read, now=None, using="default")[1] == clock.now

    @pytest.mark.parametrize("read", [True, False])
    def test_goes_by_the_databases_clock_else(self, orders, read):
        _found, told = lock_entity_now(ref_of(orders[0]), read=read, now=None, using="default")

        assert abs(told - datetime.now(UTC)) < MINUTE

    @pytest.mark.only_postgresql
    def test_reads_the_clock_with_the_lock_where_nothing_else_is_read(self, orders, django_assert_num_queries):
        with django_assert_num_queries(1):
            lock_entity_now(ref_of(orders[0]), fresh=False, now=None, using="default")

    @pytest.mark.parametrize("read", [True, False])
    @pytest.mark.parametrize("at", [True, False], ids=["time given", "time asked"])
    def test_refuses_what_is_not_there_unless_it_may_be_gone(self, db, now, read, at):
        given = {"read": read, "now": now if at else None, "using": "default"}

        with pytest.raises(WrongEntity):
            lock_entity_now(GONE, **given)
        assert lock_entity_now(GONE, gone=True, **given)[0] == {}


class TestMissing:
    def test_names_entity_and_database(self):
        assert "testapp.order 4711 is not in the database 'other'" in str(missing(GONE, "other"))


class TestLockRuns:
    def test_gives_runs_in_order_of_their_ids_with_their_entities(self, orders, make_run):
        runs = [make_run(order) for order in orders]

        locked = lock_runs([run.pk for run in runs[::-1]], [run.entity_ref for run in runs], using="default")

        assert locked.runs == sorted(runs, key=lambda run: str(run.pk))
        assert dict(locked.entities) == {ref_of(order): order for order in orders}

    def test_leaves_out_what_is_not_there_or_not_asked_for(self, orders, make_run):
        run, _other = make_run(orders[0]), make_run(orders[1])

        locked = lock_runs([uuid4(), run.pk], [GONE, run.entity_ref], using="default")

        assert (locked.runs, dict(locked.entities)) == ([run], {run.entity_ref: orders[0]})


class TestLockTasks:
    def test_gives_them_in_the_order_given_each_with_its_run(
        self, orders, make_run, make_task, django_assert_num_queries
    ):
        runs = [make_run(order) for order in orders]
        tasks = [make_task(run=run, entity_label=run.entity_label, entity_id=run.entity_id) for run in runs]
        alone = make_task()
        asked = [tasks[2].pk, alone.pk, tasks[0].pk, tasks[2].pk]

        found = lock_tasks(asked, using="default")

        assert found == [tasks[2], alone, tasks[0]]
        with django_assert_num_queries(0):
            assert [task.run for task in found] == [runs[2], None, runs[0]]

    def test_names_those_that_are_not_there(self, make_task):
        there, gone = make_task(), uuid4()

        with pytest.raises(ScheduledTask.DoesNotExist, match=f"There is no task {gone} in the database 'default'"):
            lock_tasks([there.pk, gone], using="default")

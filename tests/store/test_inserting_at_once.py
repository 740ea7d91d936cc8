"""One task and the lock of its entity, in one trip."""

from datetime import timedelta

import pytest
from django.db import connection, transaction
from django.utils import timezone

from tests.testapp.models import Country, Customer, Order, Parcel, Seller
from timeline.models import EntityRef, ScheduledTask, ref_of
from timeline.models.entities import NO_ENTITY
from timeline.operations.schedule import insert_at_once

pytestmark = pytest.mark.django_db


@pytest.fixture
def task_of(now):
    """An unsaved task of an entity, due in an hour."""

    def made(ref, **columns):
        due = now + timedelta(hours=1)
        given = {"task_key": "delivery.call", "max_attempts": 3, "nominal_at": due, "scheduled_at": due, **columns}
        return ScheduledTask(entity_label=ref.label, entity_id=ref.id, **given)

    return made


@pytest.mark.only_postgresql
class TestPlace:
    @pytest.mark.parametrize("model", [Order, Parcel, Country], ids=lambda model: model.__name__)
    def test_writes_the_row_in_one_statement(self, task_of, now, model, django_assert_num_queries):
        entity = Country.objects.create(code='é "d\'x" \\ 1 %') if model is Country else model.objects.create()
        task = task_of(ref_of(entity), occurrence="k", payload={"says": '"50 %"'}, expires_at=now + timedelta(days=2))

        with django_assert_num_queries(1):
            assert insert_at_once(task, now=now, using="default")

        stored = ScheduledTask.objects.get()
        names = [field.attname for field in ScheduledTask._meta.concrete_fields]
        assert {name: getattr(stored, name) for name in names} == {name: getattr(task, name) for name in names}
        assert (stored.state, stored.created_at, stored.entity_ref) == ("scheduled", now, ref_of(entity))
        assert not task._state.adding

    @pytest.mark.parametrize(("early", "state"), [(0, "available"), (1, "scheduled")])
    def test_makes_it_available_when_it_is_due(self, task_of, now, early, state):
        task = task_of(ref_of(Order.objects.create()), scheduled_at=now)

        assert insert_at_once(task, now=now - timedelta(microseconds=early), using="default")

        assert task.state == state
        assert ScheduledTask.objects.get().state == state

    def test_tells_the_time_by_the_database(self, task_of):
        task = task_of(ref_of(Order.objects.create()))

        assert insert_at_once(task, now=None, using="default")

        assert abs(task.created_at - timezone.now()) < timedelta(minutes=1)
        assert ScheduledTask.objects.get().created_at == task.created_at

    def test_locks_the_entity_first(self, task_of, now):
        asked = []

        def look(execute, sql, *rest):
            asked.append(sql)
            return execute(sql, *rest)

        with transaction.atomic(), connection.execute_wrapper(look):
            insert_at_once(task_of(ref_of(Order.objects.create())), now=now, using="default")

        assert asked[-1].index("FOR NO KEY UPDATE") < asked[-1].index("INSERT INTO")

    def test_leaves_alone_a_place_that_is_taken(self, task_of, now):
        ref = ref_of(Order.objects.create())
        assert insert_at_once(task_of(ref, occurrence="k"), now=now, using="default")

        assert not insert_at_once(task_of(ref, occurrence="k"), now=now, using="default")

        assert ScheduledTask.objects.count() == 1


class TestNotPlaced:
    def test_is_what_nobody_is_there_for(self, task_of, now):
        order = Order.objects.create()
        label = ref_of(order).label
        gone = [(label, "4711"), (label, "no key"), (label, f"0{order.pk}"), ("testapp.gone", "1"), NO_ENTITY]

        for ref in gone:
            assert not insert_at_once(task_of(EntityRef(*ref)), now=now, using="default")

        assert not ScheduledTask.objects.exists()

    @pytest.mark.parametrize("model", [Customer, Seller], ids=lambda model: model.__name__)
    def test_is_that_of_an_entity_whose_lock_is_more_than_a_row(self, task_of, now, model):
        assert not insert_at_once(task_of(ref_of(model.objects.create())), now=now, using="default")

        assert not ScheduledTask.objects.exists()

    @pytest.mark.django_db(transaction=True)
    def test_is_what_would_wait_for_a_commit_by_hand(self, task_of, now):
        """Where the host ends its transactions itself, one has to be begun."""
        order = Order.objects.create()
        transaction.set_autocommit(False)
        try:
            assert not insert_at_once(task_of(ref_of(order)), now=now, using="default")
        finally:
            transaction.rollback()
            transaction.set_autocommit(True)

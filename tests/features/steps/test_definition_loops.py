"""What ``self.each`` takes, and what it refuses; and the loop of a unit test."""

import asyncio
import json
from datetime import date, timedelta
from decimal import Decimal
from functools import partial
from types import SimpleNamespace
from uuid import UUID

import pytest
from django.db import models
from django.db.models import F, Window
from django.db.models.functions import RowNumber

from tests.testapp.models import Effect
from timeline import Timeline, step, task
from timeline.exceptions import DefinitionError, InvalidInput
from timeline.features.steps.batches import Batches, add, key_of


class Job(Timeline):
    """Loops where nothing runs."""

    @task(atomic=False)
    def work(self): ...

    @task(atomic=False)
    async def work_side_by_side(self): ...

    @step
    def settle(self, batch):
        return {"rows": len(batch), "batches": 1}

    @step(atomic=False)
    async def asettle(self, batch):
        return {"rows": len(batch)}

    @step(atomic=False, once=True)
    def pay(self, batch): ...


@pytest.fixture
def effects(db):
    return Effect.objects.bulk_create(Effect(name=str(number)) for number in range(5))


class Elsewhere:
    """Has what handlers did in another database."""

    def db_for_write(self, model, **hints):
        return "other" if model is Effect else None


class TestInAUnitTest:
    def test_all_batches_are_taken(self, effects):
        assert Job().each(Job().settle, Effect.objects.all(), size=2) == {"rows": 5, "batches": 3}

    @pytest.mark.django_db(transaction=True)
    def test_those_of_an_async_step_too(self, effects):
        assert asyncio.run(Job().each(Job().asettle, Effect.objects.all(), size=2)) == {"rows": 5}


class TestBatches:
    def test_go_on_behind_a_key(self, effects):
        batches = Batches(Effect.objects.order_by("-name"), 2)

        first = batches.after(None)

        assert first == effects[:2]
        assert batches.after(key_of(first[-1])) == effects[2:4]
        assert batches.count() == 5

    def test_are_given_again_by_their_keys_whatever_the_filters(self, effects):
        batches = Batches(Effect.objects.filter(name__in="012").annotate(twice=F("pk") * 2), 3)
        first, second, third = [effect.pk for effect in effects[:3]]
        Effect.objects.filter(pk=second).update(name="settled")
        effects[2].delete()

        still, again = batches.those([first, second, third])

        assert (still.pk, still.twice, again.pk) == (first, 2 * first, second)
        assert not hasattr(again, "twice")  # Whatever the filters had to do with it.

    def test_of_what_was_joined_are_given_again(self, user):
        """What they were found by is gone, and they are not."""
        user.groups.create(name="a")
        batches = Batches(type(user).objects.filter(groups__name="a"), 2)
        assert batches.count() == 1
        user.groups.clear()

        assert batches.after(None) == []
        assert batches.those([user.pk]) == [user]

    def test_are_counted_once_each(self, user):
        for name in "ab":
            user.groups.create(name=name)

        assert Batches(type(user).objects.filter(groups__isnull=False), 5).count() == 1

    def test_tell_rows_apart_that_say_that_they_are_equal(self, effects, monkeypatch):
        monkeypatch.setattr(Effect, "__eq__", lambda one, other: isinstance(other, Effect))
        monkeypatch.setattr(Effect, "__hash__", lambda one: 1)

        assert [effect.pk for effect in Batches(Effect.objects.all(), 9).after(None)] == [one.pk for one in effects]

    def test_are_read_where_a_router_has_them(self, settings):
        settings.DATABASE_ROUTERS = [Elsewhere()]

        assert Batches(Effect.objects.all(), 2, using="default").using == "other"
        assert Batches(Effect.objects.using("default"), 2, using="default").using == "default"

    @pytest.mark.parametrize(
        "value", [7, -1, 'a"ß', UUID(int=5), Decimal("1.50"), date(2026, 3, 1), timedelta(days=1, microseconds=3)]
    )
    def test_know_a_key_again(self, value):
        kinds = {int: models.BigIntegerField, str: models.CharField, UUID: models.UUIDField, date: models.DateField}
        kinds |= {
            Decimal: partial(models.DecimalField, max_digits=9, decimal_places=2),
            timedelta: models.DurationField,
        }
        key = kinds[type(value)](primary_key=True)
        row = SimpleNamespace(pk=value, _meta=SimpleNamespace(pk=key))
        key.attname = "pk"

        assert key.to_python(json.loads(json.dumps(key_of(row)))) == value

    def test_have_each_row_once(self, user):
        """A join gives a row as often as it finds others to it."""
        for name in "ab":
            user.groups.create(name=name)
        joined = type(user).objects.filter(groups__isnull=False)
        assert joined.count() > 1

        assert Batches(joined, 5).after(None) == [user]

    def test_are_of_the_database_that_is_named(self):
        assert Batches(Effect.objects.using("other"), 2, using="default")._rows.db == "other"
        assert Batches(Effect.objects.all(), 2, using="default")._rows._db == "default"


class TestAdd:
    def test_sums_by_name(self):
        assert add({"a": 1}, {"a": 2, "b": 0.5}, step="s") == {"a": 3, "b": 0.5}
        assert add({"a": 1}, None, step="s") == {"a": 1}

    def test_refuses_what_is_too_much_for_a_float(self):
        with pytest.raises(InvalidInput, match="sums to more than a float holds"):
            add({"a": 10**400}, {"a": 0.5}, step="s")

    @pytest.mark.parametrize("value", ["two", 2, [1], {"a": True}, {"a": Decimal(1)}, {1: 1}, {"a": None}])
    def test_refuses_what_is_no_number(self, value):
        with pytest.raises(InvalidInput, match="result of step s: is "):
            add({}, value, step="s")


class TestRefused:
    @pytest.mark.parametrize(
        ("rows", "said"),
        [
            (lambda: list(Effect.objects.none()), "rows: is a list. Give a queryset."),
            (lambda: Effect.objects.values("name"), "rows: gives no model instances."),
            (lambda: Effect.objects.all()[:3], "rows: is sliced, combined, or distinct by fields."),
            (lambda: Effect.objects.union(Effect.objects.all()), "rows: is sliced, combined"),
            (lambda: Effect.objects.distinct("name"), "rows: is sliced, combined"),
            (lambda: Effect.objects.select_for_update(skip_locked=True), "rows: skips what somebody has locked"),
            (lambda: Effect.objects.annotate(number=Window(RowNumber())), "rows: has a window"),
            (lambda: Effect.objects.annotate(number=Window(RowNumber())).filter(number=1), "rows: has a window"),
        ],
    )
    def test_are_rows_that_have_no_place(self, db, rows, said):
        with pytest.raises(InvalidInput) as refused:
            Job().each(Job().settle, rows())

        assert str(refused.value).startswith(said)

    @pytest.mark.parametrize("size", [0, -1, 10_001, True, 1.5, "2"])
    def test_is_a_size_that_is_none(self, size):
        with pytest.raises(InvalidInput, match="Give a whole number from 1 to 10000"):
            Job().each(Job().settle, Effect.objects.all(), size=size)

    def test_is_a_step_that_is_called_once(self):
        with pytest.raises(InvalidInput, match="pay is declared with once=True"):
            Job().each(Job().pay, Effect.objects.all())

    def test_is_what_is_no_step(self):
        with pytest.raises(InvalidInput, match="is no step"):
            Job().each(len, Effect.objects.all())

    def test_is_a_step_of_another_timeline(self):
        class Other(Job):
            pass

        with pytest.raises(InvalidInput, match="is no step of this timeline"):
            Job().each(Other().settle, Effect.objects.all())

    @pytest.mark.parametrize("name", ["each", "progress", "aprogress"])
    def test_is_a_task_of_that_name(self, name):
        with pytest.raises(DefinitionError, match="is the name of what a handler calls on self"):
            type("Own", (Timeline,), {name: task()(lambda self: None)})

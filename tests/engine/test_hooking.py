"""Hooks: what a handler registers with ``transaction.on_commit``, and what becomes of it that one raises."""

import logging

import pytest
from django.db import transaction

from tests.testapp.models import Effect

pytestmark = pytest.mark.django_db(transaction=True)


def of_one(job, order):
    """Register three hooks, of which the one between raises; in a savepoint, as a function of the host's has it."""
    transaction.on_commit(lambda: Effect.objects.create(name="before"))
    with transaction.atomic():
        transaction.on_commit(breaking)
    transaction.on_commit(lambda: Effect.objects.create(name="after"))


def of_many(job, orders):
    for order in orders:
        of_one(job, order)


def breaking():
    raise ValueError("the hook breaks")


@pytest.mark.parametrize(
    ("handler", "options"),
    [(of_one, {}), (of_one, {"atomic": "own"}), (of_one, {"atomic": "shared"}), (of_many, {"bulk": 10})],
    ids=["together", "alone", "shared", "bulk"],
)
class TestAHookThatRaises:
    def test_costs_neither_its_task_nor_others_their_hooks(self, crowd, run_all, patient, handler, options):
        rows = crowd(3, handler, **options)

        done = run_all(rows)

        assert [(row.state, row.attempt, row.failures) for row in done] == [("completed", 1, 0)] * 3
        assert sorted(Effect.objects.values_list("name", flat=True)) == ["after"] * 3 + ["before"] * 3

    def test_is_told_in_the_log_with_its_error_and_task(self, crowd, run_all, patient, caplog, handler, options):
        rows = crowd(2, handler, **options)

        run_all(rows)

        told = [record for record in caplog.records if record.levelno == logging.ERROR]
        assert [str(record.exc_info[1]) for record in told] == ["the hook breaks"] * 2
        named = {key for record in told for key in getattr(record, "task_ids", [record.task_id])}
        assert named == {str(row.pk) for row in rows}
        assert "not ours" not in caplog.text


class TestHooksOfASavepointThatWasUndone:
    def test_are_not_called(self, crowd, run_all):
        def handler(job, order):
            transaction.on_commit(lambda: Effect.objects.create(name="kept"))
            try:
                with transaction.atomic():
                    transaction.on_commit(lambda: Effect.objects.create(name="undone"))
                    raise ValueError
            except ValueError:
                pass

        run_all(crowd(1, handler))

        assert [effect.name for effect in Effect.objects.all()] == ["kept"]

"""A question is taken apart by what its conditions say, and has the same rows in parts as in one."""

from __future__ import annotations

import pytest
from django.db.models import Q

from timeline.models import EntityRef, ScheduledTask
from timeline.store.index_selection import MOST_NAMED, asks_for, may_be_of, parts_of, values_named

ORDER = Q(entity_label="testapp.order", entity_id="1")
TRIAL = Q(task_key__startswith="trial.")
KEYS = ("trial.remind", "trial.expire", "other.task")

CHOICES = {
    "an entity or a timeline": ORDER | TRIAL,
    "entities or kinds": Q(entity_label="testapp.order", entity_id__in=["1", "2"]) | Q(task_key__in=["other.task"]),
    "with another condition": (ORDER | TRIAL) & ~Q(state="completed"),
    "nothing, an entity or a timeline": Q(pk__in=[]) | ORDER | TRIAL,
}


@pytest.fixture
def rows(make_task):
    """Of three kinds and four entities."""
    return [
        make_task(task_key=KEYS[number % 3], entity_label="testapp.order", entity_id=str(number % 4))
        for number in range(12)
    ]


@pytest.mark.django_db
class TestPartsOf:
    @pytest.mark.usefixtures("rows")
    @pytest.mark.parametrize("choice", CHOICES)
    def test_has_each_row_in_one_part(self, choice):
        tasks = ScheduledTask.objects.filter(CHOICES[choice])

        few, many = parts_of(tasks)

        assert few.names is not None
        assert many.names is None
        found = [task.pk for part in (few, many) for task in part.tasks]
        assert sorted(found) == sorted(tasks.values_list("pk", flat=True))
        assert few.tasks.exists()
        assert many.tasks.exists()
        assert {task.entity_ref for task in few.tasks} <= few.names

    def test_is_one_of_entities_where_all_are_named(self):
        [part] = parts_of(ScheduledTask.objects.filter(ORDER, TRIAL))

        assert part.names == {EntityRef("testapp.order", "1")}

    @pytest.mark.parametrize(
        "condition",
        [
            TRIAL,
            ~ORDER,
            ORDER | ~ORDER,
            Q(entity_label="testapp.order"),
            Q(entity_label="testapp.order", entity_id__in=[str(number) for number in range(MOST_NAMED + 1)]),
            Q(entity_label="testapp.order", entity_id__in=ScheduledTask.objects.values("entity_id")),
        ],
    )
    def test_is_one_of_any_where_too_many_or_none_are_named(self, condition):
        tasks = ScheduledTask.objects.filter(condition)

        [*_few, last] = parts_of(tasks)

        assert last.names is None

    def test_does_not_deny_what_may_be_neither_true_nor_false(self):
        """``NOT (cause = x)`` is neither where there is no cause: such rows would be in no part."""
        [part] = parts_of(ScheduledTask.objects.filter(ORDER & Q(worker="w", lease_expires_at=None) | TRIAL))

        assert part.names is None


class TestMayBeOf:
    @pytest.mark.parametrize(
        ("condition", "kinds"),
        [
            (Q(), KEYS),
            (TRIAL, KEYS[:2]),
            (~TRIAL, KEYS[2:]),
            (ORDER, KEYS),
            (TRIAL & ~Q(task_key="trial.expire"), KEYS[:1]),
            (TRIAL & ORDER, KEYS[:2]),
            (~(TRIAL & ORDER), KEYS),
            (~(TRIAL | ORDER), KEYS[2:]),
            (TRIAL | Q(pk__in=[]), KEYS[:2]),
            (Q(task_key__in=["other.task", "trial.expire"]) & ~~TRIAL, KEYS[1:2]),
            (Q(task_key__gt="p"), KEYS),
        ],
    )
    def test_leaves_out_only_kinds_that_cannot_be(self, condition, kinds):
        tasks = ScheduledTask.objects.filter(condition)

        assert [key for key in KEYS if may_be_of(tasks, key)] == list(kinds)


class TestWhatIsAskedFor:
    def test_is_read_from_the_conditions(self):
        tasks = ScheduledTask.objects.filter(task_key__in=["a.b", "c.d"], finished_at__gt="2026-01-01T00:00Z")

        assert values_named(tasks, "task_key") == {"a.b", "c.d"}
        assert values_named(tasks.filter(task_key="c.d"), "task_key") == {"c.d"}
        assert values_named(tasks.exclude(reason_code="x"), "reason_code") is None
        assert asks_for(tasks, "finished_at")
        assert not asks_for(tasks, "reason_code")

"""Which functions are known, what their keys are, and what becomes of rows whose function is not known."""

from __future__ import annotations

import sys
from importlib import reload

import pytest
from django.core.checks import run_checks
from django.utils import timezone

from tests.django_tasks.framework import task, task_backends
from tests.django_tasks.shop import coroutines, tasks
from tests.testapp.models import Effect
from timeline.definition.names import MAX_NAME, is_name
from timeline.django_tasks.functions import function_of, kinds_of, name_of
from timeline.models import ScheduledTask
from timeline.reading.diagnosis import told_undefined
from timeline.registry import registry
from timeline.shortcuts import explain

KEY = "django_tasks.tests__django_tasks__shop__tasks__"


@task
def found_by_importing():
    """A function in a module that nothing names."""


class TestNameOf:
    @pytest.mark.parametrize(
        ("path", "queue", "name"),
        [
            ("shop.tasks.send_mail", "", "shop__tasks__send_mail"),
            ("shop.tasks.send_mail", "mail", "shop__tasks__send_mail___mail"),
            ("a_b.tasks.c", "", "a_b__tasks__c"),
            ("a.b.tasks.c", "", "a__b__tasks__c"),
        ],
    )
    def test_is_read_easily(self, path, queue, name):
        assert name_of(path, queue) == name

    @pytest.mark.parametrize(
        "path",
        ["a." * 40 + "work", "a.B", "a.b__c", "a._b", "a.b_", "ä.b", "a.__", "a.b2._", "a.Work"],
    )
    @pytest.mark.parametrize("queue", ["", "mail", "Much Mail"])
    def test_is_a_name_of_a_task_in_any_case(self, path, queue):
        """And no two have the same."""
        name = name_of(path, queue)

        assert is_name(name)
        assert len(name) <= MAX_NAME
        others = {"a.b", "a.b.c", "a.b_c", "a.work", path.lower(), f"{path}_"} - {path}
        assert name not in {name_of(other, queue) for other in others}


class TestKnown:
    def test_is_what_modules_of_installed_apps_have(self):
        """With the function's docstring and path, for people."""
        kinds_of(task_backends["default"])

        _definition, declared = registry.task(f"{KEY}add")
        assert (declared.title, declared.doc) == ("tests.django_tasks.shop.tasks.add", "Add two numbers.")
        assert (declared.options.atomic, declared.options.retry.max_attempts) == (False, 1)

    def test_is_each_queue_of_the_backend(self):
        kinds_of(task_backends["default"])

        assert set(registry.task_keys("mail")) >= {f"{KEY}send", f"{KEY}add___mail"}
        assert set(registry.task_keys("default")) >= {f"{KEY}send___default", f"{KEY}add"}

    def test_is_what_is_imported_later(self):
        """Workers know it from then on."""
        kinds_of(task_backends["default"])

        assert function_of("django_tasks.tests__django_tasks__test_functions__found_by_importing") is None
        key = kinds_of(task_backends["default"]).keys[found_by_importing.module_path, "default"]
        assert registry.task(key)[1].made is found_by_importing
        assert function_of(key) == ("default", found_by_importing)

    def test_is_the_last_one_after_a_reload(self):
        before = tasks.add.func

        reload(tasks)

        made = function_of(f"{KEY}add")[1]
        assert made.func is tasks.add.func is not before

    def test_is_atomic_where_the_backend_says_so_but_for_coroutines(self):
        kinds_of(task_backends["elsewhere"])

        key = KEY.replace("tasks.", "tasks_elsewhere.", 1)
        assert registry.task(f"{key}add")[1].options.atomic is True
        waiting = kinds_of(task_backends["elsewhere"]).keys[coroutines.wait.module_path, "default"]
        assert registry.task(waiting)[1].options.atomic is False


@pytest.mark.django_db(transaction=True)
class TestSharedTransactions:
    def test_are_told_by_the_backend_and_keep_what_succeeds_apart_from_what_fails(self, clock, settings):
        backend = {"BACKEND": "timeline.django_tasks.TimelineBackend", "OPTIONS": {"atomic": "shared"}}
        settings.TASKS = {**settings.TASKS, "default": {**settings.TASKS["default"], **backend}}
        results = [tasks.note.enqueue(name) for name in ("ada", "nobody", "bob")]

        clock.advance(seconds=1)

        assert registry.task(f"{KEY}note")[1].options.atomic == "shared"
        for result in results:
            result.refresh()
        assert [result.status for result in results] == ["SUCCESSFUL", "FAILED", "SUCCESSFUL"]
        assert sorted(Effect.objects.values_list("name", flat=True)) == ["ada", "bob"]


@pytest.mark.django_db(transaction=True)
class TestUnknown:
    """Nothing is imported because a row names it."""

    @pytest.fixture
    def row(self, clock):
        assert "antigravity" not in sys.modules
        tasks.add.enqueue(1)
        at = timezone.now()
        columns = {"nominal_at": at, "scheduled_at": at, "created_at": at, "max_attempts": 1, "state": "available"}
        key = f"django_tasks.{name_of('antigravity.fly')}"
        return ScheduledTask.objects.create(task_key=key, occurrence="x", payload={"args": [1]}, **columns)

    def test_rests(self, row, clock):
        clock.advance(hours=1)

        row.refresh_from_db()
        assert (row.state, row.attempt) == ("available", 0)
        assert "antigravity" not in sys.modules

    def test_says_so_with_the_remedy(self, row):
        remedy = "Let this process import the function: from a module tasks of an installed app"

        assert f"no handler of this key is known any more. {remedy}" in explain(row)
        assert remedy in told_undefined([{"task_key": row.task_key, "count": 1}])
        [found] = [each for each in run_checks(databases=["default"]) if each.id == "timeline.W005"]
        assert found.hint.startswith(remedy)

    def test_has_no_result(self, row):
        with pytest.raises(Exception, match=str(row.pk)) as raised:
            tasks.add.get_result(str(row.pk))
        assert type(raised.value).__name__ == "TaskResultDoesNotExist"

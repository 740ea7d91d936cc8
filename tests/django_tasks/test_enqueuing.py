"""What ``enqueue`` writes, and what it refuses."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from uuid import UUID

import pytest
from asgiref.sync import async_to_sync
from django.db import connection, transaction
from django.test.utils import CaptureQueriesContext

from tests.django_tasks.framework import InvalidTask, TaskResultDoesNotExist, TaskResultMismatch, default_task_backend
from tests.django_tasks.shop import tasks
from timeline.models import ScheduledTask

KEY = "django_tasks.tests__django_tasks__shop__tasks__"


@pytest.mark.django_db
class TestEnqueue:
    def test_writes_one_row_without_an_entity_due_at_once(self, clock):
        result = tasks.add.enqueue(1, two=[2, None])

        row = ScheduledTask.objects.get()
        assert (result.id, result.status, result.backend) == (str(row.pk), "READY", "default")
        assert (result.args, result.kwargs, result.enqueued_at) == ([1], {"two": [2, None]}, row.created_at)
        assert (row.task_key, row.entity_label, row.run_id, row.state) == (f"{KEY}add", "", None, "available")
        assert (row.payload, row.queue, row.priority) == ({"args": [1], "kwargs": {"two": [2, None]}}, "default", 0)
        assert row.max_attempts == 1
        assert default_task_backend.get_result(result.id) == result

    def test_takes_what_using_names(self, clock):
        """The more urgent tasks of Django have higher numbers, those of a timeline lower ones."""
        later = clock.now + timedelta(hours=2)

        result = tasks.add.using(priority=50, queue_name="mail", run_after=later).enqueue(1)

        row = ScheduledTask.objects.get()
        assert (row.task_key, row.queue, row.priority) == (f"{KEY}add___mail", "mail", -50)
        assert (row.state, row.scheduled_at, row.nominal_at) == ("scheduled", later, later)
        assert default_task_backend.get_result(result.id).task == result.task

    def test_has_the_priority_and_queue_of_the_decorator(self, clock):
        tasks.send.enqueue("ada@example.com")

        row = ScheduledTask.objects.get()
        assert (row.task_key, row.queue, row.priority) == (f"{KEY}send", "mail", -7)

    def test_has_a_time_that_has_passed_already_due_at_once(self, clock):
        before = clock.now - timedelta(days=1)

        result = tasks.add.using(run_after=before).enqueue(1)

        assert ScheduledTask.objects.get().state == "available"
        assert default_task_backend.get_result(result.id).task.run_after == before

    def test_is_one_statement(self):
        """Always, so that tests of hosts can count."""
        with CaptureQueriesContext(connection) as queries:
            tasks.add.enqueue(1)

        assert [query["sql"].split()[0] for query in queries] == ["INSERT"]


@pytest.mark.django_db(databases=["default", "other"])
class TestDatabase:
    def test_is_that_of_the_backend(self, clock):
        """And so is its timeline, as its options may be others."""
        result = tasks.add.using(backend="elsewhere").enqueue(1)

        row = ScheduledTask.objects.using("other").get()
        assert (str(row.pk), row.task_key) == (result.id, KEY.replace("tasks.", "tasks_elsewhere.", 1) + "add")
        assert not ScheduledTask.objects.using("default").exists()
        assert tasks.add.using(backend="elsewhere").get_result(result.id) == result
        with pytest.raises(TaskResultDoesNotExist):
            tasks.add.get_result(result.id)


@pytest.mark.django_db(transaction=True)
class TestTransaction:
    def test_that_is_rolled_back_leaves_nothing(self, clock):
        """And the function is never entered."""
        with transaction.atomic():
            result = tasks.tell.enqueue("x")
            transaction.set_rollback(True)

        clock.advance(seconds=5)
        assert not ScheduledTask.objects.exists()
        assert not tasks.seen
        with pytest.raises(TaskResultDoesNotExist):
            default_task_backend.get_result(result.id)


@pytest.mark.django_db(transaction=True)
class TestAEnqueue:
    async def _enqueue(self):
        result = await tasks.add.aenqueue(20, two=22)
        return result, await tasks.add.aget_result(result.id)

    def test_does_the_same(self, clock):
        result, again = async_to_sync(self._enqueue)()

        assert result == again
        clock.advance(seconds=1)
        async_to_sync(result.arefresh)()
        assert result.return_value == 42


@pytest.mark.django_db
class TestWhatIsRefused:
    """In the framework's words, and nothing is written."""

    @pytest.fixture(autouse=True)
    def _nothing(self, clock):
        yield
        assert not ScheduledTask.objects.exists()

    def test_arguments_that_are_no_json(self):
        with pytest.raises(TypeError, match="Unsupported type"):
            tasks.add.enqueue({1, 2})

    @pytest.mark.parametrize("argument", [float("nan"), {1: 2}, "\x00", "x" * 70_000])
    def test_arguments_that_no_row_holds(self, argument):
        with pytest.raises(InvalidTask, match="payload"):
            tasks.add.enqueue(argument)

    def test_names_of_secrets(self):
        """A row is shown to people, and kept."""
        with pytest.raises(InvalidTask, match="'token', which looks like that of a secret"):
            tasks.add.enqueue(token="x")  # noqa: S106

    def test_an_unknown_queue(self):
        with pytest.raises(InvalidTask, match="Queue 'express' is not valid"):
            tasks.add.using(queue_name="express").enqueue(1)

    def test_a_queue_that_workers_do_not_know(self, settings):
        """Without QUEUES the framework takes any; only that of the decorator is known to workers."""
        settings.TASKS = {"default": {"BACKEND": "timeline.django_tasks.TimelineBackend", "QUEUES": []}}

        with pytest.raises(InvalidTask, match="name it in QUEUES"):
            tasks.add.using(queue_name="express").enqueue(1)

    @pytest.mark.parametrize("changes", [{"priority": 101}, {"priority": 1.5}, {"run_after": datetime(2026, 1, 1)}])  # noqa: DTZ001
    def test_what_the_framework_refuses(self, changes):
        with pytest.raises(InvalidTask):
            tasks.add.using(**changes)

    def test_a_time_that_is_out_of_range(self):
        with pytest.raises(InvalidTask, match="run_after"):
            tasks.add.using(run_after=datetime(9500, 1, 1, tzinfo=UTC)).enqueue(1)

    @pytest.mark.parametrize("unknown", ["nothing", "", str(UUID(int=0))])
    def test_an_unknown_result(self, unknown):
        with pytest.raises(TaskResultDoesNotExist):
            tasks.add.get_result(unknown)


@pytest.mark.django_db
class TestGetResult:
    def test_of_another_function_is_a_mismatch(self, clock):
        result = tasks.add.enqueue(1)

        with pytest.raises(TaskResultMismatch):
            tasks.fail.get_result(result.id)

    def test_of_another_kind_of_task_does_not_exist(self, clock, make_task):
        row = make_task()

        with pytest.raises(TaskResultDoesNotExist):
            default_task_backend.get_result(str(row.pk))

    def test_is_one_statement_while_there_is_nothing_to_tell_of_attempts(self, clock, django_assert_num_queries):
        result = tasks.add.enqueue(1)

        with django_assert_num_queries(1):
            default_task_backend.get_result(result.id)

"""How functions are run, and what results, signals and people are told."""

from __future__ import annotations

import sys
from datetime import timedelta

import pytest
from django.urls import reverse

from project.accounts.models import User
from tests.django_tasks.framework import TaskResultDoesNotExist, task_finished
from tests.django_tasks.shop import coroutines, tasks
from timeline.features.maintenance.prune import prune
from timeline.models import LogEntry, ScheduledTask
from timeline.reading.dead_letters import dead_letters
from timeline.shortcuts import cancel, explain, hold, redrive, release

pytestmark = pytest.mark.django_db(transaction=True)
KEY = "django_tasks.tests__django_tasks__shop__tasks__"


def ended(result, clock, **time):
    """Let time pass, and ask how it stands."""
    clock.advance(**(time or {"seconds": 1}))
    result.refresh()
    return result


class TestSuccess:
    def test_has_what_was_returned(self, clock):
        result = ended(tasks.add.enqueue(1, two=41), clock)

        assert (result.status, result.return_value, result.errors) == ("SUCCESSFUL", 42, [])
        assert result.enqueued_at <= result.started_at == result.last_attempted_at <= result.finished_at
        assert (result.worker_ids, result.attempts) == (["story clock"], 1)

    def test_of_nothing_is_nothing(self, clock):
        assert ended(tasks.add.enqueue(0, two=0), clock).return_value == 0

    def test_of_a_coroutine(self, clock):
        assert ended(coroutines.wait.enqueue(4), clock).return_value == [4, 0]

    def test_is_in_no_transaction(self, clock):
        """As functions of the framework expect it: they call services, and begin transactions of their own."""
        result = ended(tasks.send.enqueue("ada@example.com"), clock)

        assert result.return_value == {"to": "ada@example.com", "in_transaction": False}

    def test_tells_the_function_of_itself_if_it_asks(self, clock):
        result = ended(tasks.tell.enqueue("x"), clock)

        assert result.return_value == ["x", 1, result.id]
        assert tasks.seen == [(1, "RUNNING", ["story clock"])]


class TestRunAfter:
    def test_is_waited_for(self, clock):
        result = tasks.add.using(run_after=clock.now + timedelta(hours=1)).enqueue(1)

        assert ended(result, clock, minutes=59).status == "READY"
        assert ended(result, clock, minutes=1).status == "SUCCESSFUL"


class TestPriority:
    def test_of_a_higher_number_comes_first(self, clock):
        for priority in (-5, 0, 5):
            tasks.tell.using(priority=priority).enqueue(str(priority))

        clock.advance(seconds=1)

        ran = LogEntry.objects.filter(to_state="active").order_by("pk").values_list("task__priority", flat=True)
        assert list(ran) == [-5, 0, 5]


class TestFailure:
    def test_is_final_without_retry(self, clock):
        """As in the framework: a function is tried once, unless ``OPTIONS`` says more."""
        result = ended(tasks.fail.enqueue(), clock)

        assert (result.status, result.is_finished, result.attempts) == ("FAILED", True, 1)
        [error] = result.errors
        assert (error.exception_class_path, error.exception_class) == ("builtins.ValueError", ValueError)
        assert error.traceback.startswith("Traceback")
        assert error.traceback.endswith("ValueError: never\n")
        with pytest.raises(ValueError, match="Task failed"):
            result.return_value  # noqa: B018

    def test_is_a_dead_letter(self, clock):
        ended(tasks.fail.enqueue(), clock)

        [letter] = dead_letters(ScheduledTask.objects.all())
        assert (letter.task_key, letter.count) == (f"{KEY}fail", 1)

    def test_is_what_no_json_holds(self, clock):
        result = ended(tasks.unwritable.enqueue(), clock)

        assert result.status == "FAILED"
        assert result.errors[0].exception_class is TypeError

    def test_of_a_class_that_is_not_imported_here_imports_nothing(self, clock):
        """What a row says is no reason to import it."""
        result = ended(tasks.fail.enqueue(), clock)
        error = result.errors[0]
        object.__setattr__(error, "exception_class_path", "antigravity.Error")

        with pytest.raises(ImportError, match="This process has not imported"):
            error.exception_class  # noqa: B018


class TestRetry:
    def test_comes_with_the_options_of_the_backend(self, clock):
        """Each attempt and each error is told, also after the one that succeeded."""
        result = ended(tasks.stumble.enqueue(2), clock)
        assert (result.status, result.attempts, result.finished_at) == ("READY", 1, None)

        result = ended(result, clock, minutes=10)

        assert (result.status, result.return_value, result.attempts) == ("SUCCESSFUL", "at last", 3)
        assert [error.traceback.splitlines()[-1][-1] for error in result.errors] == ["1", "2"]
        assert result.worker_ids == ["story clock"] * 3
        assert result.last_attempted_at - result.started_at == timedelta(minutes=3)  # 1 minute, then 2.

    def test_ends_when_its_budget_is_used_up(self, clock):
        result = ended(tasks.stumble.enqueue(10), clock, hours=1)

        assert (result.status, result.attempts, len(result.errors)) == ("FAILED", 3, 3)
        assert ScheduledTask.objects.get().state == "discarded"


class TestCancelled:
    def test_is_failed_and_says_why(self, clock):
        result = tasks.add.enqueue(1)

        cancel(ScheduledTask.objects.all(), reason="not wanted")

        result.refresh()
        assert (result.status, result.attempts, result.errors[0].traceback) == ("FAILED", 0, "not wanted")


class TestRedriven:
    def test_is_found_by_the_first_id(self, clock):
        """With all that was before."""
        result = ended(tasks.stumble.enqueue(4), clock, hours=1)
        assert result.status == "FAILED"

        [again] = redrive(ScheduledTask.objects.all(), reason="mended")

        result.refresh()
        assert result.status == "READY"
        assert ended(result, clock, hours=1).return_value == "at last"
        assert (result.attempts, len(result.errors)) == (5, 4)
        assert tasks.stumble.get_result(str(again.pk)).id == result.id


class TestHold:
    def test_of_a_function_lets_others_run(self, clock):
        held = hold(task=f"{KEY}tell", reason="the printer is out of paper")
        one, other = tasks.tell.enqueue("x"), tasks.add.enqueue(1)

        assert (ended(one, clock).status, ended(other, clock).status) == ("READY", "SUCCESSFUL")

        release(held, reason="paper")
        assert ended(one, clock).status == "SUCCESSFUL"


class TestSignals:
    def test_come_in_the_order_of_things(self, clock, told):
        tasks.add.enqueue(1)
        clock.advance(seconds=1)
        tasks.fail.enqueue()
        clock.advance(seconds=1)

        sender = "TimelineBackend"
        assert told == [
            ("enqueued", sender, "READY", 0),
            ("started", sender, "RUNNING", 1),
            ("finished", sender, "SUCCESSFUL", 1),
            ("enqueued", sender, "READY", 0),
            ("started", sender, "RUNNING", 1),
            ("finished", sender, "FAILED", 1),
        ]

    def test_of_several_attempts_end_once(self, clock, told):
        tasks.stumble.enqueue(1)
        clock.advance(hours=1)

        assert [(name, attempts) for name, _sender, _status, attempts in told] == [
            ("enqueued", 0),
            ("started", 1),
            ("started", 2),
            ("finished", 2),
        ]

    def test_that_a_task_was_called_off_is_told(self, clock, told):
        tasks.add.enqueue(1)

        cancel(ScheduledTask.objects.all(), reason="no")

        assert told[-1][::2] == ("finished", "FAILED")

    def test_are_sent_within_the_error(self, clock):
        """As the framework does, so that tools that report errors see it."""
        found = []

        def hear(sender, task_result, **extra):
            found.append(repr(sys.exc_info()[1]))

        task_finished.connect(hear)
        tasks.fail.enqueue()
        clock.advance(seconds=1)
        task_finished.disconnect(hear)

        assert found == ["ValueError('never')"]

    def test_whose_receivers_raise_do_not_matter(self, clock):
        def hear(sender, task_result, **extra):
            raise RuntimeError

        task_finished.connect(hear)
        result = ended(tasks.add.enqueue(1), clock)
        task_finished.disconnect(hear)

        assert result.status == "SUCCESSFUL"


class TestExplain:
    def test_tells_the_story(self, clock):
        result = ended(tasks.fail.enqueue(), clock)

        story = explain(ScheduledTask.objects.get(pk=result.id))

        assert "tests.django_tasks.shop.tasks.fail" in story
        assert "never" in story


class TestPruned:
    def test_is_gone_with_its_row(self, clock):
        result = ended(tasks.add.enqueue(1), clock)

        clock.advance(days=31)
        prune(ended_before=clock.now - timedelta(days=30), using="default")

        with pytest.raises(TaskResultDoesNotExist):
            result.refresh()


class TestInTheAdmin:
    def test_is_a_task_like_any_other(self, clock, client):
        """Lists, its own page and the page of all timelines call it by its path."""
        result = ended(tasks.fail.enqueue(), clock)
        at = clock.now
        is_all = {"is_staff": True, "is_superuser": True, "signed_up_at": at, "trial_ends_at": at}
        client.force_login(User.objects.create(email="root@example.com", **is_all))

        for name, *args in (("changelist",), ("change", result.id), ("timeline", "django_tasks"), ("dead",)):
            answer = client.get(reverse(f"admin:timeline_scheduledtask_{name}", args=args))
            assert (name, answer.status_code) == (name, 200)
            assert "tests.django_tasks.shop.tasks.fail" in answer.content.decode(), name

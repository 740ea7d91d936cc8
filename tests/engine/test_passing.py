"""Pass the last look: who may go on, and what becomes of those that must not run."""

from contextlib import contextmanager
from time import monotonic

import pytest

from tests.testapp.models import Order
from timeline.engine.attempts import begin_attempts
from timeline.engine.callbacks import Watch
from timeline.engine.execute import Runtime
from timeline.engine.precheck import look_again, pass_fresh_look, pass_look
from timeline.lifecycle import Reason, ReasonCode, Trigger
from timeline.models import ScheduledTask
from timeline.operations.cancel import cancel

OPERATOR = Reason.operator("asked for", "ada")


class Noting(Watch):
    """Notes whether a look is under way."""

    def __init__(self):
        self.looks = 0

    @contextmanager
    def looking(self):
        self.looks += 1
        yield


@pytest.fixture
def begun(crowd, later):
    """Begin so many attempts: ``begun(3, …)``."""

    def begin(count, **options):
        ids = [row.pk for row in crowd(count, **options)]
        return begin_attempts(ids, token=None, worker="", now=later, using="default")

    return begin


@pytest.fixture
def runtime(later):
    return Runtime(lambda: later, "default", Noting())


@pytest.fixture
def call_off(later):
    return lambda attempt: cancel(task_ids=[attempt.task.pk], reason=OPERATOR, now=later, using="default")


def lose_entity(attempt):
    """No signal says so."""
    Order.objects.filter(pk=attempt.task.entity_id)._raw_delete("default")


def stored(attempt):
    return ScheduledTask.objects.values_list("state", "reason_code").get(pk=attempt.task.pk)


class TestPassLook:
    def test_ends_at_once_what_must_not_run_and_gives_the_others_their_entities(self, begun, runtime):
        first, second, third = begun(3)
        lose_entity(second)

        passed, ended = pass_look([first, second, third], runtime)

        assert passed == [first, third]
        assert [str(attempt.entity.pk) for attempt in passed] == [first.task.entity_id, third.task.entity_id]
        assert ended == [second.task]
        assert [stored(attempt) for attempt in (first, second)] == [("active", ""), ("cancelled", "entity_gone")]

    def test_tells_who_watches_that_it_looks(self, begun, runtime):
        pass_look(begun(1), runtime)

        assert runtime.watch.looks == 1


class TestLookAgain:
    def test_records_nothing_of_what_must_not_run(self, begun, runtime):
        first, second = begun(2)
        lose_entity(second)

        passed, [(attempt, write)] = look_again([first, second], runtime)

        assert (passed, attempt) == ([first], second)
        assert (write.task, write.triggers, write.reason.code) == (
            second.task,
            (Trigger.CANCEL,),
            ReasonCode.ENTITY_GONE,
        )
        assert stored(second) == ("active", "")

    def test_passes_over_what_somebody_else_has_ended(self, begun, runtime, call_off):
        first, second = begun(2, ad_hoc=True)
        call_off(second)

        assert look_again([first, second], runtime) == ([first], [])

    def test_asks_once_where_none_is_left(self, begun, runtime, call_off, django_assert_num_queries):
        [only] = begun(1)
        call_off(only)

        with django_assert_num_queries(1):
            assert look_again([only], runtime) == ([], [])


class TestPassFreshLook:
    def test_lets_their_time_begin_when_all_were_looked_at(self, begun, runtime):
        attempts = begun(3)
        for attempt in attempts:
            attempt.seen_at = 0.0
        before = monotonic()

        passed, _ended = pass_fresh_look(attempts, runtime, late=False)

        assert len({attempt.seen_at for attempt in passed}) == 1
        assert before <= passed[0].seen_at <= monotonic()

    @pytest.mark.parametrize("late", [True, False])
    def test_leaves_out_what_was_called_off_meanwhile_if_they_have_waited(self, begun, runtime, call_off, late):
        first, second = begun(2, ad_hoc=True)
        call_off(second)

        passed, ended = pass_fresh_look([first, second], runtime, late=late)

        assert passed == ([first] if late else [first, second])
        assert ended == []

    def test_is_none_where_all_were_called_off(self, begun, runtime, call_off):
        [only] = begun(1, ad_hoc=True)
        call_off(only)

        assert pass_fresh_look([only], runtime, late=True) == ([], [])

"""The life of a run: open, ended in one of four ways, and opened again where it had finished."""

from __future__ import annotations

from datetime import timedelta

import pytest

from timeline.lifecycle import ReasonCode, RunEnd
from timeline.models import TimelineRun
from timeline.reading.reason_texts import retold_end
from timeline.runs import MAX_TEXT, end, end_open, reopen


@pytest.fixture
def make(order, now):
    """Make an open run of an order."""
    about = {"entity_label": "testapp.order", "entity_id": str(order.pk), "timeline": "delivery", "started_at": now}
    return lambda **columns: TimelineRun.objects.create(**about, **columns)


@pytest.fixture
def run(make):
    return make()


def stored(run):
    """What the database has of its end."""
    return TimelineRun.objects.values_list("ended_at", "end_code", "end_reason").get(pk=run.pk)


class TestEnd:
    @pytest.mark.parametrize("how", RunEnd, ids=str)
    def test_writes_when_how_and_why(self, run, now, how):
        end([run], how, "paid", now=now, using="default")

        assert stored(run) == (run.ended_at, run.end_code, run.end_reason) == (now, how, "paid")
        assert (run.is_open, run.end) == (False, how)

    @pytest.mark.parametrize("how", RunEnd, ids=str)
    def test_says_the_word_for_it_without_a_text(self, run, now, how):
        end([run], how, now=now, using="default")

        assert stored(run) == (now, how, how.value)
        assert run.end is how

    @pytest.mark.parametrize(("text", "kept"), [("x" * 999, "x" * (MAX_TEXT - 1) + "…"), ("a\x00b", "ab")])
    def test_writes_what_the_column_holds(self, run, now, text, kept):
        end([run], RunEnd.EXIT, text, now=now, using="default")

        assert stored(run) == (now, "exit", kept)

    def test_says_the_word_for_it_where_no_database_stores_the_text(self, run, now):
        end([run], RunEnd.LEFT, "\x00", now=now, using="default")

        assert stored(run) == (now, "left", "left")

    def test_asks_nothing_for_none(self, db, now, django_assert_num_queries):
        with django_assert_num_queries(0):
            end([], RunEnd.EXIT, "paid", now=now, using="default")

    def test_is_one_statement_for_many(self, make, now, django_assert_num_queries):
        runs = [make(key=str(number)) for number in range(20)]

        with django_assert_num_queries(1):
            end(runs, RunEnd.EXIT, "paid", now=now, using="default")

        assert not TimelineRun.objects.open().exists()


class TestEndOpen:
    def test_gives_those_it_ended_as_they_are_stored(self, run, now):
        [ended] = end_open(["delivery"], [run.entity_ref], RunEnd.LEFT, "moved", now=now, using="default")

        assert ended == run
        assert (ended.ended_at, ended.end_code, ended.end_reason) == stored(run) == (now, "left", "moved")

    @pytest.mark.parametrize("timelines_and_key", [(["other"], None), (["delivery"], "b")])
    def test_leaves_others(self, run, now, timelines_and_key):
        timelines, key = timelines_and_key

        assert end_open(timelines, [run.entity_ref], RunEnd.LEFT, key=key, now=now, using="default") == []
        assert stored(run) == (None, "", "")

    def test_ends_none_twice(self, run, now):
        end_open(["delivery"], [run.entity_ref], RunEnd.EXIT, "paid", now=now, using="default")

        assert end_open(["delivery"], [run.entity_ref], RunEnd.LEFT, now=now + timedelta(1), using="default") == []
        assert stored(run) == (now, "exit", "paid")


class TestReopen:
    def test_leaves_nothing_of_the_end(self, run, now):
        end([run], RunEnd.FINISHED, now=now, using="default")

        reopen([run], using="default")

        assert stored(run) == (run.ended_at, run.end_code, run.end_reason) == (None, "", "")
        assert (run.end, run.is_finished) == (None, False)


class TestFinished:
    def test_is_no_word_that_a_host_may_not_use(self, run, now):
        """An exit may be called that, and the run has not finished for it."""
        end([run], RunEnd.EXIT, "finished", now=now, using="default")

        assert (run.end, run.is_finished) == (RunEnd.EXIT, False)


class TestRetoldEnd:
    @pytest.mark.parametrize(
        ("code", "text", "told"),
        [
            (RunEnd.FINISHED, "finished", "abgeschlossen"),
            (RunEnd.ENTITY_GONE, "the entity was deleted", "das Objekt wurde gelöscht"),
            (RunEnd.EXIT, "finished", "finished"),
            (RunEnd.LEFT, "the entity was deleted", "the entity was deleted"),
        ],
    )
    def test_translates_what_the_system_said_and_nothing_else(self, settings, code, text, told):
        settings.LANGUAGE_CODE = "de"

        assert retold_end(TimelineRun(end_code=code, end_reason=text)) == told

    def test_has_the_words_that_the_reason_of_its_tasks_has(self):
        assert {RunEnd.EXIT, RunEnd.ENTITY_GONE} <= set(ReasonCode.values)

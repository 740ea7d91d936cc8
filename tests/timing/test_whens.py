"""Times relative to an anchor: the words, and what each makes of them."""

from datetime import UTC, timedelta

import pytest

from tests.timing.moments import utc
from timeline.exceptions import DateOutOfRange
from timeline.timing import Offset, after, at, before, each_of


class Named:
    """Stands for a task, as ``@task`` does."""

    def __init__(self, name, when=None):
        self.name = name
        self.when = when


def first_problem(when):
    return " ".join(when.problems[0])


class TestAfter:
    def test_counts_from_the_start_of_the_run_without_an_anchor(self):
        when = after(days=25)

        assert (when.verb, when.anchor, when.offset) == ("after", "start", Offset(days=25))
        assert (when.field_name, when.predecessor_name, when.problems) == ("", "", ())

    def test_counts_from_a_field_of_the_entity(self):
        when = after("trial_ends_at", days=2)

        assert (when.anchor, when.field_name, when.predecessor_name) == (
            "field:trial_ends_at",
            "trial_ends_at",
            "",
        )

    def test_counts_from_the_end_of_a_task(self):
        expire = Named("expire")

        when = after(expire, days=2)

        assert (when.anchor, when.field_name, when.predecessor_name) == ("end:expire", "", "expire")
        assert when.predecessor is expire

    @pytest.mark.parametrize(
        ("when", "offset"),
        [
            pytest.param(after(), Offset(), id="nothing"),
            pytest.param(after(timedelta(days=1)), Offset(exact=timedelta(days=1)), id="a timedelta alone"),
            pytest.param(after("x", timedelta(days=1)), Offset(exact=timedelta(days=1)), id="a timedelta second"),
            pytest.param(
                after(timedelta(days=1), timedelta(hours=1)), Offset(exact=timedelta(hours=25)), id="two timedeltas"
            ),
            pytest.param(after(weeks=2, days=1), Offset(days=15), id="weeks are days"),
            pytest.param(after(years=1, months=2), Offset(months=14), id="years are months"),
            pytest.param(after(hours=1.5), Offset(exact=timedelta(minutes=90)), id="parts of an hour"),
            pytest.param(
                after(timedelta(hours=1), days=1, minutes=2, seconds=3),
                Offset(days=1, exact=timedelta(hours=1, minutes=2, seconds=3)),
                id="both kinds",
            ),
        ],
    )
    def test_takes_calendar_units_and_exact_ones_apart(self, when, offset):
        assert when.offset == offset
        assert when.problems == ()

    @pytest.mark.parametrize(
        ("when", "problem"),
        [
            (after(days=-1), "negative distance"),
            (after(months=-1), "negative distance"),
            (after(hours=-1), "negative distance"),
            (after(timedelta(seconds=-1)), "negative distance"),
            (after(days=1.5), "days=1.5 is not a whole number"),
            (after(days=True), "days=True is not a whole number"),
            (after(weeks="2"), "weeks='2' is not a whole number"),
            (after(years=None), "years=None is not a whole number"),
            (after(hours="2"), "make no duration"),
            (after(hours=float("nan")), "make no duration"),
            (after(hours=float("inf")), "make no duration"),
            (after("trial_ends_at", 5), "has the number 5 without a unit"),
            (after(timedelta.max, hours=1), "make no duration"),
            (after("trial ends"), "'trial ends' is not the name of a field"),
            (after("owner.ends_at"), "'owner.ends_at' is not the name of a field"),
            (after(""), "'' is not the name of a field"),
            (after(5), "has the number 5 without a unit"),
            (after(Named(None)), "names no anchor"),
        ],
    )
    def test_notes_what_is_wrong_with_it(self, when, problem):
        """The class of the timeline reports it with its name."""
        assert problem in first_problem(when)
        assert all(remedy for _problem, remedy in when.problems)


class TestBefore:
    def test_counts_back_from_a_field_of_the_entity(self):
        when = before("trial_ends_at", timedelta(hours=1), months=1, days=5)

        assert (when.verb, when.field_name) == ("before", "trial_ends_at")
        assert when.offset == Offset(months=-1, days=-5, exact=-timedelta(hours=1))
        assert when.problems == ()

    @pytest.mark.parametrize(
        ("when", "problem"),
        [
            (before("trial_ends_at"), "before() without a distance"),
            (before("trial_ends_at", days=0), "before() without a distance"),
            (before("trial_ends_at", days=-5), "negative distance"),
            (before("trial_ends_at", days=1.5), "days=1.5 is not a whole number"),
            (before("trial_ends_at", 3), "has the number 3 without a unit"),
            (before("trial-ends", days=5), "'trial-ends' is not the name of a field"),
            (before(Named("expire"), days=5), "before() counts back from a field of the entity only"),
            (before(timedelta(days=5), days=1), "before() counts back from a field of the entity only"),
        ],
    )
    def test_notes_what_is_wrong_with_it(self, when, problem):
        assert problem in first_problem(when)
        assert all(remedy for _problem, remedy in when.problems)


class TestAt:
    def test_is_the_time_that_a_field_holds(self):
        when = at("trial_ends_at")

        assert (when.verb, when.field_name, when.offset, when.problems) == ("at", "trial_ends_at", Offset(), ())

    @pytest.mark.parametrize(
        ("when", "problem"),
        [
            (at("trial ends"), "'trial ends' is not the name of a field"),
            (at(Named("expire")), "at() takes the name of a field"),
            (at(timedelta(days=1)), "at() takes the name of a field"),
        ],
    )
    def test_notes_what_is_wrong_with_it(self, when, problem):
        assert problem in first_problem(when)
        assert all(remedy for _problem, remedy in when.problems)


class TestResolve:
    def test_computes_the_time_from_the_value_of_the_anchor(self):
        assert before("trial_ends_at", days=5).resolve(utc(2026, 3, 31, 9), UTC) == utc(2026, 3, 26, 9)
        assert after(days=25).resolve(utc(2026, 3, 1, 9), UTC) == utc(2026, 3, 26, 9)
        assert at("trial_ends_at").resolve(utc(2026, 3, 31, 9), UTC) == utc(2026, 3, 31, 9)

    @pytest.mark.parametrize(
        ("when", "field"),
        [
            (after("trial_ends_at", years=7000), "trial_ends_at"),
            (before("trial_ends_at", years=100), "trial_ends_at"),
            (after(years=7000), "start"),
            (after(Named("expire"), years=7000), "end:expire"),
        ],
    )
    def test_names_the_anchor_that_a_date_out_of_range_came_from(self, when, field):
        with pytest.raises(DateOutOfRange) as caught:
            when.resolve(utc(2026, 3, 1), UTC)

        assert caught.value.field == field
        assert str(caught.value).startswith(f"{field}: ")


class TestWhenDescribe:
    @pytest.mark.parametrize(
        ("when", "text"),
        [
            (after(), "at the start of the run"),
            (after(days=25), "25 days after the start of the run"),
            (after("trial_ends_at", hours=1), "1 hour after trial_ends_at"),
            (before("trial_ends_at", days=5), "5 days before trial_ends_at"),
            (at("trial_ends_at"), "at trial_ends_at"),
            (after(Named("expire"), days=2), "2 days after expire completes"),
            (after(Named("expire")), "when expire completes"),
        ],
    )
    def test_says_it_in_words(self, when, text):
        assert when.describe() == text


class TestEachOf:
    def test_counts_from_what_a_task_fans_out(self):
        split = Named("split")

        when = each_of(split)

        assert (when.anchor, when.predecessor_name, when.predecessor) == ("each:split", "split", split)
        assert (when.is_for_each, when.takes_any_end, when.offset, when.problems) == (True, False, Offset(), ())

    @pytest.mark.parametrize("task", [None, 5, "split", Named(None)])
    def test_says_what_names_no_task(self, task):
        assert "names no task. Give the task of this timeline that fans out." in first_problem(each_of(task))


class TestEnded:
    def test_counts_from_any_end(self):
        when = after(Named("clean"), days=1, ended=True)

        assert (when.anchor, when.predecessor_name) == ("ended:clean", "clean")
        assert (when.is_for_each, when.takes_any_end, when.problems) == (False, True, ())

    def test_is_another_time_than_that_of_its_completion(self):
        clean = Named("clean")

        assert after(clean, ended=True) != after(clean)
        assert after(clean, ended=False) == after(clean)
        assert not after(clean).takes_any_end

    @pytest.mark.parametrize(
        "when", [after(ended=True), after("ends_at", ended=True), after(Named("x"), ended="yes"), after(ended=None)]
    )
    def test_goes_with_a_task_only(self, when):
        assert "ended=True goes with a task" in first_problem(when)


class TestWords:
    """Of the ends of tasks, one or many."""

    @pytest.mark.parametrize(
        ("when", "said"),
        [
            (each_of(Named("split")), "for each that split fans out"),
            (after(Named("clean"), ended=True), "when clean has ended"),
            (after(Named("clean"), days=1, ended=True), "1 day after clean has ended"),
            (after(Named("settle", each_of(Named("split")))), "when each settle has completed"),
            (after(Named("settle", each_of(Named("split"))), days=1), "1 day after each settle has completed"),
            (after(Named("settle", each_of(Named("split"))), ended=True), "when each settle has ended"),
            (
                after(Named("settle", each_of(Named("split"))), hours=2, ended=True),
                "2 hours after each settle has ended",
            ),
        ],
    )
    def test_say_what_it_is(self, when, said):
        assert when.describe() == said

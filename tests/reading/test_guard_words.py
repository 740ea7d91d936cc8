"""Conditions in words: their titles, or their names with blanks."""

from __future__ import annotations

import pytest
from django.db.models import Q
from django.utils import translation
from django.utils.functional import lazystr

from tests.testapp.models import Order
from timeline import Timeline, after, task
from timeline.models import ScheduledTask
from timeline.reading.explanation import why
from timeline.reading.guard_words import guard_in_words, refused_in_words
from timeline.reading.reason_texts import title_of_reason
from timeline.shortcuts import start
from timeline.testing import only_timelines


def has_paid(order):
    return order.paid


def is_lost(order):
    return False


class Dunning(Timeline):
    entity = "testapp.Order"
    titles = {"has_paid": lazystr("the customer has paid")}

    @task(after(days=1), unless=has_paid)
    def dun(self, order): ...

    @task(after(days=1), only_if=is_lost)
    def search(self, order): ...


class TestGuardInWords:
    @pytest.mark.parametrize(
        ("option", "guard", "words"),
        [
            ("unless", has_paid, "unless the customer has paid"),
            ("only_if", is_lost, "only if is lost"),
            ("until", lambda order: True, "until <lambda>"),
            ("only_if", Q(paid=True), "only if (AND: ('paid', True))"),
        ],
    )
    def test_has_the_title_else_the_name_with_blanks(self, option, guard, words):
        assert guard_in_words(Dunning.definition, option, guard) == words

    def test_is_the_name_where_the_timeline_is_not_known(self):
        assert guard_in_words(None, "unless", has_paid) == "unless has paid"

    def test_speaks_the_language_of_the_moment(self):
        with translation.override("de"):
            assert guard_in_words(Dunning.definition, "unless", is_lost) == "außer wenn gilt: is lost"


class TestRefusedInWords:
    def test_reads_what_a_row_has(self):
        assert refused_in_words(Dunning.definition, "unless has_paid") == "unless the customer has paid"

    @pytest.mark.parametrize("text", ["its time is outside of 09:00", "unless", ""])
    def test_leaves_other_texts(self, text):
        assert refused_in_words(Dunning.definition, text) == text


@pytest.mark.django_db
def test_a_task_that_was_refused_says_why_in_words(clock):
    """The row keeps the name; people and the title of the API have the words."""
    with only_timelines(Dunning):
        start(Dunning, Order.objects.create(paid=True))

        clock.advance(days=2)

        rows = {row.task_name: row for row in ScheduledTask.objects.all()}
        assert rows["dun"].reason == "unless has_paid"
        assert "unless the customer has paid" in why(rows["dun"])
        assert "only if is lost" in why(rows["search"])
        assert title_of_reason(rows["dun"]) == "unless the customer has paid"

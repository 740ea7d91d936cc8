"""Parts of a sweep: what cannot be mended together is mended one by one."""

from __future__ import annotations

import pytest
from django.db import DatabaseError

from tests.testapp.models import Effect
from timeline.exceptions import LeaseLost
from timeline.features.sweep.searches import each_if_not_all

pytestmark = pytest.mark.django_db


class Mending:
    """Writes an effect for each; fails where one is broken."""

    def __init__(self, broken=""):
        self.broken = broken
        self.calls = []

    def __call__(self, items):
        self.calls.append("".join(items))
        for item in items:
            Effect.objects.create(name=item)
            if item == self.broken:
                raise DatabaseError(f"{item} is broken")
        return len(items)


def mended():
    return "".join(sorted(Effect.objects.values_list("name", flat=True)))


class TestEachIfNotAll:
    def test_does_all_in_one_call(self):
        mend = Mending()

        assert each_if_not_all("abc", mend, using="default") == 3
        assert (mend.calls, mended()) == (["abc"], "abc")

    def test_does_nothing_for_none(self, django_assert_num_queries):
        mend = Mending()

        with django_assert_num_queries(0):
            assert each_if_not_all([], mend, using="default") == 0
        assert mend.calls == []

    def test_does_each_by_itself_where_all_together_fail(self, caplog):
        """What was written together is undone; what fails by itself is left, with a word."""
        mend = Mending(broken="b")

        assert each_if_not_all("abc", mend, using="default") == 2

        assert (mend.calls, mended()) == (["abc", "a", "b", "c"], "ac")
        assert [record.getMessage() for record in caplog.records] == [
            "The sweep leaves b for its next round: b is broken"
        ]

    def test_leaves_a_single_one_that_fails(self, caplog):
        assert each_if_not_all("b", Mending(broken="b"), using="default") == 0

        assert mended() == ""
        assert "The sweep leaves b" in caplog.text

    def test_leaves_to_who_called_what_is_no_failure(self):
        def lose(items):
            raise LeaseLost(items[0], 1)

        with pytest.raises(LeaseLost):
            each_if_not_all("abc", lose, using="default")

"""Statements sent ahead: what they do is done, and what goes wrong in one undoes all."""

import pytest
from django.db import IntegrityError, connection, transaction

from timeline.ids import uuid7
from timeline.models import Event
from timeline.store.insert import Insertion, columns_of
from timeline.store.multi_query import can_pipeline, pipelining


@pytest.fixture
def insertion(now):
    """Make an insertion of events with these keys."""

    def make(*keys, **given):
        rows = [{"id": uuid7(), "name": "n", "key": key, "occurred_at": now, "recorded_at": now} for key in keys]
        return Insertion(Event, columns_of(rows), using="default", **given)

    return make


@pytest.mark.django_db(transaction=True)
@pytest.mark.only_postgresql
class TestPipelining:
    def test_does_what_was_sent(self, insertion):
        with transaction.atomic(), pipelining("default"):
            insertion("a", "b", taken=False).send()
            second = insertion("b", "c").send()
            insertion("d").send()
            assert len(second.inserted()) == 1

        assert sorted(Event.objects.values_list("key", flat=True)) == ["a", "b", "c", "d"]

    @pytest.mark.parametrize("asked", [True, False], ids=["by one that is asked", "at the end"])
    def test_raises_what_goes_wrong_and_keeps_nothing(self, insertion, asked):
        def clash():
            with transaction.atomic(), pipelining("default"):
                insertion("a", taken=False).send()
                insertion("a", taken=False).send()
                later = insertion("b").send()
                if asked:
                    later.inserted()

        with pytest.raises(IntegrityError):
            clash()

        assert not Event.objects.exists()
        assert insertion("a").send().inserted()  # The connection is as it was.

    def test_leaves_the_callers_transaction_to_go_on(self, insertion):
        with transaction.atomic():
            insertion("before").send()
            with pytest.raises(IntegrityError), transaction.atomic(), pipelining("default"):
                insertion("before", taken=False).send()
            insertion("after").send()

        assert sorted(Event.objects.values_list("key", flat=True)) == ["after", "before"]

    def test_raises_what_the_caller_raises(self, insertion):
        def give_up():
            with transaction.atomic(), pipelining("default"):
                insertion("a").send()
                raise ZeroDivisionError

        with pytest.raises(ZeroDivisionError):
            give_up()

        assert not Event.objects.exists()
        assert not connection.in_atomic_block


@pytest.mark.django_db
class TestCanPipeline:
    def test_needs_postgresql(self):
        assert can_pipeline("default") is (connection.vendor == "postgresql")

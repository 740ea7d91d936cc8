"""What the log of a row says of its reason."""

from __future__ import annotations

import pytest
from django.utils import translation

from timeline import reasons
from timeline.lifecycle import Reason, ReasonCode, State, Trigger
from timeline.models import LogEntry, ScheduledTask
from timeline.reading.explanation import why
from timeline.reading.masks import masked, without_people
from timeline.reading.reason_texts import recall, retold
from timeline.store.transition import Write, apply

CHANGED = reasons.ANCHOR_CHANGED(anchor="ends_at")


@pytest.fixture
def cancelled(make_task, now):
    """Cancel a new task for a reason, and read it again."""

    def make(reason=CHANGED, **columns):
        row = make_task(state=State.SCHEDULED, **columns)
        apply([Write(task=row, triggers=(Trigger.CANCEL,), reason=reason)], now=now, using="default")
        return ScheduledTask.objects.get(pk=row.pk)

    return make


class TestWritten:
    def test_with_the_entry_of_the_log(self, cancelled):
        row = cancelled()

        assert row.reason == "ends_at changed"
        assert LogEntry.objects.get(task=row).detail == {"said": {"sentence": "anchor_changed", "anchor": "ends_at"}}

    def test_not_where_the_text_says_it_all(self, cancelled):
        assert LogEntry.objects.get(task=cancelled(reasons.DELETED())).detail == {}


class TestRecall:
    def test_is_one_query_for_any_number(self, cancelled, django_assert_num_queries):
        rows = [cancelled(reasons.ANCHOR_CHANGED(anchor=f"field {number}")) for number in range(20)]

        with translation.override("de"), django_assert_num_queries(1):
            recall(rows, using="default")
            told = [retold(row) for row in rows]

        assert told == [f"field {number} hat sich geändert" for number in range(20)]

    @pytest.mark.parametrize(
        "reason",
        [
            reasons.DELETED(),
            Reason(ReasonCode.DONE),
            Reason.operator("asked"),
            Reason(ReasonCode.MOVED, "later", "eva"),
        ],
        ids=["whole", "done", "operator", "moved"],
    )
    def test_is_none_for_what_needs_none(self, cancelled, reason, django_assert_num_queries):
        row = cancelled(reason)

        with django_assert_num_queries(0):
            recall([row], using="default")
            assert retold(row) == reason.text

    def test_is_of_the_last_reason(self, cancelled, make_task, now):
        """What came before it and what has none, a message sent again, say nothing of it."""
        row = make_task(state=State.SCHEDULED)
        for reason in (reasons.MOVED(anchor="a"), reasons.MOVED(anchor="b"), None):
            apply([Write(task=row, reason=reason, evidence={"resend": 1})], now=now, using="default")

        with translation.override("de"):
            assert retold(ScheduledTask.objects.get()) == "ihr Anker (b) oder ihre Planung hat sich geändert"

    def test_is_not_of_another_text(self, cancelled):
        row = cancelled()
        row.reason = "something else"

        with translation.override("de"):
            assert retold(row) == "something else"

    def test_follows_the_row(self, make_task, now):
        """It is not what the same object said before it was written again."""
        row = make_task(state=State.SCHEDULED)
        told = []
        for anchor in ("a", "b"):
            apply([Write(task=row, reason=reasons.MOVED(anchor=anchor))], now=now, using="default")
            told.append(retold(row))

        assert told == [reasons.MOVED(anchor=anchor).text for anchor in ("a", "b")]


class TestCopies:
    def test_share_it(self, cancelled, django_assert_num_queries):
        row = cancelled(reasons.MOVED(anchor="ends_at"))

        with translation.override("de"), django_assert_num_queries(1):
            assert [retold(copy) for copy in (masked(row), without_people(row), without_people(masked(row)))] == [
                "ihr Anker (ends_at) oder ihre Planung hat sich geändert"
            ] * 3

    @pytest.mark.parametrize("actor", ["", "eva"])
    def test_have_nothing_that_somebody_typed(self, cancelled, actor):
        """Not even what looks like the package's words, with something of theirs in it."""
        typed = "its anchor (she is never there) or its schedule changed"
        row = cancelled(Reason(ReasonCode.MOVED, typed, actor))

        assert why(without_people(row)) == "it was moved: moved"

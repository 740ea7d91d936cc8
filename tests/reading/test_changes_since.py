from __future__ import annotations

from datetime import timedelta

import pytest

from timeline.dispatch.poll import stage
from timeline.lifecycle import State
from timeline.reading.changes_since import changes_since
from timeline.shortcuts import cancel, move, redrive, run_now
from timeline.timing import in_utc

pytestmark = pytest.mark.django_db

DAY = timedelta(days=1)


@pytest.fixture
def task(make_task, clock):
    return make_task(scheduled_at=clock.now + DAY)


def since(task, seq=0, **who):
    task.refresh_from_db()
    return changes_since(task, seq, using="default", **who)


class TestChangesSince:
    def test_names_who_changed_what_and_when(self, task, clock):
        first, at = in_utc(clock.now + DAY), clock.now
        move(task, at=clock.now + 2 * DAY, reason="they are away", actor="ben")
        clock.advance(minutes=5)
        cancel(task, reason="they left", actor="ada")

        moved, cancelled = since(task)

        assert moved == f"On {in_utc(at)} it was moved from {first} to {in_utc(at + 2 * DAY)}: they are away, by ben."
        assert cancelled == f"It was cancelled on {in_utc(clock.now)}: they left, by ada."
        assert since(task, seq=1) == [cancelled]
        assert since(task, seq=task.seq) == []

    def test_names_who_made_it_due(self, task, clock):
        run_now(task, reason="they ask", actor="ben")

        assert since(task) == [f"On {in_utc(clock.now)} it was made due at once: they ask, by ben."]

    def test_tells_who_may_not_read_that_neither_who_nor_why(self, task, clock):
        move(task, at=clock.now + 2 * DAY, reason="a secret", actor="ben")
        cancel(task, reason="another secret", actor="ada")

        said = " ".join(since(task, people=False))

        assert "it was moved from" in said
        assert not any(word in said for word in ("secret", "ben", "ada"))

    def test_says_which_revision_carries_on(self, make_task, clock):
        ended = make_task(state=State.DISCARDED)
        redrive(ended, reason="it is mended", actor="ada")

        [told] = since(ended, seq=ended.seq)
        [quiet] = since(ended, seq=ended.seq, people=False)

        assert told.startswith("Revision 2 carries on for it since ")
        assert "it is mended, by ada" in told
        assert "mended" not in quiet

    def test_says_where_it_stands_where_nobody_did_anything(self, task, clock):
        stage(now=clock.now + 2 * DAY, using="default")

        [told] = since(task)

        assert told.startswith("Since ")
        assert "available" in told

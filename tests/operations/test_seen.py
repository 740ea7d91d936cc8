"""Decisions that say what was seen: refused if it has changed since."""

from __future__ import annotations

import threading
from datetime import timedelta

import pytest
from django.db import connection, connections

from timeline.exceptions import ChangedSince, TransitionNotAllowed
from timeline.lifecycle import State
from timeline.models import LogEntry, ScheduledTask
from timeline.shortcuts import cancel, move, redrive, run_now

HOUR = timedelta(hours=1)
VERBS = {
    "cancel": (cancel, {}, State.SCHEDULED),
    "move": (move, {}, State.SCHEDULED),
    "move what is due": (move, {}, State.AVAILABLE),
    "run now": (run_now, {}, State.SCHEDULED),
    "redrive": (redrive, {}, State.DISCARDED),
}


def options(verb, now):
    return {"reason": "asked for", "actor": "ada"} | ({"at": now + 5 * HOUR} if verb.startswith("move") else {})


@pytest.mark.parametrize("verb", VERBS)
class TestSeen:
    def test_of_what_is_as_it_was_is_done(self, make_task, clock, verb):
        call, _, state = VERBS[verb]
        row = make_task(state=state, scheduled_at=clock.now + HOUR, seq=3)

        [done] = call(row, seen={row.pk: 3}, **options(verb, clock.now))

        assert (done.pk, done.seq) != (row.pk, 3)

    def test_of_what_has_changed_is_refused_and_changes_nothing(self, make_task, clock, verb):
        call, _, state = VERBS[verb]
        row = make_task(state=state, scheduled_at=clock.now + HOUR, seq=3, actor="ben", reason="his")
        other = make_task(state=state, scheduled_at=clock.now + HOUR)
        before = list(ScheduledTask.objects.order_by("pk").values())

        with pytest.raises(ChangedSince) as caught:
            call([other, row], seen={other.pk: 0, row.pk: 2}, **options(verb, clock.now))

        error = caught.value
        assert (error.task, error.state, error.scheduled_at, error.seq) == (row.pk, state, clock.now + HOUR, 3)
        assert (error.actor, error.reason) == ("ben", "his")
        assert list(ScheduledTask.objects.order_by("pk").values()) == before
        assert not LogEntry.objects.exists()

    def test_costs_no_query(self, make_task, clock, verb, django_assert_num_queries):
        call, _, state = VERBS[verb]
        rows = [make_task(state=state, scheduled_at=clock.now + HOUR) for _ in range(2)]
        with django_assert_num_queries(100, exact=False) as without:
            call(rows[0], **options(verb, clock.now))

        with django_assert_num_queries(len(without)):
            call(rows[1], seen={rows[1].pk: 0}, **options(verb, clock.now))


class TestChanges:
    def test_of_the_time_count_and_of_the_state(self, make_task, clock):
        row = make_task(scheduled_at=clock.now + HOUR)
        move(row, at=clock.now + 2 * HOUR, reason="later", actor="ben")
        with pytest.raises(ChangedSince, match=f"is scheduled by now, due {clock.now + 2 * HOUR:%Y-%m-%d %H:%M} UTC"):
            move(row, at=clock.now + 3 * HOUR, reason="mine", seen={row.pk: 0})
        [row] = run_now(row, reason="now", seen={row.pk: 1})

        with pytest.raises(ChangedSince, match="is available by now"):
            cancel(row, reason="not now", seen={row.pk: 1})

        row.refresh_from_db()
        assert (row.state, row.seq) == (State.AVAILABLE, 2)

    def test_are_told_before_what_the_state_forbids(self, make_task, clock):
        row = make_task(state=State.COMPLETED, seq=2)

        with pytest.raises(ChangedSince):
            cancel(row, reason="x", seen={row.pk: 1})
        with pytest.raises(TransitionNotAllowed):
            cancel(row, reason="x", seen={row.pk: 2})

    def test_of_what_nobody_looked_at_do_not_count(self, make_task, clock):
        row = make_task(seq=4)

        assert cancel(row, reason="x", seen={})
        row.refresh_from_db()
        assert row.state == State.CANCELLED

    def test_name_no_one_in_their_text(self, make_task, clock):
        row = make_task(seq=4, actor="ben", reason="his secret")

        with pytest.raises(ChangedSince) as caught:
            cancel(row, reason="x", seen={row.pk: 3})

        assert "ben" not in str(caught.value)
        assert "secret" not in str(caught.value)

    def test_of_a_later_revision_count_for_a_redrive(self, make_task, clock):
        """The old row stays as it is: what was redriven and ended again is seen by its latest revision only."""
        row = make_task(state=State.DISCARDED)
        [again] = redrive(row, reason="mended", seen={row.pk: 0})
        cancel(again, reason="no")

        with pytest.raises(ChangedSince) as caught:
            redrive(row, reason="mended", seen={row.pk: 0})

        assert (caught.value.task, caught.value.state) == (row.pk, State.CANCELLED)
        assert "redriven" in caught.value.remedy
        [third] = redrive(again, reason="mended", seen={again.pk: 2})
        assert third.revision == 3
        [fourth] = [*cancel(third, reason="no"), *redrive(row, reason="as before")][1:]
        assert fourth.revision == 4


@pytest.mark.django_db(transaction=True)
class TestRace:
    @pytest.mark.parametrize("state", [State.SCHEDULED, State.AVAILABLE])
    def test_of_decisions_about_the_same_view_is_won_by_one(self, make_task, now, state):
        row = make_task(state=state, scheduled_at=now + 1000 * HOUR)
        told, ready = [], threading.Barrier(4)

        def decide(number):
            ready.wait(120)
            try:
                told.append(move(row.pk, at=now + (2000 + number) * HOUR, reason="x", actor="a", seen={row.pk: 0}))
            except ChangedSince as error:
                told.append(error)
            finally:
                connections[connection.alias].close()

        threads = [threading.Thread(target=decide, args=[number]) for number in range(4)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join(120)

        assert len(told) == 4
        assert len([one for one in told if isinstance(one, ChangedSince)]) == 3

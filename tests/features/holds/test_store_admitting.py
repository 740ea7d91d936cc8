from __future__ import annotations

from datetime import timedelta
from uuid import uuid4

import pytest

from timeline.features.holds.store import admit, admitted_among, let_go, prune_admissions, withdraw, would_start
from timeline.ids import uuid7
from timeline.lifecycle import Reason, State
from timeline.models import Admission
from timeline.operations.move import move

pytestmark = pytest.mark.django_db

HOUR = timedelta(hours=1)


class TestAdmit:
    def test_counts_a_task_from_its_first_time(self, now):
        task_id = uuid4()

        admit("trial.expire", {task_id: now - HOUR}, using="default")
        admit("trial.expire", {task_id: now, uuid4(): now}, using="default")

        assert Admission.objects.get(pk=task_id).at == now - HOUR
        assert admitted_among([task_id, uuid4()], using="default") == {task_id}

    def test_is_undone_by_a_withdrawal(self, now):
        task_id = uuid4()
        admit("trial.expire", {task_id: now}, using="default")

        withdraw([task_id], using="default")

        assert not Admission.objects.exists()


class TestLetGo:
    def test_lets_in_what_is_open_and_due_of_a_kind(self, make_task, now):
        due = make_task(task_key="trial.expire", occurrence="due", scheduled_at=now - HOUR)
        make_task(task_key="trial.expire", occurrence="ahead", scheduled_at=now + HOUR)
        make_task(task_key="trial.remind", scheduled_at=now - HOUR)
        make_task(task_key="trial.expire", occurrence="over", scheduled_at=now - HOUR, state=State.COMPLETED)

        let_go("trial.expire", at=now, made_before=uuid7(), most=9, using="default")
        let_go("trial.expire", at=now + timedelta(minutes=1), made_before=uuid7(), most=9, using="default")

        assert list(Admission.objects.values_list("pk", "task_key", "at")) == [(due.pk, "trial.expire", now)]

    def test_lets_in_so_many_at_a_time_until_none_is_left(self, make_task, now):
        for number in range(5):
            make_task(task_key="trial.expire", occurrence=str(number), scheduled_at=now - HOUR)
        made_before = uuid7()

        done = [let_go("trial.expire", at=now, made_before=made_before, most=2, using="default") for _ in range(4)]

        assert done == [2, 2, 1, 0]

    def test_leaves_what_was_made_or_moved_since(self, make_task, now):
        """Whatever time it was given."""
        moved = make_task(task_key="trial.expire", scheduled_at=now + HOUR)
        made_before = uuid7()
        make_task(task_key="trial.expire", occurrence="made since", scheduled_at=now - HOUR)
        moment = now + timedelta(seconds=1)
        move(task_ids=[moved.pk], at=now - HOUR, reason=Reason.operator("x"), now=moment, using="default")

        assert let_go("trial.expire", at=now, made_before=made_before, most=9, using="default") == 0


class TestWouldStart:
    def test_counts_what_was_let_in_and_what_is_due_no_further_than_one_more(self, make_task, now):
        admit("trial.expire", {uuid4(): now, uuid4(): now - 2 * HOUR}, using="default")
        admit("trial.remind", {uuid4(): now}, using="default")
        for key in range(3):
            make_task(task_key="trial.expire", occurrence=str(key), scheduled_at=now - HOUR)
        make_task(task_key="trial.expire", occurrence="ahead", scheduled_at=now + HOUR)
        known = make_task(task_key="trial.expire", occurrence="known", scheduled_at=now - HOUR)
        admit("trial.expire", {known.pk: now}, using="default")

        def counted(**said):
            given = {"most": 99, "since": now - HOUR, "later_than": None, "now": now, **said}
            return would_start("trial.expire", using="default", **given)

        assert counted() == 5
        assert counted(most=1) == 2
        assert counted(most=3) == 4
        assert counted(later_than=now) == 3  # What waits counts whenever it was due: what was let go is let in.


class TestPruneAdmissions:
    def test_keeps_what_a_brake_may_count(self, now):
        for days in range(6, 10):
            admit("trial.expire", {uuid4(): now - timedelta(days=days)}, using="default")

        prune_admissions(now, most=1, using="default")
        assert Admission.objects.count() == 3
        prune_admissions(now, most=9, using="default")

        assert Admission.objects.count() == 2

    def test_keeps_what_is_to_be_let_in_again(self, make_task, now):
        task = make_task(task_key="trial.expire", scheduled_at=now)
        admit("trial.expire", {task.pk: now - timedelta(days=9)}, using="default")

        prune_admissions(now, most=9, using="default")

        assert Admission.objects.count() == 1

    def test_goes_past_what_it_keeps(self, make_task, now):
        """However few are looked at together."""
        for days in (9, 10):
            task = make_task(task_key="trial.expire", occurrence=str(days), scheduled_at=now)
            admit("trial.expire", {task.pk: now - timedelta(days=days)}, using="default")
        ended = uuid4()
        admit("trial.expire", {ended: now - timedelta(days=8)}, using="default")

        prune_admissions(now, most=1, using="default")

        assert Admission.objects.count() == 2
        assert not Admission.objects.filter(pk=ended).exists()

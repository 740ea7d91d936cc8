from __future__ import annotations

import pytest

from timeline.exceptions import InvalidInput
from timeline.features.limits.verbs import open_limit
from timeline.lifecycle import Reason, State
from timeline.models import Opening, ScheduledTask

pytestmark = pytest.mark.django_db


@pytest.fixture
def closed(make_task):
    return make_task(state=State.DISCARDED, attempt=1, limit_key="settlement", slot=1, held_until="opened")


class TestOpenLimit:
    def test_frees_the_place_and_keeps_who_why_and_when(self, closed, now):
        [task] = open_limit(key="settlement", reason=Reason.operator("paid by hand", "ada"), now=now, using="default")

        closed.refresh_from_db()
        kept = Opening.objects.get()
        assert (task.pk, closed.slot, closed.state) == (closed.pk, 0, State.DISCARDED)
        assert (kept.limit_key, kept.slot, kept.task_id, kept.task_key) == ("settlement", 1, closed.pk, closed.task_key)
        assert (kept.reason, kept.actor, kept.opened_at) == ("paid by hand", "ada", now)

    def test_leaves_what_nobody_has_seen(self, closed, make_task, now):
        other = make_task(state=State.DISCARDED, attempt=1, limit_key="settlement", slot=2, held_until="opened")
        why = Reason.operator("paid by hand")

        [task] = open_limit(key="settlement", reason=why, seen={closed.pk}, now=now, using="default")

        assert task == closed
        assert list(ScheduledTask.objects.closing()) == [other]
        with pytest.raises(InvalidInput) as raised:
            open_limit(key="settlement", reason=why, seen={closed.pk}, now=now, using="default")
        assert raised.value.field == "key"
        assert Opening.objects.count() == 1

    def test_leaves_who_is_under_way(self, closed, make_task, now):
        active = make_task(state=State.ACTIVE, attempt=1, limit_key="settlement", slot=2, held_until="opened")

        open_limit(key="settlement", reason=Reason.operator("paid by hand"), now=now, using="default")

        active.refresh_from_db()
        assert active.slot == 2

    @pytest.mark.parametrize(
        ("key", "reason", "field"),
        [
            ("other", "why", "key"),
            ("settle\x00ment", "why", "key"),
            ("s" * 10_000, "why", "key"),
            ("\ud800", "why", "key"),
            ("settlement", " ", "reason"),
        ],
    )
    def test_refuses_what_is_not_closed_and_an_empty_reason(self, closed, now, key, reason, field):
        with pytest.raises(InvalidInput) as raised:
            open_limit(key=key, reason=Reason.operator(reason), now=now, using="default")

        assert raised.value.field == field
        assert not Opening.objects.exists()

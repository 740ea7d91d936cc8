"""Who decided, and what they wrote: read on each page by those whom the policy lets, and by nobody else."""

from __future__ import annotations

from datetime import timedelta

import pytest

from tests.admin.conftest import ACT, ENTITY, LIST, Account, Care, detail, text_of
from tests.testapp.models import Plan, Seat
from timeline import Timeline, after, task
from timeline.lifecycle import State
from timeline.models import Event, LogEntry, ScheduledTask
from timeline.policy import TimelinePolicy
from timeline.shortcuts import cancel, emit, leave, move
from timeline.testing import only_timelines

WORDS = ("boss@example.com", "a liar")
SAID = {"reason": "a liar, says his bank", "actor": "boss@example.com"}


class Seating(Timeline):
    """About seats, which are their users'."""

    entity = "testapp.Seat"
    owner = "plan.user"
    starts_on = "seat.taken"
    exits = {"seat.left": "left"}

    @task(after(days=1))
    def free(self, seat): ...


class OpenPolicy(TimelinePolicy):
    """Owners read what staff write."""

    def sees_decisions(self, user, task):
        return True


@pytest.fixture(autouse=True)
def _also(clock):
    with only_timelines(Care, Account, Seating):
        yield


@pytest.fixture
def staff(person):
    """Who sees what is their own in the admin, and may do things with it."""
    return person("staff", "cancel_scheduledtask", "redrive_scheduledtask")


@pytest.fixture
def pages(staff, about, clock):
    """Look at all pages about decisions on what is theirs: ``pages(client)`` gives what each says."""
    cancelled, moved, stopped = (
        about(staff, task_key="account.welcome", state=state)
        for state in (State.SCHEDULED, State.SCHEDULED, State.ACTIVE)
    )
    LogEntry.objects.create(task=stopped, seq=1, at=clock.now, from_state="available", to_state="active", attempt=1)
    ScheduledTask.objects.filter(pk=stopped.pk).update(seq=1, attempt=1)
    for row in (cancelled, stopped):
        cancel(row, **SAID)
    move(moved, at=clock.now + timedelta(days=2), **SAID)
    seat = Seat.objects.create(plan=Plan.objects.create(user=staff))
    emit("seat.taken", seat, actor=SAID["actor"])
    leave("seating", seat, **SAID)
    freed = ScheduledTask.objects.get(task_key="seating.free")

    def look(client):
        found = {
            "list": client.get(LIST),
            "ended": client.get(LIST, {"state": "ended"}),
            "cancelled": client.get(detail(cancelled)),
            "moved": client.get(detail(moved)),
            "stopped": client.get(detail(stopped)),
            "freed": client.get(detail(freed)),
            "user": client.get(ENTITY, {"label": "accounts.user", "id": staff.pk}),
            "seat": client.get(ENTITY, {"label": "testapp.seat", "id": seat.pk}),
            "cancel": client.post(ACT, {"action": "cancel", "task": [moved.pk, cancelled.pk]}),
            "redrive": client.post(ACT, {"action": "redrive", "task": freed.pk}),
            "redriven": client.post(
                ACT, {"action": "redrive", "task": freed.pk, "confirmed": "1", "reason": "once more"}
            ),
        }
        assert {page.status_code for page in found.values()} == {200}
        return {name: text_of(page) for name, page in found.items()}

    return look


class TestOwners:
    def test_read_the_code_and_nobodys_words(self, browse, staff, pages):
        told = pages(browse(staff))

        assert not [(name, word) for name, page in told.items() for word in WORDS if word in page]
        assert "cancelled on 2026-03-01 09:00: operator." in told["cancelled"]
        assert "Its run ended: " in told["redrive"]

    def test_read_them_where_the_hosts_policy_says_so(self, browse, staff, pages, settings):
        settings.TIMELINE = {"POLICY": f"{__name__}.OpenPolicy"}

        told = pages(browse(staff))

        assert [name for name, page in told.items() if WORDS[1] not in page] == []

    def test_read_the_name_of_an_exit_and_what_the_system_says(self, browse, staff):
        seat = Seat.objects.create(plan=Plan.objects.create(user=staff))
        emit("seat.taken", seat)
        emit("seat.left", seat, actor=SAID["actor"])

        told = text_of(browse(staff).get(detail(ScheduledTask.objects.get())))

        assert ": left</dd>" in told
        assert "the run ended by the exit “left”" in told
        assert Event.objects.filter(actor=SAID["actor"]).exists()
        assert SAID["actor"] not in told


def test_staff_who_may_view_read_them(browse, person, pages):
    permissions = ["view_scheduledtask", "cancel_scheduledtask", "redrive_scheduledtask"]

    told = pages(browse(person("viewer", *permissions)))

    assert [name for name, page in told.items() if WORDS[1] not in page] == []

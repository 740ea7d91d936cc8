"""What owners learn of who decided about their tasks, and what staff wrote."""

from __future__ import annotations

from datetime import timedelta

import pytest

from tests.api.conftest import Asker
from timeline.models import ScheduledTask
from timeline.policy import TimelinePolicy
from timeline.shortcuts import cancel, emit, leave, move, redrive, run_now, start

WORDS = ("boss@example.com", "a liar")


class OpenPolicy(TimelinePolicy):
    """Owners read what staff write."""

    def sees_decisions(self, user, task):
        return True


@pytest.fixture
def decided(ada, seat, about, clock):
    """Rows of Ada's about which staff have decided, each another way; with what they wrote."""
    said = {"reason": "a liar, says his bank", "actor": "boss@example.com"}
    moved, hurried, ended, again = (
        about("account.call", ada, scheduled_at=clock.now + timedelta(days=9)) for _ in range(4)
    )
    move(moved, at=clock.now + timedelta(days=8), **said)
    run_now(hurried, **said)
    cancel(ended, **said)
    cancel(again, **said)
    redrive(again, **said)
    start("seating", seat(ada))
    leave("seating", ScheduledTask.objects.get(task_key="seating.free").entity_ref, **said)
    return [moved, hurried, ended, again]


def everything(client):
    """All that the API says of what one sees."""
    rows = client.get("tasks/").json()["results"]
    pages = ["me/tasks/", "tasks/", *(f"tasks/{row['id']}/" for row in rows)]
    return "".join(client.get(page).content.decode() for page in pages)


class TestOwners:
    def test_get_the_code_and_nobodys_words(self, asked_by, ada, decided):
        told = everything(asked_by(ada))

        assert not [word for word in WORDS if word in told]
        codes = {row["reason_code"] for row in asked_by(ada).get("tasks/").json()["results"]}
        assert codes == {"moved", "operator", "exit"}

    def test_get_the_name_of_an_exit_and_what_the_system_says(self, asked_by, ada, clock):
        emit("user.created", ada)
        emit("user.left", ada, actor="boss@example.com")
        [row] = asked_by(ada).get("tasks/").json()["results"]

        told = asked_by(ada).get(f"tasks/{row['id']}/").json()

        assert (row["reason_code"], row["reason"], row["actor"]) == ("exit", "left", "")
        assert [(entry["reason"], entry["actor"]) for entry in told["log"]] == [("left", "")]
        assert "“left”" in told["explanation"]

    def test_are_not_told_them_by_a_refusal(self, person, seat):
        """Who has a permission to act, but sees only what is their own."""
        owner = person("owner", "redrive_scheduledtask")
        start("seating", seat(owner))
        row = ScheduledTask.objects.get()
        leave("seating", row.entity_ref, reason="a liar, says his bank", actor="boss@example.com")

        answer = Asker(owner).post(f"tasks/{row.pk}/redrive/", {"reason": "once more"})

        assert (answer.status_code, answer.json()["type"]) == (409, "urn:timeline:run-ended")
        assert not [word for word in WORDS if word in answer.content.decode()]

    def test_get_them_where_the_hosts_policy_says_so(self, asked_by, ada, decided, settings):
        settings.TIMELINE = {"POLICY": f"{__name__}.OpenPolicy"}

        told = everything(asked_by(ada))

        assert [word for word in WORDS if word in told] == list(WORDS)


def test_staff_read_them(person, decided):
    told = everything(Asker(person("viewer", "view_scheduledtask")))

    assert [word for word in WORDS if word in told] == list(WORDS)

"""What a request that is sent again shows: what was answered then, as far as the one who asks may see it now."""

from __future__ import annotations

from datetime import timedelta

import pytest
from django.contrib.auth.models import Permission
from rest_framework.serializers import SerializerMethodField

from tests.api.conftest import EVERYTHING, ROOT, Asker
from timeline.api.preconditions import columns_of, row_of
from timeline.api.serializers import TaskSerializer
from timeline.api.tasks import TaskViewSet
from timeline.lifecycle import State
from timeline.models import ScheduledTask
from timeline.policy import TimelinePolicy
from timeline.shortcuts import move

KEY = "8e03978e-40d5-43dd-bc93-6894a57f9324"


class WithError(TaskSerializer):
    """Shows in lists what ours shows of one task."""

    error = SerializerMethodField()

    class Meta(TaskSerializer.Meta):
        fields = [*TaskSerializer.Meta.fields, "error"]

    def get_error(self, task):
        return None if self.hides else task.error


class OnlyFirsts(TimelinePolicy):
    """Nobody sees what carries on for another row."""

    def visible(self, tasks, user):
        return super().visible(tasks, user).filter(revision=1)


@pytest.fixture
def later(clock):
    """A body that moves a task."""
    return {"reason": "a liar, says his bank", "at": (clock.now + timedelta(days=9)).isoformat()}


def send(user, row, action, body):
    path = f"{ROOT}/tasks/{row.pk}/{action}/"
    return Asker(user).client.post(path, body, content_type="application/json", headers={"Idempotency-Key": KEY})


def take(user, name):
    user.user_permissions.remove(Permission.objects.get(codename=name))


class TestWhatIsShownAgain:
    def test_leaves_out_errors_once_payloads_may_not_be_viewed(self, staff, about, ada, later, monkeypatch):
        """Of a host's own serializer."""
        monkeypatch.setattr(TaskViewSet, "serializer_class", WithError)
        row = about("account.call", ada, state=State.RETRYABLE, error="DE89 is closed")
        first = send(staff, row, "move", later)
        take(staff, "view_payload")

        again = send(staff, row, "move", later)

        assert first.json()["error"] == "DE89 is closed"
        assert (again.status_code, again.headers["Idempotency-Replayed"]) == (200, "true")
        assert again.json() == {**first.json(), "error": None}

    def test_leaves_out_who_decided_once_tasks_may_not_be_viewed(self, person, about, later):
        """They still see it, because it is about them."""
        owner = person("owner", *EVERYTHING)
        row = about("account.call", owner)
        first = send(owner, row, "cancel", {"reason": later["reason"]})
        take(owner, "view_scheduledtask")

        again = send(owner, row, "cancel", {"reason": later["reason"]})

        assert (first.json()["reason"], first.json()["actor"]) == (later["reason"], owner.email)
        assert again.json() == {**first.json(), "reason": "", "actor": ""}

    @pytest.mark.parametrize(("action", "state"), [("move", State.AVAILABLE), ("redrive", State.DISCARDED)])
    def test_is_not_there_if_it_is_another_row_which_may_not_be_seen(
        self, staff, about, ada, later, settings, action, state
    ):
        row = about("account.call", ada, state=state)
        body = later if action == "move" else {"reason": "x"}
        first = send(staff, row, action, body)
        settings.TIMELINE = {"POLICY": f"{__name__}.OnlyFirsts"}

        again = send(staff, row, action, body)

        assert (first.json()["revision"], again.status_code) == (2, 404)
        assert str(ScheduledTask.objects.get(revision=2).pk) not in again.content.decode()
        assert ScheduledTask.objects.count() == 2

    def test_is_what_it_was_though_the_task_has_changed_since(self, staff, about, ada, later, clock):
        row = about("account.call", ada, scheduled_at=clock.now + timedelta(days=1))
        first = send(staff, row, "move", later)
        move(row, at=clock.now + timedelta(days=20), reason="later still")

        again = send(staff, row, "move", later)

        assert (again.content, again.headers["ETag"]) == (first.content, first.headers["ETag"])


class TestWhatIsKept:
    def test_has_all_columns_but_what_few_may_read(self, staff, about, ada, clock):
        columns = {
            "payload": {"iban": "DE89"},
            "result": "DE89",
            "error": "DE89",
            "worker": "mail:ab12",
            "expires_at": clock.now + timedelta(days=3, microseconds=7),
            "anchor_date": clock.now.date(),
        }
        row = about("account.call", ada, state=State.DISCARDED, reason="told", **columns)
        row.refresh_from_db()

        read = row_of(columns_of(row), using="default")

        assert "DE89" not in str(columns_of(row))
        assert read.get_deferred_fields() == {"payload", "result", "error"}
        assert {name: getattr(read, name) for name in columns_of(row)} == {
            name: getattr(row, name) for name in columns_of(row)
        }
        assert (read.payload, read.result, read.error) == ({"iban": "DE89"}, "DE89", "DE89")

    def test_may_have_been_written_by_another_version(self, about, ada):
        row = about("account.call", ada, worker="mail:ab12")
        kept = columns_of(row)
        del kept["worker"]

        read = row_of({**kept, "nothing": "x"}, using="default")

        assert (read.pk, read.worker) == (row.pk, "mail:ab12")

"""``timeline_erase``: shows first, and erases when told to."""

from __future__ import annotations

from io import StringIO

import pytest
from django.core.management import CommandError, call_command

from project.accounts.models import User
from tests.admin.test_owning import Seating
from tests.testapp.models import Plan, Seat
from timeline import Timeline, task
from timeline.exceptions import InvalidInput
from timeline.models import Event, ScheduledTask, ref_of
from timeline.shortcuts import cancel, erase, schedule
from timeline.testing import only_timelines


class Account(Timeline):
    entity = "accounts.User"

    @task()
    def welcome(self, user): ...


@pytest.fixture
def ada(db, clock, now, user):
    """A user with a task that was cancelled, and a seat that has one ahead."""
    with only_timelines(Account, Seating):
        clock.set(now)
        done = schedule("account.welcome", user, at=now, payload={"name": "Ada"}).task
        cancel(done, reason="Ada asked for it", actor="eva")
        seat = Seat.objects.create(plan=Plan.objects.create(user=user))
        schedule("seating.free", seat, at=now, payload={"name": "Ada"})
        yield user


def called(*options):
    out = StringIO()
    call_command("timeline_erase", *options, stdout=out)
    return out.getvalue()


def said():
    return sorted(ScheduledTask.objects.values_list("task_key", "payload"))


class TestErase:
    def test_shows_what_there_is_and_changes_nothing(self, ada):
        before = said()

        text = called("accounts.user", str(ada.pk), "--owned")

        assert f"accounts.user {ada.pk}: open_tasks 0, open_runs 0, tasks 1, runs 0, events 0" in text
        assert "open_tasks 1" in text
        assert text.endswith("Nothing was changed. With --apply it is.\n")
        assert said() == before

    def test_erases_them(self, ada):
        text = called("accounts.user", str(ada.pk), "--apply", "--reason", "a request of 3 May")

        assert f"accounts.user {ada.pk}: logentry " in text
        assert said() == [("account.welcome", {}), ("seating.free", {"name": "Ada"})]
        assert Event.objects.get(name="timeline.erased").actor == "timeline_erase"
        assert "nothing was left to erase" in called("accounts.user", str(ada.pk), "--apply", "--reason", "again")

    def test_erases_what_is_theirs_too(self, ada):
        called("accounts.user", str(ada.pk), "--owned", "--apply", "--cancel", "--reason", "x")

        assert said() == [("account.welcome", {}), ("seating.free", {})]

    def test_erases_nothing_where_something_of_theirs_is_in_the_way(self, ada):
        """What was blanked cannot be brought back: so all is looked at first."""
        before = said()

        with pytest.raises(
            CommandError, match=r"testapp.seat .+: entity: what is open of it needs what it holds: tasks 1, runs 0"
        ):
            called("accounts.user", str(ada.pk), "--owned", "--apply", "--reason", "x")
        with pytest.raises(InvalidInput, match="what is open of it needs what it holds: tasks 1, runs 0"):
            erase(ada, reason="x", owned=True)

        assert said() == before

    @pytest.mark.parametrize(
        ("options", "problem"),
        [
            (("accounts.user", "x"), "There is no such entity"),
            (("accounts.user", "7", "--apply"), "Say why: --reason"),
            (("accounts.user", "999", "--owned"), "is not there: what belongs to it cannot be found"),
        ],
    )
    def test_is_told_what_it_says_wrongly(self, ada, options, problem):
        with pytest.raises(CommandError, match=problem):
            called(*options)

    def test_finds_what_is_theirs_by_the_user_alone(self, ada):
        before = said()

        with pytest.raises(InvalidInput, match="owned: what belongs to somebody is found by the saved user"):
            erase(ref_of(ada), reason="x", owned=True)

        assert said() == before

    def test_is_of_somebody_who_was_deleted(self, ada):
        key = str(ada.pk)
        User.objects.filter(pk=ada.pk).delete()

        assert "scheduledtask" in called("accounts.user", key, "--apply", "--cancel", "--reason", "gone")

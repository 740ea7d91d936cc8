"""The commands people type."""

from __future__ import annotations

import json
import re
from datetime import timedelta
from uuid import UUID, uuid4

import pytest
from django.contrib.admin import site
from django.contrib.auth.models import Group
from django.core.management import CommandError, call_command
from django.utils import timezone

from project.accounts.models import User
from tests.testapp.models import Parcel
from tests.triggers import drop_trigger
from timeline import Timeline, after, task, tasks
from timeline.clocks import MachineTime
from timeline.models import Answer, Event, Identity, LogEntry, ScheduledTask, TimelineRun
from timeline.shortcuts import emit, hold, leave, schedule, start
from timeline.store.site import sign_of_poller
from timeline.testing import only_timelines
from timeline.worker import Worker


class Post(Timeline):
    """About parcels."""

    entity = "testapp.Parcel"

    @task()
    def deliver(self, parcel: Parcel) -> None: ...


class OfGroups(Timeline):
    """About what has a name that no other has."""

    entity = "auth.Group"

    @task()
    def greet(self, group: Group) -> None: ...


class Nightly(Timeline):
    """About no entity."""

    @task(after())
    def sweep(self) -> None: ...


def in_a_line(text):
    """Without the breaks of lines that are longer than the terminal."""
    return " ".join(text.split())


@pytest.fixture
def account(user, clock):
    """An account on trial since now."""
    user.trial_ends_at = clock.now + timedelta(days=30)
    user.save()
    emit("user.created", user)
    return user


class TestTimelineExplain:
    def test_shows_the_timeline_and_explains_each_task(self, account, capsys):
        call_command("timeline_explain", "accounts.user", str(account.pk))

        shown = in_a_line(capsys.readouterr().out)
        assert "○" in shown
        assert "┄" in shown
        assert "trial.check_script_usage" in shown
        assert (
            f"Remind that the trial ends (trial.remind) for accounts.user {account.pk} belongs to the run of trial"
            in shown
        )
        assert "5 days before trial_ends_at" in shown

    def test_shows_seconds_everywhere_where_things_are_of_one_minute(self, account, clock, capsys):
        clock.advance(seconds=60 - clock.now.second)
        account.trial_ends_at = clock.now + timedelta(seconds=10)
        account.save()

        call_command("timeline_explain", "accounts.user", str(account.pk))

        shown = capsys.readouterr().out
        assert re.findall(r"\d{4}-\d\d-\d\d \d\d:\d\d(?!:\d\d)", shown) == []
        assert f"now: {clock.now:%Y-%m-%d %H:%M:%S} UTC" in shown

    def test_can_be_kept_to_one_kind_of_task(self, account, capsys):
        call_command("timeline_explain", "accounts.User", str(account.pk), "--task", "trial.expire")

        shown = capsys.readouterr().out
        assert "End the trial (trial.expire) for accounts.user" in shown
        assert "(trial.remind) for accounts.user" not in shown

    def test_asks_about_which_one_where_only_a_model_is_named(self, account):
        with pytest.raises(CommandError, match=r"timeline_explain accounts\.user and its key"):
            call_command("timeline_explain", "accounts.user")

    @pytest.mark.parametrize(
        ("label", "key", "said"),
        [
            ("accounts.nobody", "1", "is no installed model"),
            ("accounts", "1", "is no installed model"),
            ("accounts.user", "x", "is no primary key"),
            ("accounts.user", "4711", "has no tasks"),
        ],
    )
    def test_says_what_is_wrong_with_the_entity(self, db, label, key, said):
        with pytest.raises(CommandError, match=said):
            call_command("timeline_explain", label, key)

    def test_takes_a_uuid_key_in_any_form(self, clock, capsys):
        parcel = Parcel.objects.create()
        with only_timelines(Post):
            schedule("post.deliver", parcel, at=clock.now)

            call_command("timeline_explain", "testapp.parcel", parcel.pk.hex)

        assert "post.deliver" in capsys.readouterr().out

    def test_takes_an_email_address(self, account, capsys):
        User.objects.create(
            email=f"n{account.email}", signed_up_at=account.signed_up_at, trial_ends_at=account.trial_ends_at
        )

        call_command("timeline_explain", account.email.upper())

        assert f"(trial.remind) for accounts.user {account.pk} belongs" in in_a_line(capsys.readouterr().out)

    def test_names_those_that_words_find(self, account):
        other = User.objects.create(
            email=f"n{account.email}", signed_up_at=account.signed_up_at, trial_ends_at=account.trial_ends_at
        )

        with pytest.raises(CommandError) as refused:
            call_command("timeline_explain", account.email[1:])

        assert str(refused.value).splitlines() == [
            f"Several are found by {account.email[1:]!r}. Say which:",
            f"  manage.py timeline_explain accounts.user {account.pk}  {account.email}",
            f"  manage.py timeline_explain accounts.user {other.pk}  {other.email}",
        ]

    def test_takes_what_a_model_has_beside_its_key(self, account, capsys):
        call_command("timeline_explain", "accounts.user", account.email)

        assert f"accounts.user {account.pk}\n" in capsys.readouterr().out

    def test_takes_a_natural_key_of_a_model_that_the_admin_does_not_have(self, db, capsys, monkeypatch):
        monkeypatch.delitem(site._registry, Group)
        group = Group.objects.create(name="printers")
        with only_timelines(OfGroups):
            schedule("of_groups.greet", group, at=timezone.now())

            call_command("timeline_explain", "printers")
            call_command("timeline_explain", "auth.group", "printers")

        assert capsys.readouterr().out.count(f"auth.group {group.pk}\n") == 2

    def test_takes_the_id_of_a_run(self, account, capsys):
        run = TimelineRun.objects.get()

        call_command("timeline_explain", str(run.pk))

        shown = capsys.readouterr().out
        assert "(trial.remind) for accounts.user" in shown
        assert "(trial.expire) for accounts.user" in shown

    def test_takes_the_id_of_a_task(self, account, capsys):
        row = ScheduledTask.objects.get(task_key="trial.expire")

        call_command("timeline_explain", row.pk.hex)

        shown = capsys.readouterr().out
        assert "(trial.expire) for accounts.user" in shown
        assert "trial.remind" not in shown

    def test_takes_a_timeline_about_no_entity(self, clock, capsys):
        with only_timelines(Nightly, Post):
            for day in range(25):
                start(Nightly, key=str(day))
                clock.run_due()
            start(Nightly, key="last", started_at=clock.now + timedelta(days=1))

            call_command("timeline_explain", "nightly")

        shown = capsys.readouterr().out
        assert shown.count("belongs to the run of nightly") == 21
        assert "It is due on" in shown

    @pytest.mark.parametrize(
        ("words", "said"),
        [
            ("post", "post is about testapp.parcel. Say about which one: timeline_explain testapp.parcel and its key."),
            ("nightly", "nightly has no tasks here."),
            ("nigthly", "Did you mean 'nightly'? 'nigthly' finds nothing."),
            ("nobody@example.com", "'nobody@example.com' finds nothing."),
            (str(UUID(int=7)), "There is no run and no task"),
        ],
    )
    def test_says_what_is_wrong_with_one_word(self, db, words, said):
        with only_timelines(Nightly, Post), pytest.raises(CommandError) as caught:
            call_command("timeline_explain", words)

        assert str(caught.value).startswith(said)


class TestTimelinePrune:
    def test_deletes_what_ended_long_ago_and_archives_it(self, account, clock, tmp_path, capsys):
        leave("trial", account, reason="gone")
        clock.advance(days=31)
        archive = tmp_path / "archive.jsonl"

        call_command("timeline_prune", "--days", "30", "--archive", str(archive))

        assert "Deleted: runs 1, tasks 2, log entries 2, holds 0, answers of the API 0." in capsys.readouterr().out
        kept = [json.loads(line)["model"] for line in archive.read_text().splitlines()]
        assert sorted(kept) == sorted(
            ["timeline.timelinerun", *["timeline.scheduledtask"] * 2, *["timeline.logentry"] * 2]
        )
        assert not TimelineRun.objects.exists()
        assert not ScheduledTask.objects.exists()
        assert not LogEntry.objects.exists()

    def test_keeps_what_is_open_or_young(self, account, clock):
        clock.advance(days=20)

        call_command("timeline_prune", "--days", "1")

        assert ScheduledTask.objects.count() == 2

    def test_forgets_what_requests_were_answered_over_a_day_ago(self, db, capsys):
        ages = [timedelta(hours=25)] * 1500 + [timedelta(hours=23)]
        Answer.objects.bulk_create(
            Answer(key=str(key), fingerprint="", status=200, headers={}, body="", made_at=MachineTime(-age))
            for key, age in enumerate(ages)
        )

        call_command("timeline_prune", "--days", "30")

        assert "answers of the API 1500." in capsys.readouterr().out
        assert Answer.objects.count() == 1

    def test_refuses_to_delete_everything(self, db):
        with pytest.raises(CommandError, match="at least 1"):
            call_command("timeline_prune", "--days", "0")


class TestTimelinePoll:
    def test_says_what_to_do_without_a_broker(self, db):
        with pytest.raises(CommandError, match="Set CELERY_BROKER_URL"):
            call_command("timeline_poll")


class TestTimelineAdopt:
    @pytest.fixture
    def copied(self, account, settings):
        """A copy of production's database, with a trial in it, on a machine that says it is staging."""
        Identity.objects.update(site="production")
        settings.TIMELINE = {"SITE": "staging"}

    def test_asks_what_is_to_become_of_what_is_open(self, copied):
        with pytest.raises(CommandError, match=r"Open in it are: runs 1, tasks 2. Say --clear .* or --keep"):
            call_command("timeline_adopt")

        assert Identity.objects.get().site == "production"
        assert ScheduledTask.objects.open().count() == 2

    def test_clears_a_copy(self, copied, capsys):
        call_command("timeline_adopt", clear=True)

        assert Identity.objects.get().site == "staging"
        assert not ScheduledTask.objects.open().exists()
        assert "Runs ended: 1, tasks cancelled: 2." in capsys.readouterr().out

    def test_keeps_what_is_open_where_only_the_name_is_new(self, copied, capsys):
        call_command("timeline_adopt", keep=True)

        assert Identity.objects.get().site == "staging"
        assert ScheduledTask.objects.open().count() == 2

    def test_needs_no_choice_where_nothing_is_open(self, db, settings):
        settings.TIMELINE = {"SITE": "staging"}

        call_command("timeline_adopt")

        assert Identity.objects.get().site == "staging"

    def test_changes_nothing_at_home(self, account, capsys):
        call_command("timeline_adopt", clear=True)

        assert ScheduledTask.objects.open().count() == 2
        assert "Nothing was changed" in capsys.readouterr().out


class TestWrongDatabase:
    """A production dump restored on a staging machine must not mail customers."""

    @pytest.fixture
    def restored(self, user, clock, settings, mailoutbox):
        user.trial_ends_at = clock.now - timedelta(days=1)
        user.save()
        emit("user.created", user)
        Identity.objects.update(site="production")
        settings.TIMELINE = {"SITE": "staging", "POLL_INTERVAL": timedelta(milliseconds=50)}
        return mailoutbox

    def states(self):
        return set(ScheduledTask.objects.values_list("state", "seq"))

    @pytest.mark.django_db(transaction=True)
    def test_is_refused_by_the_worker(self, restored):
        before = self.states()

        with pytest.raises(CommandError, match="timeline_adopt --clear"):
            call_command("timeline_worker")

        assert (restored, self.states()) == ([], before)

    @pytest.mark.django_db(transaction=True)
    def test_is_refused_by_celerys_poll_and_run(self, restored, caplog):
        before = self.states()
        task_ids = [str(task_id) for task_id in ScheduledTask.objects.values_list("pk", flat=True)]

        tasks.poll()
        tasks.run(task_ids=task_ids, token=str(uuid4()))

        assert caplog.text.count("timeline_adopt --clear") == 2
        assert (restored, self.states()) == ([], before)

    @pytest.mark.django_db(transaction=True)
    def test_is_worked_on_when_it_was_adopted(self, restored):
        """So it was the identity, and nothing else, that held them back."""
        call_command("timeline_adopt", keep=True, verbosity=0)
        ScheduledTask.objects.update(expires_at=None)  # The reminder is of the past.

        Worker("default").poll()

        assert {mail.to[0] for mail in restored} == {"ada@example.com"}


class TestTimelineRelabel:
    def test_lets_rows_name_the_model_as_it_is_now(self, account, capsys):
        for model in (Event, TimelineRun, ScheduledTask):
            model.objects.update(entity_label="shop.client")

        call_command("timeline_relabel", "shop.client", "accounts.user")

        assert "Relabelled: events 1, runs 1, tasks 2." in capsys.readouterr().out
        assert ScheduledTask.objects.for_entity(account).count() == 2

    def test_keeps_to_the_database_it_is_given(self, account):
        with pytest.raises(CommandError, match="'elsewhere' is no database here"):
            call_command("timeline_relabel", "accounts.user", "testapp.order", "--database", "elsewhere")

        assert ScheduledTask.objects.for_entity(account).count() == 2

    def test_says_what_is_wrong_with_a_label(self, account):
        with pytest.raises(CommandError, match=r"'shop\.client' is no installed model"):
            call_command("timeline_relabel", "accounts.user", "shop.client")


class TestTimelineDoctor:
    @pytest.fixture
    def polled(self, db):
        sign_of_poller(using="default")

    def test_ends_well_where_all_is_well(self, polled, capsys):
        call_command("timeline_doctor", "--database", "default", no_color=True)

        shown = capsys.readouterr().out
        assert shown.startswith("default: well\n  polled     2")
        assert "overdue    0" in shown

    def test_counts_what_is_on_hold(self, polled, make_task, capsys):
        make_task(state="available", scheduled_at=timezone.now())
        hold(task="trial.remind", reason="maintenance")

        call_command("timeline_doctor", "--database", "default", no_color=True)

        shown = capsys.readouterr().out
        assert shown.startswith("default: well\n")
        assert "on hold    1 due, by 1 hold\n" in shown

    def test_names_what_was_discarded_and_is_not_well(self, polled, make_task, capsys):
        at = timezone.now()
        make_task(state="discarded", scheduled_at=at, finished_at=at, reason_code="error", error="ValueError: hunter2")

        with pytest.raises(SystemExit) as ended:
            call_command("timeline_doctor", "--database", "default", no_color=True)

        shown = capsys.readouterr().out
        assert ended.value.code == 1
        assert shown.startswith("default: sick\n")
        assert "discarded  trial.remind 1 (ValueError)" in shown
        assert "redrive them" in shown
        assert "hunter2" not in shown

    def test_ends_with_status_1_and_the_remedy_where_something_is_wrong(self, polled, make_task, capsys):
        make_task(task_key="trial.gone")
        drop_trigger("guard_log")

        with pytest.raises(SystemExit) as ended:
            call_command("timeline_doctor", "--database", "default", no_color=True)

        shown = capsys.readouterr().out
        assert ended.value.code == 1
        assert shown.startswith("default: sick\n")
        assert "missing    guard_log" in shown
        assert "unknown    trial.gone" in shown
        assert "Run manage.py migrate --skip-checks." in shown

    @pytest.mark.django_db(databases=["default", "other"])
    def test_looks_at_all_databases_and_prints_plain_data(self, polled, capsys):
        with pytest.raises(SystemExit):
            call_command("timeline_doctor", "--json")

        found = json.loads(capsys.readouterr().out)
        assert [(each["database"], each["well"]) for each in found] == [("default", True), ("other", False)]
        assert found[1]["problems"][0].startswith("Nobody polls it.")

"""
A site that was filled by an earlier version, and upgraded: rows, guards, verbs and pages are as they were.

``version_0_2_0.json`` is what ``fill.py`` got out of that version: rows by table and column. A later version adds its own file,
and one line to ``VERSIONS``.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import suppress
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
from django.apps import apps
from django.contrib.contenttypes.models import ContentType
from django.core.management import call_command
from django.core.management.color import no_style
from django.db import DatabaseError, connection, transaction
from django.db.migrations.executor import MigrationExecutor
from django.urls import reverse

from project.accounts.models import User
from tests.asking import sample
from tests.testapp.models import Order, Trip
from tests.upgrading.databases import APPS, HOSTS, migrate, migrate_all
from tests.upgrading.schema import schema_of
from tests.upgrading.timelines import TIMELINES
from tests.webhooks.receiving import Receiver, Request
from timeline.dispatch.rescue import rescue
from timeline.engine.groups import run
from timeline.features.maintenance.prune import prune
from timeline.lifecycle import FINAL, OPEN, State
from timeline.models import BulkAction, Event, Figure, Hold, LogEntry, ScheduledTask, StepRecord, TimelineRun
from timeline.shortcuts import approve, cancel, emit, explain, move, redrive, release, run_now
from timeline.store.site import sign_of_poller
from timeline.store.triggers import missing_triggers
from timeline.testing import StoryClock, only_timelines
from timeline.webhooks.models import Delivery, Endpoint
from timeline.webhooks.models import State as Sent
from timeline.webhooks.secrets import decrypted
from timeline.webhooks.send import WebhookSender

FOLDER = Path(__file__).parent
VERSIONS = ("version_0_2_0",)


@pytest.fixture(scope="module", params=VERSIONS)
def made(request: pytest.FixtureRequest, django_db_setup: None, django_db_blocker: Any) -> Iterator[dict[str, Any]]:
    """What an earlier version had made, in a database that has been migrated from its tables to today's."""
    rows = json.loads((FOLDER / f"{request.param}.json").read_text(encoding="utf-8"))
    with django_db_blocker.unblock():
        try:
            with only_timelines(*TIMELINES):  # ``migrate`` writes the moves of machines that are known.
                for app in APPS:
                    migrate("zero", using=connection.alias, app=app)
                for app in APPS:
                    migrate(rows["migrations"][app], using=connection.alias, app=app)
                with only_timelines():  # Else a row of a machine would be made in its first state.
                    _load(rows)
                migrate_all(using=connection.alias)
                yield rows
        finally:
            migrate_all(using=connection.alias)
            call_command("flush", interactive=False, verbosity=0)
            ContentType.objects.clear_cache()


def _load(made: dict[str, Any]) -> None:
    """Write the rows into the tables as they were then."""
    then = MigrationExecutor(connection).loader.project_state(list(made["migrations"].items())).apps
    models = []
    with transaction.atomic(), connection.constraint_checks_disabled():
        for table in made["tables"]:
            label = table["model"]
            model = apps.get_model(label) if label in HOSTS else then.get_model(label)
            models.append(model)
            model._base_manager.all().delete()  # A migrated database has a name already, and moves of machines.
            fields = {field.attname: field for field in model._meta.concrete_fields}
            columns = [fields[column] for column in table["columns"]]
            model._base_manager.bulk_create(
                model(**{field.attname: field.to_python(value) for field, value in zip(columns, row, strict=True)})
                for row in table["rows"]
            )
        with connection.cursor() as cursor:
            for statement in connection.ops.sequence_reset_sql(no_style(), models):
                cursor.execute(statement)


@pytest.fixture
def site(made: dict[str, Any], db: None) -> dict[str, Any]:
    """The same, for a test that changes it."""
    return made


@pytest.fixture
def clock(site: dict[str, Any], tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[StoryClock]:
    """The moment at which the earlier version stopped."""
    monkeypatch.setenv("TEST_FOLDER", str(tmp_path))  # Where ad hoc tasks write.
    with StoryClock(datetime.fromisoformat(site["at"])) as clock:
        yield clock


def task_of(name: str, key: str = "trial.remind", **columns: Any) -> ScheduledTask:
    user = User.objects.get(email=f"{name}@example.com")
    return ScheduledTask.objects.for_entity(user).filter(**columns).get(task_key=key)


@pytest.fixture
def delivered(clock: StoryClock, settings: Any) -> list[Request]:
    """What an endpoint is sent that was waiting for it."""
    settings.TIMELINE_WEBHOOKS = settings.TIMELINE_WEBHOOKS | {"ALLOW_LOOPBACK": True}
    with Receiver() as receiver:
        Endpoint.objects.update(url=receiver.url)
        WebhookSender("default").drain()
        clock.set(clock.now + timedelta(minutes=1))  # One has failed once, and is tried again.
        WebhookSender("default").drain()
    return receiver.requests


def of_order(note: str, key: str) -> ScheduledTask:
    return ScheduledTask.objects.for_entity(Order.objects.get(note=note)).get(task_key=key)


def people() -> list[User]:
    """Those who have a timeline."""
    ids = TimelineRun.objects.filter(entity_label="accounts.user").values_list("entity_id", flat=True)
    return list(User.objects.filter(pk__in=map(int, ids)))


def run_message(pending: ScheduledTask, clock: StoryClock) -> list[ScheduledTask]:
    """Run a task as the message says that was sent for it."""
    token = pending.claim_token
    return run(task_ids=[pending.pk], token=token, clock=lambda: clock.now, using="default", worker="mail")


@pytest.mark.django_db(databases=["default", "other"])
class TestSchema:
    def test_is_that_of_a_new_database(self, site):
        assert schema_of("default") ^ schema_of("other") == set()


class TestRows:
    def test_are_all_there_with_each_column_as_it_was(self, site):
        for table in site["tables"]:
            model = apps.get_model(table["model"])
            fields = {field.attname: field for field in model._meta.concrete_fields}
            key = table["columns"].index(model._meta.pk.attname)

            there = {str(row["pk"]): row for row in model._base_manager.values("pk", *table["columns"])}

            assert there.keys() == {str(row[key]) for row in table["rows"]}
            for row in table["rows"]:
                for column, value in zip(table["columns"], row, strict=True):
                    assert there[str(row[key])][column] == fields[column].to_python(value), (table["model"], column)

    def test_were_of_all_kinds(self, site):
        """Else the other tests would tell little."""
        assert set(ScheduledTask.objects.values_list("state", flat=True)) == set(State)
        assert ScheduledTask.objects.filter(run=None).exists()
        assert ScheduledTask.objects.filter(revision=2).exists()
        assert {"exit", "operator", "moved", "error", "done"} <= set(
            ScheduledTask.objects.values_list("reason_code", flat=True)
        )
        assert {"", "paid", "closed", "moved away"} <= set(TimelineRun.objects.values_list("end_reason", flat=True))
        assert set(Delivery.objects.values_list("state", flat=True)) == {"waiting", "delivered", "cancelled"}
        assert set(StepRecord.objects.values_list("kind", flat=True)) == {"done", "wait", "over"}
        assert {hold.is_open for hold in Hold.objects.all()} == {True, False}
        assert ScheduledTask.objects.filter(slot__gt=0).exists()
        assert Figure.objects.exists()

    def test_give_what_they_are_by_their_log(self, site):
        for task in ScheduledTask.objects.exclude(seq=0):
            last = task.log.latest("seq")

            assert (last.seq, last.to_state) == (task.seq, task.state)

    def test_keep_all_constraints_of_today(self, site):
        for model in (Event, TimelineRun, ScheduledTask, LogEntry):
            for row in sample(model._base_manager.order_by("pk"), 10):
                row.validate_constraints()


class TestGuards:
    def test_all_stand(self, site):
        assert missing_triggers("default") == []

    def test_what_had_ended_does_not_change(self, site):
        for task in ScheduledTask.objects.filter(state__in=FINAL):
            with pytest.raises(DatabaseError, match="has ended does not change"), transaction.atomic():
                ScheduledTask.objects.filter(pk=task.pk).update(scheduled_at=task.scheduled_at + timedelta(days=1))

    def test_the_log_does_not_change(self, site):
        with pytest.raises(DatabaseError, match="the log does not change"), transaction.atomic():
            LogEntry.objects.update(seq=1000)

    def test_a_row_that_another_names_stays(self, site):
        for model in (TimelineRun, Event, ScheduledTask):
            with pytest.raises(DatabaseError):
                self.delete_all_of(model)

    def delete_all_of(self, model):
        with transaction.atomic():
            model._base_manager.all()._raw_delete("default")
            connection.check_constraints()

    def test_checks_find_nothing(self, site):
        sign_of_poller(using="default")

        call_command("check", databases=["default"], tags=["database"], fail_level="WARNING")


class TestVerbs:
    def test_cancel(self, clock):
        [task] = cancel([task_of("hal")], reason="asked", actor="ops")

        assert (task.state, task.log.latest("seq").from_state) == ("cancelled", "scheduled")

    def test_move(self, clock):
        [task] = move([task_of("hal")], at=clock.now + timedelta(days=2), reason="asked", actor="ops")

        assert task.scheduled_at == clock.now + timedelta(days=2)
        assert clock.advance(days=2, hours=1)[-1].state

    def test_redrive_of_what_was_discarded(self, clock, mailoutbox):
        [task] = redrive([task_of("fay", state="discarded")], reason="corrected", actor="ops")
        clock.run_due()

        task.refresh_from_db()
        assert (task.state, task.revision) == ("completed", 2)
        assert "fay@example.com" in [mail.to[0] for mail in mailoutbox]

    def test_what_was_ready_and_what_failed_before_runs(self, clock, mailoutbox):
        ready = ScheduledTask.objects.get(state="available", task_key="trial.remind")
        failed = task_of("ida", state="retryable")

        clock.advance(hours=1)

        assert [ScheduledTask.objects.get(pk=row.pk).state for row in (ready, failed)] == ["completed", "completed"]

    def test_what_a_process_held_is_given_back(self, clock):
        """Its lease has run out: the process is gone with the upgrade."""
        pending, active = (ScheduledTask.objects.get(state=state) for state in ("pending", "active"))

        rescued = rescue(now=clock.now, using="default")

        assert rescued.retried == [active]
        assert rescued.resend == [pending]

    def test_a_message_that_was_on_its_way_is_understood(self, clock, mailoutbox):
        pending = ScheduledTask.objects.get(state="pending")

        [done] = run_message(pending, clock)

        assert (done.pk, done.state) == (pending.pk, "completed")

    def test_all_that_was_ahead_comes(self, clock):
        rescue(now=clock.now, using="default")

        clock.advance(days=40)

        left = ScheduledTask.objects.filter(state__in=OPEN).exclude(task_key="counting.count")  # Each week another.
        assert {task.state for task in left} == {"pending"}  # Its message is with a broker, or is sent again.

    def test_an_exit_ends_a_run_that_was_there(self, clock):
        user = User.objects.get(email="hal@example.com")

        emit("payment.configured", user)

        run = TimelineRun.objects.get(entity_id=str(user.pk))
        assert (run.end_reason, task_of("hal").reason) == ("paid", "paid")

    def test_a_saved_date_moves_what_was_there(self, clock):
        user = User.objects.get(email="hal@example.com")
        user.trial_ends_at += timedelta(days=7)

        user.save()

        assert task_of("hal", "trial.expire").scheduled_at == user.trial_ends_at

    def test_what_was_scheduled_with_a_key_is_known_by_it(self, clock):
        known = Event.objects.filter(name="user.created").earliest("recorded_at")

        again = emit(known.name, User.objects.get(pk=known.entity_id), key=known.key)

        assert again.event == known

    def test_prune_deletes_what_ended_and_nothing_else(self, clock):
        open_before = set(
            ScheduledTask.objects.filter(run__ended_at=None, run__isnull=False).values_list("pk", flat=True)
        )

        while any(prune(ended_before=clock.now + timedelta(seconds=1), using="default")):
            pass

        left = TimelineRun.objects.exclude(ended_at=None)
        assert set(left.values_list("timeline", flat=True)) == {"counting"}  # The clock looks at the last one.
        assert open_before <= set(ScheduledTask.objects.values_list("pk", flat=True))

    def test_run_now_and_explain(self, clock):
        [task] = run_now([task_of("hal")], reason="asked", actor="ops")

        assert task.log.latest("seq").reason == "asked"
        assert "It is due" in explain(task)


class TestWhatWaits:
    """Rows of other features, left half done by the earlier version."""

    def test_a_handler_goes_on_after_its_step_with_the_event(self, clock):
        emit("address.confirmed", Order.objects.get(note="kept"))
        clock.run_due()

        done = of_order("kept", "sale.pack")
        assert done.result == {"label": f"label {done.entity_id}", "confirmed": True}
        assert done.attempt == 2

    def test_a_task_that_begins_with_a_wait_is_waked(self, clock):
        emit("order.paid", Order.objects.get(note="kept"))
        clock.run_due()

        assert of_order("kept", "sale.thank").result == {"paid": True}

    def test_an_approval_is_given(self, clock):
        approve(of_order("kept", "sale.refund"), actor="eva")
        clock.run_due()

        assert of_order("kept", "sale.refund").result == "refund.approved"

    def test_parcels_are_followed_and_a_series_goes_on(self, clock):
        clock.advance(days=22)

        asked = ScheduledTask.objects.for_entity(Order.objects.get(note="kept")).filter(task_key="sale.ask")
        assert of_order("kept", "sale.sum_up").state == "completed"
        assert set(asked.values_list("occurrence", "state")) == {(number, "completed") for number in "123"}

    def test_a_place_is_kept_until_its_task_has_ended(self, clock):
        both = ScheduledTask.objects.filter(task_key="charging.charge").order_by("pk")
        assert [(task.state, task.slot) for task in both] == [("retryable", 1), ("available", 0)]

        clock.advance(minutes=10)

        first, second = both.all()
        assert (first.state, second.state) == ("completed", "completed")
        assert first.finished_at <= second.started_at

    def test_a_hold_is_kept_and_released(self, clock):
        """It shifts: what was due moves on by the time it was held."""
        notes = ScheduledTask.objects.for_entity(Order.objects.get(note="held")).order_by("revision")
        clock.advance(hours=1)
        assert [task.state for task in notes.all()] == ["available"]

        release(Hold.objects.open().get(), actor="ops")
        clock.advance(days=1)

        assert [task.state for task in notes.all()] == ["cancelled", "completed"]

    def test_a_bulk_action_that_had_not_begun_is_carried_out(self, clock):
        before = of_order("moved", "crash_case.letter").scheduled_at

        clock.run_due()

        assert of_order("moved", "crash_case.letter").scheduled_at == before + timedelta(days=1)
        assert not BulkAction.objects.open().exists()

    def test_a_machine_moves_on(self, clock):
        clock.advance(days=3)

        assert set(Trip.objects.values_list("state", flat=True)) == {"ARRIVED"}
        assert not TimelineRun.objects.open().filter(timeline="journey").exists()

    def test_the_clock_starts_the_next_run(self, clock):
        ahead = ScheduledTask.objects.get(task_key="counting.count", state="scheduled")

        clock.advance(days=7)

        ahead.refresh_from_db()
        assert ahead.state == "completed"
        assert ScheduledTask.objects.filter(task_key="counting.count", state="scheduled").count() == 1

    def test_deliveries_are_sent_and_signed_by_the_secret_that_was_there(self, clock, delivered):
        told = Endpoint.objects.get(description="told")

        assert [request.data["state"] for request in delivered] == ["ARRIVED", "DELAYED"]
        assert all(request.verified_by(decrypted(told.secret)) for request in delivered)
        assert set(Delivery.objects.values_list("state", flat=True)) == {Sent.DELIVERED, Sent.CANCELLED}


class TestDoctor:
    def test_says_well_once_workers_have_done_what_was_due(self, clock, delivered, capsys):
        rescue(now=clock.now, using="default")
        clock.advance(days=2)
        run_message(ScheduledTask.objects.get(state="pending"), clock)
        sign_of_poller(using="default")

        with suppress(SystemExit):
            call_command("timeline_doctor", database="default")

        assert capsys.readouterr().out.startswith("default: well")


class TestPages:
    @pytest.fixture
    def staff(self, client, site, clock):
        boss = User.objects.create(
            email="boss@example.com", is_staff=True, is_superuser=True, signed_up_at=clock.now, trial_ends_at=clock.now
        )
        client.force_login(boss)
        return client

    def test_the_admin_lists_the_tasks(self, staff):
        page = staff.get(reverse("admin:timeline_scheduledtask_changelist"), {"state": "all"})

        assert page.status_code == 200
        assert "hal@example.com" in page.content.decode()

    def test_the_admin_shows_a_task_with_its_story(self, staff):
        shown = sample(ScheduledTask.objects.order_by("state", "task_key", "pk"), 3)
        assert {task.state for task in shown} >= FINAL
        for task in shown:
            page = staff.get(reverse("admin:timeline_scheduledtask_change", args=[task.pk]))

            assert page.status_code == 200
            assert task.task_key in page.content.decode()
            if task.reason:
                assert task.reason in page.content.decode()

    def test_the_admin_shows_each_timeline(self, staff):
        for user in people():
            page = staff.get(
                reverse("admin:timeline_scheduledtask_entity"), {"label": "accounts.user", "id": user.pk}, follow=True
            )

            assert page.status_code == 200
            assert user.email in page.content.decode()

    def test_the_api_lists_all_tasks_and_shows_each(self, staff):
        found, url = [], "/api/v1/tasks/?limit=100"
        while url:
            answer = staff.get(url).json()
            found, url = [*found, *answer["results"]], answer["next"]

        assert {row["id"] for row in found} == {str(pk) for pk in ScheduledTask.objects.values_list("pk", flat=True)}
        for task in ScheduledTask.objects.all():
            answer = staff.get(f"/api/v1/tasks/{task.pk}/")
            assert (answer.status_code, answer.json()["state"]) == (200, task.state)

    def test_the_api_shows_each_timeline(self, staff):
        for user in people():
            answer = staff.get(f"/api/v1/users/{user.pk}/tasks/")
            rows = [row["id"] for part in ("upcoming", "past") for row in answer.json()[part]["results"]]

            assert answer.status_code == 200
            assert set(rows) == {str(task.pk) for task in ScheduledTask.objects.for_entity(user)}

"""A host that has switched autocommit off: what a worker wrote would be lost, after the mail is out."""

from __future__ import annotations

from datetime import timedelta

import pytest
from django.core.management import CommandError, call_command
from django.db import connection, transaction
from django.utils import timezone

from tests.processes import DEADLINE, kill, start_process
from tests.testapp.models import Order
from timeline.exceptions import NoAutocommit
from timeline.lifecycle import State
from timeline.models import ScheduledTask
from timeline.shortcuts import schedule
from timeline.store.site import confirm_site, sign_of_poller


@pytest.mark.django_db(transaction=True)
class TestWorkerWithoutAutocommit:
    @pytest.fixture
    def worker(self, tmp_path):
        """Start a worker with ``AUTOCOMMIT`` off."""
        started = []

        def start():
            command = ["manage", "timeline_worker", "--name", "first"]
            started.append(start_process(tmp_path, "first", *command, TEST_AUTOCOMMIT="off"))
            return started[0]

        yield start
        for process in started:
            kill(process)

    def test_refuses_says_why_and_enters_no_handler(self, worker, tmp_path):
        task = schedule("crash_case.plain_write", Order.objects.create(), at=timezone.now() - timedelta(hours=1)).task

        status = worker().wait(timeout=DEADLINE)

        assert status == 1
        assert "AUTOCOMMIT" in (tmp_path / "first.log").read_text()
        assert not (tmp_path / "entered").exists()
        task.refresh_from_db()
        assert (task.state, task.attempt) == (State.AVAILABLE, 0)


class TestWork:
    @pytest.mark.parametrize("look", [confirm_site, sign_of_poller])
    def test_is_refused_where_the_settings_say_so(self, db, monkeypatch, look):
        monkeypatch.setitem(connection.settings_dict, "AUTOCOMMIT", False)

        with pytest.raises(NoAutocommit, match=r"DATABASES\['default'\]"):
            look(using="default")

    @pytest.mark.django_db(transaction=True)
    def test_is_refused_where_a_handler_left_it_off(self):
        transaction.set_autocommit(False)
        try:
            with pytest.raises(NoAutocommit):
                confirm_site(using="default")
        finally:
            transaction.rollback()
            transaction.set_autocommit(True)

    def test_is_not_refused_within_a_transaction(self, db):
        with transaction.atomic():
            confirm_site(using="default")

    def test_is_refused_by_the_command(self, db, monkeypatch, make_task, now):
        make_task(scheduled_at=now)
        monkeypatch.setitem(connection.settings_dict, "AUTOCOMMIT", False)

        with pytest.raises(CommandError, match="AUTOCOMMIT"):
            call_command("timeline_worker")

        assert ScheduledTask.objects.get().state == State.SCHEDULED

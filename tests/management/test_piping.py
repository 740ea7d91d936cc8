"""Commands that print much, into a pipe whose reader has gone."""

from __future__ import annotations

import os
from contextlib import contextmanager, redirect_stdout
from datetime import timedelta

import pytest
from django.db import connections

from timeline.management.commands import timeline_doctor, timeline_explain
from timeline.shortcuts import emit


@contextmanager
def into_a_broken_pipe():
    """Standard output as under ``| head`` once that has ended."""
    reader, writer = os.pipe()
    os.close(reader)
    with os.fdopen(writer, "w") as piped, redirect_stdout(piped):
        yield piped


@pytest.fixture(autouse=True)
def _connections_stay(monkeypatch):
    """The command ends its process; the test does not."""
    monkeypatch.setattr(connections, "close_all", lambda: None)


@pytest.fixture
def account(user, clock):
    """An account whose timeline has a story."""
    user.trial_ends_at = clock.now + timedelta(days=30)
    user.save()
    emit("user.created", user)
    return user


class TestABrokenPipe:
    @pytest.mark.parametrize("verb", ["timeline_explain", "timeline_doctor"])
    def test_ends_the_command_without_a_traceback(self, verb, account):
        command = {"timeline_explain": timeline_explain, "timeline_doctor": timeline_doctor}[verb]
        options = {
            "timeline_explain": ["accounts.user", str(account.pk)],
            "timeline_doctor": ["--database", "default"],
        }[verb]

        with into_a_broken_pipe() as piped:
            with pytest.raises(SystemExit) as ended:
                command.Command().run_from_argv(["manage.py", verb, *options])
            piped.flush()  # As Python does at its end.

        assert ended.value.code == 141

    def test_leaves_a_reader_that_stays_all_of_it(self, account, capfd):
        timeline_explain.Command().run_from_argv(["manage.py", "timeline_explain", "accounts.user", str(account.pk)])

        assert "trial.expire" in capfd.readouterr().out

    def test_leaves_the_doctor_its_status(self, account):
        with pytest.raises(SystemExit) as ended:
            timeline_doctor.Command().run_from_argv(["manage.py", "timeline_doctor", "--database", "default"])

        assert ended.value.code == 1

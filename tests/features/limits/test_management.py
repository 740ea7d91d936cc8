"""The command that shows limits, and opens one."""

from __future__ import annotations

import json

import pytest
from django.core.management import CommandError, call_command

from timeline.lifecycle import State


class TestLimits:
    @pytest.fixture
    def closed(self, make_task):
        make_task(state=State.AVAILABLE, limit_key="settlement", held_until="opened")
        return make_task(state=State.DISCARDED, attempt=1, limit_key="settlement", slot=1, held_until="opened")

    def test_shows_what_is_held_and_what_waits(self, closed, capsys):
        call_command("timeline_limits")

        said = capsys.readouterr().out
        assert "settlement: 1 task waits" in said
        assert f"1  {closed.task_key}  {closed.pk}  discarded" in said
        assert "CLOSED" in said

    def test_gives_plain_data(self, closed, capsys):
        call_command("timeline_limits", "--json")

        [limit] = json.loads(capsys.readouterr().out)
        assert (limit["key"], limit["waiting"], limit["closed"]) == ("settlement", 1, True)
        assert limit["places"][0]["task_id"] == str(closed.pk)

    def test_opens_one(self, closed, capsys):
        call_command("timeline_limits", "--open", "settlement", "--reason", "paid by hand", "--actor", "ada")

        closed.refresh_from_db()
        assert "1 place is free." in capsys.readouterr().out
        assert closed.slot == 0

    def test_refuses_without_a_reason_and_what_is_not_closed(self, closed):
        with pytest.raises(CommandError, match="reason"):
            call_command("timeline_limits", "--open", "settlement")
        with pytest.raises(CommandError, match="not closed"):
            call_command("timeline_limits", "--open", "other", "--reason", "why")

    @pytest.mark.django_db
    def test_says_that_there_is_nothing(self, capsys):
        call_command("timeline_limits")

        assert "Nothing holds a place" in capsys.readouterr().out

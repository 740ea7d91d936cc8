"""``timeline_dead_letters``: groups, and a group run again."""

from __future__ import annotations

import json
from datetime import timedelta

import pytest
from django.core.management import CommandError, call_command

from timeline.lifecycle import State
from timeline.models import ScheduledTask

ONE = "1" * 16


@pytest.fixture
def dead(make_task, clock):
    rows = [make_task(state=State.DISCARDED, error="ValueError: no\nmore") for _ in range(3)]
    ScheduledTask.objects.update(fingerprint=ONE)
    return rows


class TestTimelineDeadLetters:
    def test_shows_a_line_a_group(self, dead, capsys):
        call_command("timeline_dead_letters")

        [_heads, line] = capsys.readouterr().out.strip().splitlines()
        assert line.split()[:3] == [ONE, "trial.remind", "3"]
        assert line.endswith("ValueError: no more")

    def test_says_that_there_are_none(self, db, capsys):
        call_command("timeline_dead_letters")

        assert capsys.readouterr().out.strip() == "There are no dead letters."

    def test_prints_plain_data(self, dead, capsys):
        call_command("timeline_dead_letters", ONE, "--json")

        [group] = json.loads(capsys.readouterr().out)
        assert (group["group"], group["count"], group["sample"]) == (ONE, 3, str(max(row.pk for row in dead)))

    def test_redrives_a_group_spread_over_a_time(self, dead, clock, capsys):
        call_command("timeline_dead_letters", ONE, "--redrive", "mended", "--spread", "01:00:00", "--actor", "ada")

        again = ScheduledTask.objects.filter(previous__in=dead)
        assert capsys.readouterr().out.strip() == "3 tasks run again."
        assert {(row.reason, row.actor) for row in again} == {("mended", "ada")}
        assert all(clock.now <= row.scheduled_at < clock.now + timedelta(hours=1) for row in again)

    @pytest.mark.parametrize(
        ("given", "said"),
        [
            (["nothing"], "no dead letters of the group nothing"),
            (["--redrive", "mended"], "Name the group"),
            ([ONE, "--spread", "01:00:00"], "give the reason"),
            ([ONE, "--redrive", "mended", "--spread", "soon"], "'soon' is no duration"),
            ([ONE, "--redrive", "mended", "--spread", "40 00:00:00"], "30 days at most"),
        ],
    )
    def test_refuses_what_it_cannot_do(self, dead, given, said):
        with pytest.raises(CommandError, match=said):
            call_command("timeline_dead_letters", *given)

        assert ScheduledTask.objects.count() == 3

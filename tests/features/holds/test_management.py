"""``timeline_hold``: what is on hold, and something put on hold or released."""

from __future__ import annotations

import json
from datetime import timedelta

import pytest
from django.core.management import CommandError, call_command

from timeline.features.holds.verbs import park
from timeline.models import Hold

pytestmark = pytest.mark.django_db


class TestTimelineHold:
    def test_says_that_nothing_is_on_hold(self, capsys):
        call_command("timeline_hold")

        assert capsys.readouterr().out.strip() == "Nothing is on hold."

    @pytest.mark.parametrize(
        ("options", "scope", "what"),
        [
            (["--task", "trial.remind"], "task", "trial.remind"),
            (["--timeline", "trial"], "timeline", "trial"),
            (["--queue", "default"], "queue", "queue default"),
            (["--tag", "mail"], "tag", "tag mail"),
            (["--everything"], "everything", "everything there is"),
        ],
    )
    def test_puts_something_on_hold_and_shows_it(self, clock, capsys, options, scope, what):
        call_command("timeline_hold", *options, "--reason", "maintenance", "--actor", "ada")

        made = Hold.objects.get()
        shown = capsys.readouterr().out.strip()
        assert (made.scope, made.reason, made.actor, made.then) == (scope, "maintenance", "ada", "run")
        assert shown.startswith(f"{made.pk}  On hold since ")
        assert f"({what}), by ada: maintenance. Then what is due runs." in shown
        call_command("timeline_hold")
        assert capsys.readouterr().out.strip() == shown

    def test_ends_a_reason_that_has_a_full_stop_with_one(self, clock, capsys):
        call_command("timeline_hold", "--everything", "--reason", "They dispute the bill.", "--actor", "ada")

        assert "by ada: They dispute the bill. Then what is due runs." in capsys.readouterr().out

    def test_holds_an_entity_until_a_moment(self, clock, user, capsys):
        call_command(
            "timeline_hold",
            *("--entity", "accounts.user", str(user.pk), "--until", "2999-03-02T08:00:00Z"),
            *("--then", "expire", "--reason", "a dispute", "--json"),
        )

        [shown] = json.loads(capsys.readouterr().out)
        assert (shown["scope"], shown["entity_id"], shown["then"]) == ("entity", str(user.pk), "expire")
        assert shown["until"] == "2999-03-02T08:00:00Z"

    def test_releases(self, clock, capsys):
        call_command("timeline_hold", "--everything", "--reason", "maintenance")
        made = Hold.objects.get()
        capsys.readouterr()

        call_command("timeline_hold", "--release", str(made.pk), "--actor", "bob")

        made.refresh_from_db()
        assert made.released_by == "bob"
        assert "Released on " in capsys.readouterr().out

    def test_releases_what_a_brake_has_stopped_with_a_name_and_a_reason(self, now, capsys):
        made = park("trial.remind", most=3, within=timedelta(hours=1), now=now, using="default")
        call_command("timeline_hold")
        assert "its brake has stopped it" in capsys.readouterr().out

        with pytest.raises(CommandError, match="say who decided, and why"):
            call_command("timeline_hold", "--release", str(made.pk), "--actor", "bob")
        call_command("timeline_hold", "--release", str(made.pk), "--actor", "bob", "--reason", "they left", "--json")

        [shown] = json.loads(capsys.readouterr().out)
        assert (shown["released_by"], shown["release_reason"], shown["park_above"]) == ("bob", "they left", 3)

    @pytest.mark.parametrize(
        ("options", "said"),
        [
            (["--task", "trial.remind"], "--reason"),
            (["--task", "trial.nothing", "--reason", "x"], "not registered"),
            (["--entity", "accounts.user", "0", "--reason", "x"], "not in the database"),
            (["--entity", "accounts.user", "ada", "--reason", "x"], "not in the database"),
            (["--entity", "accounts.user", "9" * 40, "--reason", "x"], "not in the database"),
            (["--entity", "no.model", "1", "--reason", "x"], "not in the database"),
            (["--entity", "no model", "", "--reason", "x"], "not in the database"),
            (["--everything", "--reason", "x", "--until", "tomorrow"], "--until"),
            (["--everything", "--reason", "x", "--until", "2026-02-31T00:00:00Z"], "--until"),
            (["--everything", "--reason", "x", "--until", "2026-02-01T00:00:00"], "--until"),
            (["--everything", "--reason", "x", "--until", "2020-02-01T00:00:00Z"], "until"),
            (["--release", "x"], "no hold"),
            (["--release", "01900000-0000-7000-8000-000000000000"], "no hold"),
        ],
    )
    def test_refuses_what_cannot_be_done(self, options, said):
        with pytest.raises(CommandError, match=said):
            call_command("timeline_hold", *options)

        assert not Hold.objects.exists()

"""Commands speak the site's language; what programs read of them stays as it is."""

from __future__ import annotations

import json
from datetime import timedelta

import pytest
from django.core.management import CommandError, call_command
from django.utils import translation

from timeline.models import Identity, ScheduledTask
from timeline.shortcuts import emit
from timeline.store.site import sign_of_poller


@pytest.fixture
def account(user, clock):
    """An account on trial since now."""
    user.trial_ends_at = clock.now + timedelta(days=30)
    user.save()
    emit("user.created", user)
    return user


@pytest.fixture
def _german_site(settings):
    settings.LANGUAGE_CODE = "de"


@pytest.mark.usefixtures("_german_site")
class TestOutput:
    def test_is_in_the_language_of_the_site(self, db, capsys):
        call_command("timeline_prune", "--days", "30")

        assert (
            capsys.readouterr().out
            == "Gelöschte Läufe: 0, Aufgaben: 0, Einträge im Protokoll: 0, Halte: 0, Antworten der API: 0.\n"
        )

    def test_of_explain_is_german_throughout(self, account, capsys):
        call_command("timeline_explain", "accounts.user", str(account.pk))

        shown = capsys.readouterr().out
        assert "  ── jetzt: 20" in shown
        assert "  trial.expire              geplant\n" in shown
        assert "absehbar: 2 Tage nach Erledigung von expire" in " ".join(shown.split())
        assert ", mit dem Ereignis Ein Konto wurde eröffnet (user.created)." in " ".join(shown.split())

    def test_of_the_doctor_is_german_and_its_data_is_not(self, db, capsys):
        sign_of_poller(using="default")

        call_command("timeline_doctor", "--database", "default", no_color=True)
        shown = capsys.readouterr().out
        call_command("timeline_doctor", "--database", "default", "--json")
        [data] = json.loads(capsys.readouterr().out)

        assert shown.startswith("default: gesund\n  abgefragt   2")
        assert [line.split()[0].lower() for line in shown.splitlines()[1:]] == [
            "abgefragt",
            "überfällig",
            "beansprucht",
            "aktiv",
            "hängend",
        ]
        assert (data["well"], data["is_polled"], data["problems"]) == (True, True, [])

    def test_of_errors_too(self, account, settings):
        settings.TIMELINE = {"SITE": "staging"}
        Identity.objects.update(site="production")

        with pytest.raises(CommandError, match=r"die der Site 'production'\. In ihr sind offen: Läufe 1, Aufgaben 2"):
            call_command("timeline_adopt")
        with pytest.raises(CommandError, match="Die Datenbank 'default' ist die der Site 'production', und TIMELINE"):
            call_command("timeline_worker")
        with pytest.raises(CommandError, match=r"'shop\.client' ist kein installiertes Modell"):
            call_command("timeline_relabel", "accounts.user", "shop.client")

    def test_leaves_english_on_the_rows(self, account, settings):
        settings.TIMELINE = {"SITE": "staging"}
        Identity.objects.update(site="production")

        call_command("timeline_adopt", clear=True)

        assert set(ScheduledTask.objects.values_list("reason", flat=True)) == {
            "the database was taken over by the site 'staging''s"
        }


class TestWithin:
    def test_another_language_is_the_one_that_is_active(self, db, capsys):
        with translation.override("de"):
            call_command("timeline_prune", "--days", "30")
        call_command("timeline_prune", "--days", "30")

        german, english = capsys.readouterr().out.splitlines()
        assert german.startswith("Gelöschte Läufe: 0")
        assert english == "Deleted: runs 0, tasks 0, log entries 0, holds 0, answers of the API 0."

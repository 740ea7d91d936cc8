"""Problems and reasons in the language that a request asks for."""

from __future__ import annotations

from datetime import timedelta

import pytest
from django.utils import translation

from tests.api.conftest import ROOT
from timeline import reasons
from timeline.lifecycle import State, Trigger
from timeline.store.transition import Write, apply


@pytest.fixture
def in_german(by_staff, settings):
    """Ask as staff who read German: ``in_german.get("tasks/")``."""
    settings.TIMELINE = {**settings.TIMELINE, "RECORDED_EVENTS": ["day.begun", "day.closed"]}
    settings.MIDDLEWARE = [*settings.MIDDLEWARE, "django.middleware.locale.LocaleMiddleware"]
    by_staff.client.defaults["HTTP_ACCEPT_LANGUAGE"] = "de"
    yield by_staff
    translation.deactivate()


class TestProblems:
    def test_of_what_is_not_possible_are_in_german(self, in_german, about, ada):
        row = about("account.greet", ada, state=State.CANCELLED)

        told = in_german.post(f"tasks/{row.pk}/cancel/", {"reason": "they asked"}).json()

        assert told["detail"] == (
            f"state: Aufgabe {row.pk} ist im Zustand „abgesagt“, der „absagen“ nicht zulässt. {told['remedy']}"
        )
        assert told["remedy"] == "Sie ist beendet; setzen Sie sie neu an, so entsteht eine neue Fassung."

    def test_keep_what_programs_read(self, in_german, about, ada):
        row = about("account.greet", ada, state=State.CANCELLED)

        told = in_german.post(f"tasks/{row.pk}/cancel/", {"reason": "they asked"}).json()

        assert (told["type"], told["title"]) == ("urn:timeline:transition-not-allowed", "Transition not allowed")

    def test_of_used_keys_are_in_german(self, in_german):
        in_german.post("events/", {"name": "day.closed", "key": "k", "payload": {}})

        told = in_german.post("events/", {"name": "day.closed", "key": "k", "payload": {"of": 1}}).json()

        assert told["detail"] == (
            "key: 'k' wurde für das Ereignis 'day.closed' (das System) schon verwendet, und etwas war anders: Nutzdaten. "
            "Verwenden Sie einen anderen Schlüssel."
        )

    def test_of_reused_keys_are_in_german(self, in_german):
        headers = {"Idempotency-Key": "k"}
        for name in ("day.begun", "day.closed"):
            answer = in_german.client.post(
                f"{ROOT}/events/", {"name": name}, content_type="application/json", headers=headers
            )

        assert answer.json()["detail"] == (
            "Idempotency-Key: kam schon mit einer anderen Anfrage: Methode, Adresse oder Inhalt waren anders. "
            "Senden Sie einen neuen Schlüssel, oder noch einmal dieselbe Anfrage."
        )

    @pytest.mark.parametrize(
        ("path", "said"),
        [
            ("tasks/?colour=red", "Unbekannter Parameter. Bekannt: "),
            ("tasks/?limit=0", "Geben Sie eine Zahl von 1 bis 100 an."),
            ("tasks/?due_after=soon", "Geben Sie einen Zeitpunkt mit seinem Abstand von UTC an"),
            ("me/tasks/?part=all", "Geben Sie eines von diesen an: upcoming, foreseen, past."),
            ("nothing/", "Hier ist nichts, oder nichts, das Sie sehen dürfen."),
        ],
    )
    def test_of_requests_are_in_german(self, in_german, path, said):
        assert in_german.client.get(f"{ROOT}/{path}").json()["detail"].startswith(said)

    def test_are_in_english_for_others(self, by_staff):
        assert by_staff.get("tasks/", limit="0").json()["detail"] == "Give a number from 1 to 100."


class TestReasons:
    @pytest.fixture
    def row(self, about, ada, now):
        """A task that ended too late, as the system says."""
        row = about("account.greet", ada, state=State.SCHEDULED)
        late = reasons.TOO_LATE(at=now + timedelta(hours=1))
        apply([Write(task=row, triggers=(Trigger.CANCEL,), reason=late)], now=now, using="default")
        return row

    def test_of_the_system_are_in_german(self, in_german, row):
        told = in_german.get(f"tasks/{row.pk}/").json()

        assert told["reason"] == "zu spät: Sie sollte vor 2026-03-01 10:00 UTC laufen"
        assert told["reason_code"] == "expired"

    def test_of_people_stay_as_they_were_written(self, in_german, about, ada):
        row = about("account.greet", ada, state=State.CANCELLED, reason="would have run")

        assert in_german.get(f"tasks/{row.pk}/").json()["reason"] == "would have run"

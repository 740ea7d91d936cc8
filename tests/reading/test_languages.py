"""A task's story in the present language."""

from __future__ import annotations

import re
from datetime import timedelta

import pytest
from django.utils import translation

from timeline.models import ScheduledTask
from timeline.reading.text_pictures import picture
from timeline.shortcuts import emit, explain, move


@pytest.fixture
def told(user, clock):
    """Explain a task of a trial that began 26 days ago: ``told("trial.remind", "de")``."""
    user.trial_ends_at = clock.now + timedelta(days=30)
    user.save()
    emit("user.created", user)
    clock.advance(days=26)

    def tell(task_key, language):
        with translation.override(language):
            return explain(ScheduledTask.objects.get(task_key=task_key))

    return tell


@pytest.fixture
def prolonged(user, clock):
    """A trial that was prolonged after it had begun."""
    user.trial_ends_at = clock.now + timedelta(days=30)
    user.save()
    emit("user.created", user)
    user.trial_ends_at = clock.now + timedelta(days=60)
    user.save()
    return ScheduledTask.objects.get(task_key="trial.expire")


class TestExplain:
    def test_is_in_german_where_that_is_the_language(self, told):
        past, ahead = told("trial.remind", "de"), told("trial.expire", "de")

        assert "5 Tage vor trial_ends_at" in past
        assert re.search(r"Sie wurde erledigt am \d{4}-", past)
        assert (
            "Wird sie erledigt, folgt Nachsehen, ob das Skript noch benutzt wird (trial.check_script_usage)." in ahead
        )
        assert " is " not in f"{past} {ahead}"

    def test_is_in_english_otherwise(self, told):
        assert "5 days before trial_ends_at" in told("trial.remind", "en")

    def test_names_the_event_in_the_present_language(self, told):
        assert (
            told("trial.remind", "de")
            .splitlines()[0]
            .endswith(", mit dem Ereignis Ein Konto wurde eröffnet (user.created).")
        )

    def test_tells_the_reasons_of_the_system_in_the_present_language(self, prolonged):
        with translation.override("de"):
            story = explain(prolonged)

        assert prolonged.reason == "its anchor (trial_ends_at) or its schedule changed"
        assert "UTC: ihr Anker (trial_ends_at) oder ihre Planung hat sich geändert." in story
        assert story.count("verschoben") == 1

    def test_leaves_the_reasons_of_people_as_they_are(self, prolonged):
        [moved] = move(prolonged, at=prolonged.scheduled_at + timedelta(days=1), reason="would have run", actor="ada")

        with translation.override("de"):
            assert "would have run, von ada" in explain(moved)


class TestPicture:
    def test_is_in_the_present_language(self, prolonged, user, clock):
        with translation.override("de"):
            drawn = picture(user, now=clock.now, using="default")

        assert "── jetzt: 20" in drawn
        assert "geplant (sie wurde verschoben:" in drawn
        assert "absehbar: 2 Tage nach Erledigung von expire" in drawn

"""A task's story in the present language."""

from __future__ import annotations

from datetime import timedelta

import pytest
from django.utils import translation

from timeline.models import ScheduledTask
from timeline.shortcuts import emit, explain


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


class TestExplain:
    def test_is_in_german_where_that_is_the_language(self, told):
        past, ahead = told("trial.remind", "de"), told("trial.expire", "de")

        assert "5 Tage vor trial_ends_at" in past
        assert "Sie wurde erledigt am 2026-" in past
        assert "Wird sie erledigt, folgt trial.check_script_usage." in ahead
        assert " is " not in f"{past} {ahead}"

    def test_is_in_english_otherwise(self, told):
        assert "5 days before trial_ends_at" in told("trial.remind", "en")

"""What is said where the settings are wrong."""

from __future__ import annotations

from datetime import timedelta

import pytest
from django.core.checks import run_checks
from django.test import modify_settings

from tests.django_tasks.framework import InvalidTaskBackend, default_task_backend, task_backends
from timeline import Retry
from timeline.django_tasks import TimelineBackend
from timeline.django_tasks.functions import kinds_of

BACKEND = "timeline.django_tasks.TimelineBackend"


def made(settings, **options):
    settings.TASKS = {"default": {"BACKEND": BACKEND, "OPTIONS": options}}
    return task_backends["default"]


class TestBackend:
    def test_can_do_all_that_the_framework_knows(self):
        names = ("supports_defer", "supports_async_task", "supports_get_result", "supports_priority")

        assert {getattr(default_task_backend, name) for name in names} == {True}
        assert isinstance(task_backends["default"], TimelineBackend)


class TestOptions:
    @pytest.mark.parametrize(
        ("options", "said"),
        [
            ({"retires": 3}, "has the option 'retires', which is not known."),
            ({"timeouts": 3}, "has the option 'timeouts', which is not known. Did you mean 'timeout'?"),
            ({"retry": 3}, "has retry = 3. Give a dict"),
            ({"retry": {"max_attempt": 3}}, "Did you mean 'max_attempts'?"),
            ({"modules": "shop.jobs"}, "has modules = 'shop.jobs'. Name them in a list."),
        ],
    )
    def test_that_are_wrong_are_named(self, settings, options, said):
        with pytest.raises(InvalidTaskBackend, match="The backend 'default' in TASKS") as raised:
            made(settings, **options)

        assert said in str(raised.value)

    @pytest.mark.parametrize(
        ("options", "said"),
        [
            ({"timeout": 3}, "has timeout = 3. Use a positive timedelta"),
            ({"retry": {"max_attempts": 0}}, "retry has max_attempts=0."),
            ({"atomic": "perhaps"}, "has atomic = 'perhaps'."),
        ],
    )
    def test_of_tasks_are_checked_as_those_of_a_timeline_are(self, settings, options, said):
        with pytest.raises(InvalidTaskBackend, match=said.replace(".", r"\.")):
            kinds_of(made(settings, **options))

    def test_take_a_retry_of_a_timeline(self, settings):
        backend = made(settings, retry=Retry(max_attempts=7), timeout=timedelta(seconds=1), expires=timedelta(hours=1))

        assert backend.declared.retry.max_attempts == 7
        assert (backend.declared.timeout, backend.declared.expires) == (timedelta(seconds=1), timedelta(hours=1))


class TestCheck:
    @pytest.mark.django_db(databases=["default", "other"])  # Other checks ask them.
    def test_finds_nothing_wrong_here(self):
        assert not [each for each in run_checks() if each.id.startswith("timeline_django_tasks")]

    def test_says_which_app_is_missing(self):
        with modify_settings(INSTALLED_APPS={"remove": ["timeline.django_tasks"]}):
            [found] = default_task_backend.check()

        assert (found.id, found.hint) == (
            "timeline_django_tasks.E001",
            "Add 'timeline.django_tasks' to INSTALLED_APPS.",
        )

    def test_says_which_queue_is_named_too_long(self, settings):
        settings.TASKS = {"default": {"BACKEND": BACKEND, "QUEUES": ["default", "x" * 51]}}

        [found] = default_task_backend.check()

        assert found.id == "timeline_django_tasks.E002"

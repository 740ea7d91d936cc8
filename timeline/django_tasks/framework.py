"""The framework: ``django.tasks`` of Django 6; before that the package ``django-tasks``, which has the same."""

from __future__ import annotations

from importlib import import_module
from typing import Any, Final

import django
from django.core.exceptions import ImproperlyConfigured

_IS_DJANGOS: Final = django.VERSION >= (6, 0)
_HOME: Final = "django.tasks" if _IS_DJANGOS else "django_tasks"


def _part(name: str) -> Any:
    try:
        return import_module(name)
    except ModuleNotFoundError as error:
        if error.name != "django_tasks":
            raise
        said = "timeline.django_tasks needs Django 6, or before that the package: django-entity-timeline[tasks]."
        raise ImproperlyConfigured(said) from error


_package = _part(_HOME)
_base = _part(f"{_HOME}.base")
_exceptions = _part(f"{_HOME}.exceptions")
_part(
    f"{_HOME}.checks"
)  # So that ``manage.py check`` asks the backends, whether or not the package is installed as an app.
_signals = _part(f"{_HOME}.signals")

BaseTaskBackend: Any = _part(f"{_HOME}.backends.base").BaseTaskBackend
Task: Any = _base.Task
TaskContext: Any = _base.TaskContext
TaskError: Any = _base.TaskError
TaskResult: Any = _base.TaskResult
TaskResultStatus: Any = _base.TaskResultStatus
task_backends: Any = _package.task_backends
task_enqueued: Any = _signals.task_enqueued
task_finished: Any = _signals.task_finished
task_started: Any = _signals.task_started
InvalidTask: type[Exception] = _exceptions.InvalidTask if _IS_DJANGOS else _exceptions.InvalidTaskError
InvalidTaskBackend: type[Exception] = (
    _exceptions.InvalidTaskBackend if _IS_DJANGOS else _exceptions.InvalidTaskBackendError
)
TaskResultDoesNotExist: type[Exception] = _exceptions.TaskResultDoesNotExist
normalize_json: Any = _part("django.utils.json" if _IS_DJANGOS else "django_tasks.utils").normalize_json

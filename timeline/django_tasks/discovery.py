"""Find functions: in the modules ``tasks`` of installed apps, and in those that ``OPTIONS["modules"]`` of a backend names."""

from __future__ import annotations

from importlib import import_module
from types import ModuleType

from django.apps import apps
from django.utils.module_loading import module_has_submodule

from timeline.django_tasks.backend import TimelineBackend
from timeline.django_tasks.framework import Task, task_backends
from timeline.django_tasks.functions import kinds_of, know


def discover() -> None:
    """Import them, and let workers know all functions for each backend of ours."""
    backends = [backend for backend in task_backends.all() if isinstance(backend, TimelineBackend)]
    for config in apps.get_app_configs():
        # The module of this package's own app has the tasks of Celery.
        if config.name != "timeline" and config.module and module_has_submodule(config.module, "tasks"):
            _know_all(import_module(f"{config.name}.tasks"))
    for name in dict.fromkeys(name for backend in backends for name in backend.options.get("modules", ())):
        _know_all(import_module(name))
    for backend in backends:
        kinds_of(backend)


def _know_all(module: ModuleType) -> None:
    """Know also what was decorated for another backend: ``using()`` may name one of ours."""
    for name, value in vars(module).items():
        if isinstance(value, Task) and (value.func.__module__, value.func.__name__) == (module.__name__, name):
            know(value)

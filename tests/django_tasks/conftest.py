"""What tests of Django's tasks share."""

from __future__ import annotations

import pytest

from tests.django_tasks.framework import task_enqueued, task_finished, task_started
from tests.django_tasks.shop import tasks
from timeline.django_tasks.functions import Functions
from timeline.registry import registry
from timeline.testing import StoryClock, only_timelines


@pytest.fixture
def clock():
    """Story time that runs what is enqueued, and raises no errors of functions: results have them."""
    tasks.seen.clear()
    ours = {known.cls for known in registry.everywhere() if issubclass(known.cls, Functions)}
    with only_timelines(*ours), StoryClock(raises=False) as clock:
        yield clock


@pytest.fixture
def told():
    """What receivers of the framework's signals are told: name of the signal, status, and error if one is handled."""
    found = []

    def enqueued(sender, task_result, **extra):
        found.append(("enqueued", sender.__name__, task_result.status.value, task_result.attempts))

    def started(sender, task_result, **extra):
        found.append(("started", sender.__name__, task_result.status.value, task_result.attempts))

    def finished(sender, task_result, **extra):
        found.append(("finished", sender.__name__, task_result.status.value, task_result.attempts))

    several = [(task_enqueued, enqueued), (task_started, started), (task_finished, finished)]
    for signal, receiver in several:
        signal.connect(receiver)
    yield found
    for signal, receiver in several:
        signal.disconnect(receiver)

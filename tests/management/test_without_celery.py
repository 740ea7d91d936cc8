"""Commands that send through Celery, where it is not installed: they say what to install, or what to run instead."""

from __future__ import annotations

import sys
from importlib import import_module

import pytest
from django.core.management import CommandError

COMMANDS = "timeline.management.commands"


@pytest.fixture(autouse=True)
def _no_celery(monkeypatch):
    """As if it could not be imported."""
    ours = [name for name in sys.modules if name.startswith(("timeline.tasks", f"{COMMANDS}."))]
    for name in ours:
        monkeypatch.delitem(sys.modules, name)
    monkeypatch.setitem(sys.modules, "celery", None)
    monkeypatch.setitem(sys.modules, "kombu", None)


@pytest.mark.parametrize("command", ["timeline_poll", "timeline_install_beat"])
def test_names_the_extra(command):
    with pytest.raises(CommandError, match=r'extras? "celery"'):
        import_module(f"{COMMANDS}.{command}")


def test_of_beat_names_the_worker_that_needs_none():
    with pytest.raises(CommandError, match="timeline_worker, which needs neither"):
        import_module(f"{COMMANDS}.timeline_install_beat")

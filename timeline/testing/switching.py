"""Switches: whether runs start by themselves, and which timelines there are."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager
from typing import TYPE_CHECKING

from django.conf import settings
from django.test import override_settings

from timeline.registry import registry

if TYPE_CHECKING:
    from timeline.definition import Timeline


@contextmanager
def autostart(wanted: bool) -> Iterator[None]:
    """
    Let events and inserted rows start runs within the block, or not. ``start()`` works always.

    Off keeps a host's existing tests and fixtures free of runs. For a whole test suite set
    ``TIMELINE = {"AUTOSTART": False}`` in its settings, or ``timeline_autostart = false`` for pytest.
    """
    with override_settings(TIMELINE={**getattr(settings, "TIMELINE", {}), "AUTOSTART": wanted}):
        yield


def only_timelines(*classes: type[Timeline]) -> AbstractContextManager[None]:
    """Let just these timelines be known within the block, whatever the host declares."""
    return registry.replaced(*classes)

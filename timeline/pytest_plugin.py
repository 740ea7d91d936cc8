"""
Fixtures for a host's tests; pytest finds them once the package is installed.

pytest loads this before Django is set up, so everything is imported inside the fixtures.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

import pytest

if TYPE_CHECKING:
    from timeline.testing import StoryClock


def pytest_addoption(parser: pytest.Parser) -> None:
    """Add ``timeline_autostart`` to pytest's settings."""
    text = "Whether events and inserted rows start runs in tests (default: true)."
    parser.addini("timeline_autostart", text, type="bool", default=True)


def pytest_configure(config: pytest.Config) -> None:
    """Add the marker."""
    config.addinivalue_line(
        "markers", "timeline: events and inserted rows start runs in this test, whatever the settings."
    )


@pytest.fixture(autouse=True)
def _timeline_autostart(request: pytest.FixtureRequest) -> Iterator[None]:
    """Obey ``timeline_autostart = false``, unless the test is marked ``timeline`` or takes ``clock``."""
    wanted = "clock" in request.fixturenames or request.node.get_closest_marker("timeline") is not None
    if request.config.getini("timeline_autostart"):
        yield
        return
    from timeline.testing import autostart

    with autostart(wanted):
        yield


@pytest.fixture
def clock(db: Any) -> Iterator[StoryClock]:  # noqa: ARG001 (brings the database)
    """Story time, standing still until the test moves it. Tasks that fall due on the way are run, in order, inline."""
    from timeline.testing import StoryClock

    with StoryClock() as story:
        yield story

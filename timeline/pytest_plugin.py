"""Fixtures for a host's tests. pytest loads this before Django is set up, so everything is imported inside them."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import ExitStack
from typing import TYPE_CHECKING, Any

import pytest

if TYPE_CHECKING:
    from timeline.testing import StoryClock
    from timeline.testing.present import PresentTest

_SAID = ("only", "raises")  # By the mark ``timeline``.


def pytest_addoption(parser: pytest.Parser) -> None:
    """Add ``timeline_autostart`` to pytest's settings."""
    text = "Whether events and inserted rows start runs in tests (default: true)."
    parser.addini("timeline_autostart", text, type="bool", default=True)


def pytest_configure(config: pytest.Config) -> None:
    """Add the marker."""
    config.addinivalue_line(
        "markers",
        "timeline(only=[…], raises=True): events and inserted rows start runs in this test, whatever the settings; only: the"
        " timelines that its clocks run; raises=False: they do not raise what handlers raise.",
    )


@pytest.fixture(autouse=True)
def _timeline_test(request: pytest.FixtureRequest) -> Iterator[None]:
    """Tell clocks the mark ``timeline``; obey ``timeline_autostart = false`` unless there is the mark or ``clock``."""
    if not _is_django_ready():
        yield
        return
    from timeline.testing import autostart
    from timeline.testing.present import in_test

    with ExitStack() as stack:
        request.node.timeline_test = test = _test_of(request)
        stack.enter_context(in_test(test))
        if not request.config.getini("timeline_autostart"):
            marked = request.node.get_closest_marker("timeline") is not None
            stack.enter_context(autostart("clock" in request.fixturenames or marked))
        yield


@pytest.fixture
def clock(db: Any) -> Iterator[StoryClock]:  # noqa: ARG001 (brings the database)
    """Story time, standing still until the test moves it. Tasks that fall due on the way are run, in order, inline."""
    from timeline.testing import StoryClock

    with StoryClock() as story:
        yield story


@pytest.hookimpl(tryfirst=True)
def pytest_runtest_makereport(item: pytest.Item, call: pytest.CallInfo[None]) -> None:
    """In the report of a test that failed, say what its clocks ran, and what they left out."""
    test = getattr(item, "timeline_test", None)
    if call.when == "call" and call.excinfo is not None and test is not None and (told := test.told()):
        item.add_report_section("call", "timeline", told)


def _is_django_ready() -> bool:
    """Whether this is a Django project with the package in it; without importing Django."""
    module = sys.modules.get("django.apps")
    return module is not None and module.apps.ready and module.apps.is_installed("timeline")


def _test_of(request: pytest.FixtureRequest) -> PresentTest:
    """What the marks of a test say; of several, the closest that says it."""
    from timeline.suggestions import did_you_mean
    from timeline.testing.present import PresentTest

    marks = list(request.node.iter_markers("timeline"))
    for name in [name for mark in marks for name in mark.kwargs if name not in _SAID]:
        remedy = did_you_mean(name, _SAID) or "It takes only= and raises=."
        raise pytest.UsageError(f"The mark timeline takes no {name}=. {remedy}")
    # pytest takes a mark with one class alone for a decorator of this class, so classes are named by ``only``.
    named = [[*mark.args, *mark.kwargs.get("only", ())] for mark in marks if mark.args or "only" in mark.kwargs]
    raises = [mark.kwargs["raises"] for mark in marks if "raises" in mark.kwargs]
    return PresentTest(
        file=str(request.node.path), only=named[0] if named else (), raises=raises[0] if raises else True
    )

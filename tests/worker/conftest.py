"""What tests of workers share."""

from __future__ import annotations

from typing import Any

import pytest

from tests.worker.standing import standing
from timeline.worker.timed_call import TimedCall


@pytest.fixture
def _standing(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let the supervisor and its watches go by the clock that stands still."""
    for module in ("thread_watch", "group_runner"):
        monkeypatch.setattr(f"timeline.worker.{module}.monotonic", standing)

    def timed_call(*given: Any, **named: Any) -> TimedCall:
        return TimedCall(*given, since=standing(), **named)

    monkeypatch.setattr("timeline.worker.thread_watch.TimedCall", timed_call)

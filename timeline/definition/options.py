"""What ``@task`` takes beside its schedule and its guards, for type checkers: options of the core, and of each feature."""

from __future__ import annotations

from typing import TYPE_CHECKING, TypedDict

from timeline.features.debounce.declaration import DebounceOptions  # of debounce
from timeline.features.holds.declaration import HoldOptions  # of holds
from timeline.features.limits.declaration import LimitOptions  # of limits
from timeline.features.on_failure.declaration import FailureOptions  # of on_failure
from timeline.features.rates.declaration import RateOptions  # of rates

if TYPE_CHECKING:
    from datetime import timedelta

    from django_stubs_ext import StrPromise

    from timeline.definition.handlers import Atomic, Drift
    from timeline.definition.retry import Retry
    from timeline.timing import Window


class CoreOptions(TypedDict, total=False):
    """Those of the core; ``task`` says what each means."""

    atomic: Atomic
    retry: Retry | None
    expires: timedelta | None
    timeout: timedelta | None
    priority: int
    queue: str
    drift: Drift
    aside: bool
    spread: timedelta | None
    was: str
    window: Window | None
    title: str | StrPromise


class TaskOptions(
    CoreOptions,
    LimitOptions,  # of limits
    HoldOptions,  # of holds
    FailureOptions,  # of on_failure
    DebounceOptions,  # of debounce
    RateOptions,  # of rates
    total=False,
):
    """All of them."""

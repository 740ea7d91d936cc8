"""The setting ``TIMELINE_OJS``: a dict whose names, types and defaults are the fields of ``Settings``."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import timedelta
from typing import Any

from django.conf import settings
from django.core.exceptions import ImproperlyConfigured

from timeline.conf import check_kind, check_positive


@dataclass(frozen=True, slots=True, kw_only=True)
class Settings:
    """
    What a host may set in ``TIMELINE_OJS``.

    Args:
        ANYBODY: Whether everybody may do everything, known or not: in tests, and in a network of your own.
        AUTHENTICATE: Path of a function that gives the user of a request, or None. None: as Django REST framework does, where
            it is installed; else the user of the session.
        DATABASE: Alias of the database that jobs are in. None: as the routers say.
        LEASE: How long a worker has a job, unless it or the job says otherwise.
        MAX_BATCH: How many jobs one request may bring.
        MAX_FETCH: How many jobs one request may take.
        TEST_DIRECTIVES: Whether a job may say itself what its worker is told to do, for the conformance suite.
    """

    ANYBODY: bool = False
    AUTHENTICATE: str | None = None
    DATABASE: str | None = None
    LEASE: timedelta = timedelta(minutes=30)
    MAX_BATCH: int = 1000
    MAX_FETCH: int = 100
    TEST_DIRECTIVES: bool = False


def get_settings() -> Settings:
    """Read ``TIMELINE_OJS`` as it is now; ``ImproperlyConfigured`` for an unknown name or a wrong kind."""
    given: dict[str, Any] = getattr(settings, "TIMELINE_OJS", {})
    if not isinstance(given, dict):
        raise ImproperlyConfigured(f"TIMELINE_OJS is {given!r:.60}. Make it a dict.")
    for name, value in given.items():
        check_kind("TIMELINE_OJS", Settings, name, value)
        check_positive("TIMELINE_OJS", name, value)
    return Settings(**given)

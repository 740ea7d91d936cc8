"""The setting ``TIMELINE_WEBHOOKS``: a dict whose names, types and defaults are the fields of ``Settings``."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, fields
from datetime import timedelta
from typing import Any

from django.conf import settings
from django.core.exceptions import ImproperlyConfigured

from timeline.suggestions import did_you_mean


@dataclass(frozen=True, slots=True, kw_only=True)
class Settings:
    """
    What a host may set in ``TIMELINE_WEBHOOKS``.

    Args:
        ALLOW_LOOPBACK: Whether receivers may be called over http and on this machine: in a demo and in tests, nowhere else.
        CA_FILE: Path of certificates (PEM) that are trusted beside the usual ones. None: none.
        CONCURRENCY: How many deliveries a sender has under way at most; a quarter of these may be to receivers that fail.
        KEYS: Fernet keys that secrets are stored under: the first one encrypts, all of them decrypt. Needed.
        LOOK_AGAIN: How long a process may not know of an endpoint that another one has made.
        PER_ENDPOINT: How many of them may be to one endpoint.
        PORTS: Of receivers; with ``ALLOW_LOOPBACK``, any on this machine.
        TIMEOUT: How long a delivery may take, from the look-up of the name to the end of the answer.
    """

    ALLOW_LOOPBACK: bool = False
    CA_FILE: str | None = None
    CONCURRENCY: int = 64
    KEYS: Sequence[str] = ()
    LOOK_AGAIN: timedelta = timedelta(seconds=5)
    PER_ENDPOINT: int = 16
    PORTS: Sequence[int] = (443, 8443)
    TIMEOUT: timedelta = timedelta(seconds=10)


_KINDS: dict[str, tuple[type, ...]] = {
    "ALLOW_LOOPBACK": (bool,),
    "CA_FILE": (str, type(None)),
    "CONCURRENCY": (int,),
    "KEYS": (list, tuple),
    "LOOK_AGAIN": (timedelta,),
    "PER_ENDPOINT": (int,),
    "PORTS": (list, tuple),
    "TIMEOUT": (timedelta,),
}


def get_settings() -> Settings:
    """Read ``TIMELINE_WEBHOOKS`` as it is now; ``ImproperlyConfigured`` for an unknown name or a wrong kind."""
    given: dict[str, Any] = getattr(settings, "TIMELINE_WEBHOOKS", {})
    if not isinstance(given, dict):
        raise ImproperlyConfigured(f"TIMELINE_WEBHOOKS is {given!r:.60}. Make it a dict.")
    for name, value in given.items():
        _check(name, value)
    return Settings(**given)


def _check(name: str, value: object) -> None:
    """See that a value fits. What is wrong with one is said without it: among them are keys."""
    if name not in _KINDS:
        known = [field.name for field in fields(Settings)]
        meant = did_you_mean(name, known)
        said = f"TIMELINE_WEBHOOKS[{name!r}] is not a setting. {meant} Known: {', '.join(known)}."
        raise ImproperlyConfigured(" ".join(said.split()))
    wanted = " or ".join(kind.__name__ for kind in _KINDS[name])
    if not isinstance(value, _KINDS[name]) or (isinstance(value, bool) and bool not in _KINDS[name]):
        problem = f"TIMELINE_WEBHOOKS[{name!r}] is of type {type(value).__name__}. Give a value of type {wanted}."
        raise ImproperlyConfigured(problem)
    if (isinstance(value, timedelta) and value <= timedelta(0)) or (type(value) is int and value < 1):
        raise ImproperlyConfigured(f"TIMELINE_WEBHOOKS[{name!r}] is {value!r}. Give a positive value.")

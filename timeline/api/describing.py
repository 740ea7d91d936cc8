"""
drf-spectacular's settings, for the length of one request and for that request alone.

It keeps them in one object that all threads read, and its own way to describe one API otherwise than another writes into that
object: two documents asked for at once would mix. Here the object learns to look first whether the one who reads it has
settings of their own. Others do not see these, and what others write meanwhile is not seen by whoever has them.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Any, Final

from django.conf import settings
from drf_spectacular.settings import IMPORT_STRINGS, SPECTACULAR_DEFAULTS, SpectacularSettings, spectacular_settings

from timeline.api.schema import SETTINGS

_OWN: Final[ContextVar[SpectacularSettings | None]] = ContextVar("timeline_api_settings", default=None)


class SettingsOfWhoeverAsks(SpectacularSettings):
    """The settings of this thread of work where it has any, else those of the site."""

    def __getattribute__(self, name: str) -> Any:
        own = None if name.startswith("_") else _OWN.get()
        return super().__getattribute__(name) if own is None or own is self else getattr(own, name)


spectacular_settings.__class__ = SettingsOfWhoeverAsks


@contextmanager
def our_settings() -> Iterator[None]:
    """Describe with ``SETTINGS``, and with what the site's say beside them: of servers and of security, say."""
    given: Any = {**getattr(settings, "SPECTACULAR_SETTINGS", {}), **SETTINGS}
    defaults: Any = SPECTACULAR_DEFAULTS
    token = _OWN.set(SpectacularSettings(given, defaults, IMPORT_STRINGS))
    try:
        yield
    finally:
        _OWN.reset(token)

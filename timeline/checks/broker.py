"""Checks of Celery, where the host uses it."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from typing import Any, Final

from django.apps import AppConfig
from django.core.checks import CheckMessage, Warning

PICKLE: Final = frozenset({"pickle", "application/x-python-serialize"})


def check_broker(app_configs: Sequence[AppConfig] | None, **_extra: Any) -> list[CheckMessage]:
    """``timeline.W004``: workers unpickle messages, so who can write to the broker can run code in them."""
    celery = sys.modules.get("celery")  # Who has not imported it by now does not use it.
    accepted = celery.current_app.conf.accept_content if celery is not None else None
    if PICKLE.isdisjoint([accepted] if isinstance(accepted, str) else accepted or ()):
        return []
    return [
        Warning(
            "Celery accepts pickled messages: who can write to the broker can run code in its workers.",
            hint='Set accept_content = ["json"]. Messages of timelines are plain ids.',
            id="timeline.W004",
        )
    ]

"""A mail server that refuses everything."""

from __future__ import annotations

from contextlib import AbstractContextManager

import django
from django.test import override_settings


class Down:
    """A backend whose server refuses."""

    def __init__(self, *args: object, **kwargs: object) -> None: ...

    def send_messages(self, messages: object) -> int:
        """Send nothing."""
        raise ConnectionRefusedError("no mail today")


def mail_is_down() -> AbstractContextManager[None]:
    """Let no mail be sent within the block, by the setting that this Django has for it."""
    backend = f"{__name__}.Down"
    if django.VERSION >= (6, 1):
        return override_settings(MAILERS={"default": {"BACKEND": backend}})
    return override_settings(EMAIL_BACKEND=backend)

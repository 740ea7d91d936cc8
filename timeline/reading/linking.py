"""Links to pages of the admin, for texts that are read elsewhere, such as mails."""

from __future__ import annotations

from urllib.parse import urlencode

from django.core.exceptions import ImproperlyConfigured
from django.db import router
from django.urls import NoReverseMatch, get_script_prefix, reverse

from timeline.conf import get_settings
from timeline.models import ScheduledTask


def link_to(name: str, *args: object, using: str, **asked: str) -> str:
    """
    Write the absolute address of a page of the admin: below ``TIMELINE["BASE_URL"]``, never below the host of a request.

    Args:
        name: Name of its URL, without the namespace: ``timeline_scheduledtask_dead``.
        args: Arguments of its path.
        using: Database alias whose data the page has to show.
        asked: Its query parameters.

    Returns:
        Empty, if no ``BASE_URL`` is set, if the site has no such page, or if its pages show another database.
    """
    base = get_settings().BASE_URL.rstrip("/")
    if not base or using != router.db_for_write(ScheduledTask):
        return ""
    try:
        path = reverse(f"admin:{name}", args=args)
    except (NoReverseMatch, ImproperlyConfigured, ImportError, AttributeError):  # Also: a worker without a URLconf.
        return ""
    return f"{base}/{path.removeprefix(get_script_prefix())}{f'?{urlencode(asked)}' if asked else ''}"

"""Versions: what an open page is told that it shows, so that it can ask whether that is still so."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, Any, Final, NamedTuple
from zlib import crc32

from django.utils.crypto import constant_time_compare, salted_hmac

from timeline.clocks import is_told, story_now

if TYPE_CHECKING:
    from django.http import HttpRequest

AGES_AFTER: Final = 30  # Seconds after which a page is drawn again in any case: it says how long things take.
RIGHTS_AFTER: Final = 10  # Seconds after which is looked again at what somebody may do, where nothing has changed.
NOBODY: Final = "nobody"


class Version(NamedTuple):
    """
    What a page shows.

    ``content`` is a digest of all that decides it: two versions with the same one look alike. ``rights`` is a digest of what
    somebody may do, read in the period ``period`` as ``seal`` proves: within it, it is not read again.
    """

    content: str
    rights: str
    period: str
    seal: str

    def __str__(self) -> str:
        return ".".join(self)


def read_version(text: str) -> Version | None:
    """Read what a page says that it shows; None: it is none of ours. Whether it is true, only ``version_of`` says."""
    parts = text.split(".")
    return Version(*parts) if len(parts) == 4 and text.isascii() else None


def version_of(request: HttpRequest, mark: tuple[Any, ...], *, using: str, seen: Version | None) -> Version:
    """
    Say what a page would show now.

    Args:
        request: Of the page: who looks, where, and in which language.
        mark: Of what is shown.
        using: Database alias.
        seen: What the page shows. If its rights were read in this period, they are not read again.
    """
    user, period = getattr(request, "user", None), str(int(time.time()) // RIGHTS_AFTER)
    who = (user.pk, user.is_active, getattr(user, "is_staff", False)) if user is not None else ()
    if seen and seen.period == period and constant_time_compare(seen.seal, _digest("seal", who, seen.rights, period)):
        rights = seen.rights
    else:
        rights = rights_of(user)
    path = request.get_full_path()
    shift = crc32(repr((who, path)).encode()) % AGES_AFTER  # Not all pages in the same second.
    ages = (
        (int(time.time()) + shift) // AGES_AFTER,
        int(story_now(using).timestamp()) // AGES_AFTER if is_told() else 0,
    )
    content = _digest("content", who, rights, path, getattr(request, "LANGUAGE_CODE", ""), ages, mark)
    return Version(content, rights, period, _digest("seal", who, rights, period))


def rights_of(user: Any) -> str:
    """Digest what somebody may do. Asks the database as Django's backends do; nothing, for who is not logged in."""
    if user is None or not user.is_authenticated:
        return NOBODY
    permissions: set[str] = getattr(user, "get_all_permissions", set)()  # A model of users need not have any.
    return _digest("rights", user.pk, user.is_active, getattr(user, "is_staff", False), sorted(permissions))


def _digest(*told: object) -> str:
    return salted_hmac("timeline.live", repr(told), algorithm="sha256").hexdigest()

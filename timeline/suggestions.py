"""Suggestions: which of the known names is meant by one that is not known."""

from __future__ import annotations

from collections.abc import Iterable
from difflib import get_close_matches
from typing import Final

from django.utils.functional import lazy
from django.utils.translation import gettext as _

NEAR: Final = 0.75  # A high value, since names that begin with the same word are similar already.
MOST_COMPARED: Final = 200  # Characters of a name.


def near(name: object, known: Iterable[str], *, most: int = 3) -> list[str]:
    """The known names most like this one, whatever the case, best first; ``remind`` may mean ``trial.remind``."""
    by_letters = {one.lower(): str.__str__(one) for one in sorted(known)}
    for full in list(by_letters.values()):
        by_letters.setdefault(full.lower().partition(".")[2] or full, full)
    wanted = name.lower()[:MOST_COMPARED] if isinstance(name, str) else ""
    found = (by_letters[one] for one in get_close_matches(wanted, by_letters, n=2 * most, cutoff=NEAR))
    return list(dict.fromkeys(found))[:most]


def did_you_mean(name: object, known: Iterable[str], *, otherwise: str = "") -> str:
    """Ask for the known name that is most like this one (``Did you mean 'starts_on'?``), or say ``otherwise``."""
    found = near(name, known, most=1)
    return f"Did you mean {found[0]!r}?" if found else otherwise


def _with_meant(remedy: object, name: object, known: Iterable[str]) -> str:
    found = near(name, known, most=1)
    if not found:
        return str(remedy)
    meant = repr(found[0]).replace("%", "%%")  # Placeholders of the remedy are filled in later.
    question = _("Did you mean %(names)s?") % {"names": meant}
    return f"{question} {remedy}"


with_meant = lazy(_with_meant, str)
"""Put before a remedy which known name is meant, perhaps, in the reader's language: ``with_meant(remedy, name, known)``."""

"""What failures have in common: the fixed parts of a message, without what changes from one to the next."""

from __future__ import annotations

import re
from typing import Final

MAX_READ: Final = 2_000  # Characters of a message.

# The order matters: quoted text is replaced as a whole, before its parts. Each pattern reads the text once, whatever the text.
_VARYING: Final = (
    re.compile(r"(?<!\w)'[^'\n]*'(?!\w)"),
    re.compile(r"(?<!\w)\"[^\"\n]*\"(?!\w)"),
    re.compile(r"«[^»\n]*»|“[^”\n]*”|„[^“”\n]*[“”]|`[^`\n]*`"),
    re.compile(r"(?<![\w/\\])(?:[A-Za-z]:[\\/]|~?/)[^\s,;:()<>]+"),
    re.compile(r"(?<![\w.+-])[\w.+-]+@[\w.-]+"),
    re.compile(r"\b\w*\d[\w.:+-]*"),
)
_WORD: Final = re.compile(r"[^\W\d_]{2,}")
_OF_OTHERS: Final = ("ExceptionGroup", "BaseExceptionGroup")  # Their own message says nothing of the errors within.


def constant(message: str) -> str:
    """A message without its changing parts; each of them shows as ``#``."""
    text = message[:MAX_READ]
    for varying in _VARYING:
        text = varying.sub("#", text)
    return " ".join(text.split())


def headline(error: str) -> str:
    """
    What an error that is stored on a row says for several tasks: its class without the module, and its first line with ``…``
    for what changes from one to the next, such as an address.
    """
    kind, colon, message = error.partition("\n")[0].partition(": ")
    return f"{kind.rpartition('.')[2]}: {constant(message).replace('#', '…')}" if colon else error.partition("\n")[0]


def cause_in(error: str) -> str:
    """
    What an error that is stored on a row (``class: message``) has in common with the same error of other tasks. Empty: too
    little to tell, as of ``KeyError: 'name'``, whose message has no fixed words.
    """
    kind, _colon, message = error.partition(": ")
    fixed = constant(message)
    is_told = _WORD.search(fixed) and not kind.endswith(_OF_OTHERS)
    return f"{kind}: {fixed}" if is_told else ""

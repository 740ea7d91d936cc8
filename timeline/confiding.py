"""Confide nothing: names in payloads that look like those of secrets are refused, as rows are read by many and kept."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterator
from typing import Final

from django.utils.translation import gettext_lazy as _

from timeline.conf import get_settings
from timeline.exceptions import InvalidInput
from timeline.payloads import check_json

# ``accessToken``, ``access_token`` and ``access-token`` have the same words.
_WORD: Final = re.compile(r"[A-Z]+(?![a-z])|[A-Z]?[a-z]+|\d+")

_PASSED_OVER: Final = ("code", "value")


def check_data(field: str, value: object) -> int:
    """
    Refuse a payload that JSON cannot hold exactly, or that has a name such as ``password`` in it.

    Args:
        field: Name of the argument, for the error.
        value: As for ``check_json``.

    Returns:
        How many bytes its JSON has.

    Raises:
        NotPlainJSON, PayloadTooLarge: as ``check_json``.
        InvalidInput: naming the field and the name.
    """
    size = check_json(field, value)
    if value and (name := next(_secrets(value), None)):
        problem = _("has the name %(name)r, which looks like that of a secret.")
        remedy = _("Keep it with your own models, and send what it is found by, e.g. %(name)s_id.")
        raise InvalidInput(field, problem, remedy, name=name)
    return size


def _secrets(value: object) -> Iterator[str]:
    """Names that look like those of secrets, at any depth. What is yes, no or nothing is no secret."""
    if isinstance(value, dict):
        for name, item in value.items():
            if not isinstance(item, bool | None) and is_secret(name):
                yield name
            yield from _secrets(item)
    elif isinstance(value, list):
        for item in value:
            yield from _secrets(item)


def is_secret(name: str) -> bool:
    """
    Whether a name ends in one of ``TIMELINE["SECRET_NAMES"]``, word by word: ``otp``, ``clientSecret``, ``tokens`` and
    ``api_key`` do; ``otp_id``, ``token_sent_at`` and ``secretary`` do not. Numbers, ``code`` and ``value`` after it are passed
    over: ``otp_code``, ``password_2``.
    """
    words = _words(unicodedata.normalize("NFKC", name))
    while words and (words[-1].isdigit() or words[-1] in _PASSED_OVER):
        words.pop()
    said = f"_{'_'.join(words)}"
    known = [_words(secret) for secret in get_settings().SECRET_NAMES]
    return any(said.endswith((f"_{form}", f"_{form}s")) for secret in known if secret for form in _forms(secret))


def _forms(words: list[str]) -> tuple[str, str]:
    """How a name may be written: as its words, or in one: ``apikey``."""
    return "_".join(words), "".join(words)


def _words(name: str) -> list[str]:
    return [word.lower() for word in _WORD.findall(name)]

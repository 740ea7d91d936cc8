"""Whom billing calls: the payment processor, accounting, the CRM, the team's chat and its tickets, over HTTP."""

from __future__ import annotations

import json
from http.client import HTTPException
from typing import Any
from urllib.error import HTTPError
from urllib.request import Request, urlopen

from django.conf import settings

from timeline import Discard

TIMEOUT = 5  # Seconds. A worker stops within thirty.


class Unavailable(Exception):
    """They could not be reached, or did not answer: it may have happened, or not."""


class Refused(Discard):
    """They have answered that they will not: trying again is of no use, so people must look."""


def call(service: str, body: dict[str, Any], *, key: str) -> dict[str, Any]:
    """
    Ask for something to be done.

    Args:
        service: ``settle``, ``accounting``, ``crm``, ``chat`` or ``tickets``.
        body: What is to be done, as JSON.
        key: The same each time that the same is asked for: they do it once.

    Raises:
        Unavailable: and trying again may help.
        Refused: and it will not.
    """
    headers = {"Content-Type": "application/json", "Idempotency-Key": key}
    return _ask(Request(_address(service), json.dumps(body).encode(), headers))  # noqa: S310 (the site's own setting)


def settled_on(day: str) -> dict[str, Any]:
    """Ask the processor how much it has paid out for a day: ``{"count": …, "cents": …}``."""
    return _ask(Request(_address(f"settle/{day}")))  # noqa: S310


def _address(path: str) -> str:
    return f"{settings.BILLING_OUTSIDE}/{path}"


def _ask(request: Request) -> dict[str, Any]:
    try:
        with urlopen(request, timeout=TIMEOUT) as answer:  # noqa: S310
            said: dict[str, Any] = json.load(answer)
            return said
    except HTTPError as error:
        with error:
            if error.code < 500:
                raise Refused(f"The answer was {error.code}") from error
            raise Unavailable(f"The answer was {error.code}") from error
    except (OSError, HTTPException) as error:
        raise Unavailable("There was no answer") from error

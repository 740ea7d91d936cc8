"""The portal, over HTTP. What it answers becomes a value or one of the errors of the portal."""

from __future__ import annotations

import json
from collections.abc import Mapping
from http.client import HTTPException
from typing import Any, Final
from urllib.error import HTTPError
from urllib.parse import quote
from urllib.request import Request, urlopen

from django.conf import settings

from project.portal.errors import BadLogin, Captcha, PortalBusy, PortalTimeout, SlotGone, Unheard

TIMEOUT: Final = 5  # Seconds. A worker stops within thirty.

_MEANS: Final[Mapping[int, type[Exception]]] = {
    401: BadLogin,
    403: Captcha,
    409: SlotGone,
    429: PortalBusy,
    502: PortalTimeout,
    503: PortalBusy,
}


def status() -> dict[str, Any]:
    """Ask whether it is open: ``{"open": …, "opens_at": …}``, the latter as ISO 8601."""
    return _ask("GET", "status")


def sign_in(reference: str, password: str) -> dict[str, Any]:
    """
    Sign in: ``{"code": …}``, whether it asks for a code.

    Raises:
        BadLogin, Captcha: It does not let us in.
    """
    return _ask("POST", "login", {"reference": reference, "password": password})


def submit_code(reference: str, code: str) -> dict[str, Any]:
    """Give it the code that it has sent: ``{"right": …}``."""
    return _ask("POST", "code", {"reference": reference, "code": code})


def slots(reference: str) -> list[str]:
    """Ask which appointments are free: times as ISO 8601, the best first."""
    found: list[str] = _ask("GET", f"slots/{quote(reference)}")["slots"]
    return found


def hold(reference: str, slot: str) -> str:
    """
    Reserve an appointment; gives what the portal calls the reservation. Asked again for the same one, it gives the same.

    Raises:
        SlotGone: Somebody else has it.
    """
    held: str = _ask("POST", "holds", {"reference": reference, "slot": slot})["hold"]
    return held


def send_form(hold_: str, form: Mapping[str, object]) -> dict[str, Any]:
    """Fill in the form of a reservation: ``{"needs": …}``, ``documents``, ``fee`` or nothing."""
    return _ask("POST", "forms", {"hold": hold_, **form})


def confirm(reference: str, hold_: str) -> dict[str, Any]:
    """
    Book what is reserved: ``{"code": …, "held": …}``, whether it asks for a code first, and whether the reservation is there at
    all. Asked again it answers alike, and nothing is booked twice.
    """
    return _ask("POST", "confirm", {"reference": reference, "hold": hold_})


def appointment(reference: str) -> str:
    """Ask which appointment is booked; nothing: none is."""
    booked: str = _ask("GET", f"appointments/{quote(reference)}")["slot"]
    return booked


def give_back(reference: str) -> None:
    """Give up whatever is reserved or booked. Twice is once."""
    _ask("DELETE", f"appointments/{quote(reference)}")


def _ask(method: str, path: str, body: Mapping[str, object] | None = None) -> dict[str, Any]:
    """
    Call it.

    Raises:
        PortalError: as its answer says, or as there was none.
        Unheard: It answered what we do not know.
    """
    data = None if body is None else json.dumps(body).encode()
    headers = {"Content-Type": "application/json"}
    request = Request(f"{settings.PORTAL_URL}/{path}", data, headers, method=method)  # noqa: S310 (the site's own setting)
    try:
        with urlopen(request, timeout=TIMEOUT) as answer:  # noqa: S310
            said: dict[str, Any] = json.load(answer)
            return said
    except HTTPError as error:
        with error:
            means = _MEANS.get(error.code, Unheard)
            raise means(f"The portal answered {error.code}") from error
    except (OSError, HTTPException) as error:
        raise PortalTimeout("The portal did not answer") from error

"""Recognise who asks: what they bring names nobody if it has text that no database can look for."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack, contextmanager, suppress
from typing import Any

from django.db import connections
from django.http import HttpRequest

from timeline.models.kin import can_be_stored


class NamesNobody(Exception):
    """Somebody was to be looked up by text that no row can have."""


@contextmanager
def looking_up() -> Iterator[None]:
    """
    Look up who asks; a statement whose text has NUL or half a pair of surrogates is not sent, but raises ``NamesNobody``.
    Headers and cookies may hide such text until it is decoded, so only a statement shows it.
    """
    with ExitStack() as stack:
        for connection in connections.all():
            stack.enter_context(connection.execute_wrapper(_refuse))
        yield


def who_asks(request: HttpRequest) -> Any:
    """Give the user of a request, looked up; None: there is none, or what the request brings names nobody."""
    with suppress(NamesNobody), looking_up():
        user = getattr(request, "user", None)
        bool(getattr(user, "is_authenticated", False))  # Reads the session, which Django leaves until somebody asks.
        return user
    return None


def _refuse(execute: Callable[..., Any], sql: str, params: Any, many: bool, context: dict[str, Any]) -> Any:
    given = params.values() if isinstance(params, Mapping) else params or ()
    if not many and not all(can_be_stored(value) for value in given if isinstance(value, str)):
        raise NamesNobody
    return execute(sql, params, many, context)

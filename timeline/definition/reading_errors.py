"""Reads what a machine says of errors: which event each class of them means."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from difflib import get_close_matches
from typing import Any

from timeline.definition.reading_tables import Unreadable
from timeline.definition.tables import IGNORE, Table
from timeline.exceptions import HandlerSignal
from timeline.payloads import as_text

Errors = Mapping[type[Exception], str]


def read_errors(declared: object, table: Table) -> dict[type[Exception], str]:
    """
    Read ``errors``: class of what a handler raises → event.

    Raises:
        Unreadable: for the first mistake found.
    """
    if not isinstance(declared, Mapping):
        raise Unreadable(f"has errors = {declared!a:.60}.", 'Use a dict: {PortalTimeout: "portal.error"}.')
    read = {_class(key): _event(key, event, table) for key, event in declared.items()}
    for state in sorted(table.working) if Exception in read else ():
        if table.takes(state).get(read[Exception], IGNORE) is IGNORE:
            remedy = "Let it lead somewhere from there: a row WORKING is about all states that are working."
            raise Unreadable(f"means {read[Exception]!r} by Exception, which {state!r} does not take.", remedy)
    return read


def events_of(error: Exception, errors: Errors) -> Iterator[str]:
    """The events that an error may mean: that of its own class first, then those of the classes behind it."""
    for kind in type(error).__mro__:
        if kind in errors:
            yield errors[kind]


def _class(key: Any) -> type[Exception]:
    if not isinstance(key, type) or not issubclass(key, Exception):
        raise Unreadable(
            f"has errors of {key!a:.60}, which is no class of exceptions.", "Name a subclass of Exception."
        )
    if issubclass(key, HandlerSignal):
        remedy = "It says what becomes of the task. Return Then(…) to move the machine."
        raise Unreadable(f"has errors of {key.__name__}, which a handler raises on purpose.", remedy)
    return key


def _event(key: Any, event: object, table: Table) -> str:
    if not isinstance(event, str) or as_text(event) not in table.events:
        near = get_close_matches(as_text(event), table.events, n=1) if isinstance(event, str) else []
        remedy = f"Did you mean {near[0]!r}?" if near else "Name an event of the table."
        raise Unreadable(f"means {event!a:.60} by {key.__name__}, which is no event of its table.", remedy)
    return as_text(event)

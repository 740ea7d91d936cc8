"""``wait_for`` and ``approval``: the first of some events, or a deadline after the run's start."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from dataclasses import replace
from datetime import timedelta
from typing import Any, Final

from timeline.timing.keywords import known_keywords
from timeline.timing.offsets import Offset, Problem
from timeline.timing.whens import RUN_START, Approval, When

MAX_EVENT: Final = 100
MAX_EVENTS: Final = 500  # Characters of all names together, with a blank between them.
MAX_KEY: Final = 200
_PERMISSION: Final = re.compile(r"\w{1,100}\.\w{1,100}")
LONGEST_WAIT: Final = timedelta(days=3660)


@known_keywords
def wait_for(*events: str, within: timedelta, key: str = "", of: str | Callable[[Any], Any] | None = None) -> When:
    """
    When the first of these events comes to the entity, or to another one; at the latest so long after the run's start.

    ``self.awaited`` is the event; None, if the time ran out. The event that started the run does not count.

    Args:
        events: Their names, as they are emitted.
        within: Exact duration.
        key: Key of the event; left out: any.
        of: The entity whose events count, if it is another one. Foreign keys that lead there, with dots between,
            ``"order.payment"``; or a function of the entity that returns it, or None while there is none. Left out: the
            entity itself.
    """
    problems = tuple(_problems(events, within, key, of))
    if problems:
        return When("after", RUN_START, Offset(), None, problems)
    return replace(When("after", RUN_START, Offset(exact=within)), awaits=events, awaits_key=key, awaits_of=of)


@known_keywords
def approval(name: str, /, *, by: str, within: timedelta) -> When:
    """
    When somebody has approved or rejected; at the latest so long after the run's start.

    ``self.awaited`` is the event: ``refund.approved`` or ``refund.rejected``, by ``self.awaited.actor``; None, if nobody
    decided in time.

    Args:
        name: What is to be approved, for example ``refund``; the events belong to the entity. No blanks.
        by: Permission of people who may decide in the admin and over the API, ``shop.approve_refund``.
        within: Exact duration.
    """
    problems = tuple(_approval_problems(name, by))
    if problems:
        return When("after", RUN_START, Offset(), None, problems)
    asked = Approval(name, by)
    return replace(wait_for(asked.approved, asked.rejected, within=within), approval=asked)


def _approval_problems(name: object, by: object) -> Iterator[Problem]:
    longest = MAX_EVENT - len(".approved")
    if not isinstance(name, str) or not 0 < len(name) <= longest or re.search(r"\s|\0", name):
        yield f"asks for the approval {name!a:.60}.", f'Name it, "refund": 1 to {longest} characters without blanks.'
    if not isinstance(by, str) or not _PERMISSION.fullmatch(by):
        yield f"is approved by {by!a:.60}.", 'Name a permission, by="shop.approve_refund".'


def _problems(events: tuple[object, ...], within: object, key: object, of: object) -> Iterator[Problem]:
    names = [event for event in events if isinstance(event, str) and 0 < len(event) <= MAX_EVENT]
    is_known = len(names) == len(set(events)) == len(events) and not any(re.search(r"\s|\0", name) for name in names)
    if not names or not is_known or len(" ".join(names)) > MAX_EVENTS:
        yield (
            f"waits for {events!a:.60}.",
            f"Name one event or several, each once, {MAX_EVENTS} characters together at most.",
        )
    if not isinstance(within, timedelta) or not timedelta(0) < within <= LONGEST_WAIT:
        yield f"waits within {within!a:.60}.", f"Give a timedelta of up to {LONGEST_WAIT.days} days."
    if not isinstance(key, str) or len(key) > MAX_KEY or "\0" in key:
        yield f"waits for the key {key!a:.60}.", f"Give text of at most {MAX_KEY} characters."
    if not (
        of is None
        or (callable(of) and not isinstance(of, type))
        or (isinstance(of, str) and all(map(str.isidentifier, of.split("."))))
    ):
        yield (
            f"waits for an event of {of!a:.60}.",
            'Name foreign keys that lead from the entity there, of="payment", or give a function of the entity.',
        )

"""How endpoints and deliveries stand, in words, and what was sent as people read it."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Final, NamedTuple

from django.utils.formats import number_format
from django.utils.timezone import localtime
from django.utils.translation import gettext as _
from django.utils.translation import ngettext, pgettext

from timeline.webhooks.models import Code, Disabled, Endpoint, State
from timeline.webhooks.retry import PAUSED_AFTER

if TYPE_CHECKING:
    from datetime import datetime

    from timeline.webhooks.models import Delivery

MOST_OF_BODY: Final = 10_000  # Characters that a page shows.
FINE: Final = "fine"
LATE: Final = "late"


class Standing(NamedTuple):
    """How something stands: a word, ``kind`` of its badge (``fine``, ``late`` or empty), and why, in a sentence."""

    word: str
    kind: str
    why: str = ""


def told_state(delivery: Delivery) -> str:
    """Where a delivery is."""
    if delivery.state == State.WAITING:
        return pgettext("timeline", "will try again") if delivery.attempts else pgettext("timeline", "not sent yet")
    return words_of_states()[delivery.state]


def words_of_states() -> dict[str, str]:
    """State → what people call it."""
    return {
        State.WAITING: pgettext("timeline", "waits, or will try again"),
        State.DELIVERED: pgettext("timeline", "delivered"),
        State.FAILED: pgettext("timeline", "failed for good"),
        State.CANCELLED: pgettext("timeline", "cancelled"),
    }


def standing_of_delivery(delivery: Delivery) -> Standing:
    """Say where a delivery is and what comes next."""
    kind = {State.DELIVERED: FINE, State.FAILED: LATE}.get(State(delivery.state), "")
    if delivery.state != State.WAITING:
        return Standing(told_state(delivery), kind, str(Code(delivery.code).label) if delivery.code else "")
    said = {"at": _told_at(delivery.due_at), "end": _told_at(delivery.give_up_at)}
    if delivery.attempts:
        return Standing(told_state(delivery), LATE, _("The next attempt is due %(at)s. It is given up %(end)s.") % said)
    return Standing(told_state(delivery), kind, _("It is due %(at)s.") % said)


def standing_of(endpoint: Endpoint) -> Standing:
    """Say whether an endpoint answers, and what is done about it if not."""
    if endpoint.disabled_at is not None:
        code = endpoint.disabled_code
        why = " · ".join(text for text in (str(Disabled(code).label) if code else "", endpoint.disabled_reason) if text)
        kind = "" if code in (Disabled.OPERATOR, "") else LATE
        return Standing(pgettext("timeline", "disabled"), kind, f"{why} · {_told_at(endpoint.disabled_at)}")
    if not endpoint.failures:
        return Standing(pgettext("timeline", "fine"), FINE)
    since = _told_at(endpoint.failing_since) if endpoint.failing_since else "–"
    said = ngettext("%(count)s failure since %(at)s.", "%(count)s failures since %(at)s.", endpoint.failures)
    why = said % {"count": number_format(endpoint.failures), "at": since}
    if endpoint.failures >= PAUSED_AFTER:
        one = _("One delivery at a time is tried until one arrives.")
        return Standing(pgettext("timeline", "failing"), LATE, f"{why} {one}")
    return Standing(pgettext("timeline", "trying again"), "", why)


def _told_at(at: datetime) -> str:
    return f"{localtime(at):%Y-%m-%d %H:%M}"


class Body(NamedTuple):
    """A text as a page shows it; ``left_out``: so many characters of it are not shown."""

    text: str
    left_out: int = 0

    @property
    def cut(self) -> str:
        """What is said of what is left out."""
        said = ngettext(
            "%(count)s more character is not shown.", "%(count)s more characters are not shown.", self.left_out
        )
        return said % {"count": number_format(self.left_out, force_grouping=True)} if self.left_out else ""


def formatted(text: str) -> Body:
    """Write JSON with indents; what is none stays as it is."""
    try:
        shown = json.dumps(json.loads(text), indent=2, ensure_ascii=False)
        shown.encode()
    except (ValueError, RecursionError):
        shown = text
    return Body(shown[:MOST_OF_BODY], max(len(shown) - MOST_OF_BODY, 0))

"""
A sender that is killed at one place: ``python -m tests.webhooks.dying claimed``.

``claimed``: what it has claimed is committed, and nothing of it is sent; ``answered``: the receiver has answered, and nobody
was told; ``written``: what came of it is written, and not committed; ``committed``: it is.
"""

from __future__ import annotations

import os
import signal
import sys
from typing import Any

import django

django.setup()

from timeline.webhooks import send  # noqa: E402 (Django is set up first)

Sender = send.WebhookSender
claim, post, record, write = send.claim, send.post, send.record, Sender._write


def die() -> None:
    """Be killed, at once."""
    os.kill(os.getpid(), signal.SIGKILL)


def claim_and_die(*given: Any, **named: Any) -> Any:
    """Die once there was something to claim."""
    claimed = claim(*given, **named)
    if claimed.deliveries:
        die()
    return claimed


async def post_and_die(*given: Any) -> Any:
    """Die with the first answer."""
    await post(*given)
    die()


def record_and_die(*given: Any, **named: Any) -> Any:
    """Die before the commit."""
    record(*given, **named)
    die()


def write_and_die(self: Sender, done: list[Any], *given: Any) -> None:
    """Die after it."""
    write(self, done, *given)
    if done:
        die()


def main(place: str) -> None:
    """Send until then."""
    match place:
        case "claimed":
            send.claim = claim_and_die
        case "answered":
            send.post = post_and_die
        case "written":
            send.record = record_and_die
        case "committed":
            Sender._write = write_and_die  # type: ignore[method-assign]
    Sender("default").work()


if __name__ == "__main__":
    main(*sys.argv[1:])

"""What somebody does with a task in the admin."""

from __future__ import annotations

import re
from html import unescape
from uuid import UUID

from django.test import Client

HIDDEN = re.compile(r'<input type="hidden" name="([^"]+)" value="([^"]*)"')


def cancelled_by_hand(browser: Client, act: str, task: UUID, reason: str) -> str:
    """
    Cancel a task: ask, read what is said, give the reason, confirm.

    Args:
        act: Address of the page that asks.

    Returns:
        What the last page says.
    """
    asked = browser.post(act, {"action": "cancel", "task": [task]})
    text = asked.content.decode()
    assert asked.status_code == 200, asked.status_code
    assert "1 task will change" in text, text
    given: dict[str, list[str]] = {}
    for name, value in HIDDEN.findall(text):
        given.setdefault(unescape(name), []).append(unescape(value))
    done = browser.post(act, {**given, "reason": reason}, follow=True)
    assert done.status_code == 200, done.status_code
    return done.content.decode()

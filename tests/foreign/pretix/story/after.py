"""Ours is taken out."""

from __future__ import annotations

import json

from django_scopes import scope
from schema import schema
from seeing import folder, seen

from story.counting import counts
from story.shop import again, event, place


@seen("The schema is what it was before")
def same_schema() -> str:
    before, now = json.loads((folder() / "before.json").read_text())["schema"], schema()
    left, lost = sorted(set(now) - set(before)), sorted(set(before) - set(now))
    assert (left, lost) == ([], []), f"left: {left}; lost: {lost}"
    return f"{len(now)} things"


@seen("pretix takes orders and payments, and counts as before")
def as_before() -> None:
    order = place()
    with scope(organizer=event().organizer):
        order.payments.create(provider="banktransfer", amount=order.total).confirm(send_mail=False)

    assert again(order).status == "p"
    assert counts() == json.loads((folder() / "before.json").read_text())["counts"]

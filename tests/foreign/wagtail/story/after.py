"""Ours is taken out."""

from __future__ import annotations

import json

from pages.models import PressPage
from schema import schema
from seeing import folder, seen

from story.counting import counts
from story.site import in_days, publish


@seen("The schema is what it was before")
def same_schema() -> str:
    before, now = json.loads((folder() / "before.json").read_text())["schema"], schema()
    left, lost = sorted(set(now) - set(before)), sorted(set(before) - set(now))
    assert (left, lost) == ([], []), f"left: {left}; lost: {lost}"
    return f"{len(now)} things"


@seen("Wagtail publishes, unpublishes and counts as before")
def as_before() -> None:
    page = publish(PressPage, "Afterwards", expire_at=in_days(9), embargo_at=in_days(1))
    page.unpublish()
    page.delete()
    assert counts() == json.loads((folder() / "before.json").read_text())["counts"]

"""What we add to Wagtail's own work."""

from __future__ import annotations

import json

from seeing import folder, seen

from story.counting import counts

ADDED = 1  # Of a save that may concern an anchor.


def alone() -> dict[str, int]:
    """What it took without ours."""
    found: dict[str, int] = json.loads((folder() / "before.json").read_text())["counts"]
    return found


@seen("A save of a page that no run is open about takes one query more at most")
def saves() -> str:
    before, now = alone(), counts()
    more = {name: now[name] - before[name] for name in before}
    assert all(more[name] <= ADDED for name in more if not name.startswith("deletion")), (before, now)
    return ", ".join(f"{name} {before[name]} → {now[name]}" for name in before)

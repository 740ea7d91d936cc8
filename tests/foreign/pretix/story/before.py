"""The site alone: who is there, what its schema is and what its work costs."""

from __future__ import annotations

import json

from schema import schema
from seeing import folder, seen

from story.counting import counts
from story.shop import make_shop


@seen("pretix alone is set up")
def set_up() -> str:
    make_shop()
    before = {"schema": schema(), "counts": counts()}
    (folder() / "before.json").write_text(json.dumps(before))
    return f"{len(before['schema'])} things in the schema"

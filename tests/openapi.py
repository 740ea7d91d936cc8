"""The schema of the API as it is in the docs."""

from __future__ import annotations

from functools import cache
from pathlib import Path
from typing import Any

import yaml
from django.conf import settings

COMMITTED = Path(settings.BASE_DIR) / "docs" / "openapi.yaml"


@cache
def committed() -> Any:
    """Read it once, by the parser in C where there is one: the other takes seconds."""
    loader = getattr(yaml, "CSafeLoader", yaml.SafeLoader)
    return yaml.load(COMMITTED.read_text(encoding="utf-8"), Loader=loader)  # noqa: S506 (both are the safe one)

"""What timelines, tasks and steps may be called: names are stored, and are read by people."""

from __future__ import annotations

import re
from typing import Final

MAX_NAME: Final = 50

_NAME: Final = re.compile(r"[a-z][a-z0-9_]*\Z")


def is_name(name: object) -> bool:
    """Whether it is lower-case letters, digits and ``_``, begins with a letter, and is short enough."""
    return isinstance(name, str) and len(name) <= MAX_NAME and _NAME.match(name) is not None

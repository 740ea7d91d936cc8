"""What timelines, tasks and steps may be called: names are stored, and are read by people."""

from __future__ import annotations

import re
from typing import Final

MAX_NAME: Final = 50

_NAME: Final = re.compile(r"[a-z][a-z0-9_]*\Z")


def is_name(name: object) -> bool:
    """Whether it is lower-case letters, digits and ``_``, begins with a letter, and is short enough."""
    return isinstance(name, str) and len(name) <= MAX_NAME and _NAME.match(name) is not None


def snake(name: str) -> str:
    """Write the name of a class as that of a timeline: ``FailedPayment`` as ``failed_payment``."""
    return re.sub(r"(?<=[a-z0-9])(?=[A-Z])|(?<=[A-Z])(?=[A-Z][a-z])", "_", name).lower()

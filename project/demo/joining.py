"""Joining a demo: commands in another terminal get the clock, the story and the keys of the demo that runs, or ran last."""

from __future__ import annotations

import json
import os
from collections.abc import MutableMapping
from contextlib import suppress
from pathlib import Path
from typing import Final

FILE: Final = "running.json"
# What the processes of a demo have in common.
NAMES: Final = (
    "BROKER_URL",
    "DEMO_CLOCK",
    "DEMO_STORY",
    "JOBS_KEY",
    "OUTSIDE_URL",
    "PORTAL_PACE",
    "PORTAL_URL",
    "QUEUE_PREFIX",
    "SECRET_KEY",
    "WEBHOOKS_KEY",
)
_ASKING: Final = ("timeline_", "shell")


def tell(folder: Path) -> None:
    """Write down what a command needs to join: for this user's eyes only, as it has keys."""
    file = folder / FILE
    file.touch(mode=0o600)
    file.write_text(json.dumps({name: os.environ[name] for name in NAMES if name in os.environ}), encoding="utf-8")


def join(command: str, folder: Path, environ: MutableMapping[str, str]) -> None:
    """Let a command of the package join, unless it is told of another clock; any other command is left alone."""
    if command.startswith(_ASKING) and "DEMO_CLOCK" not in environ:
        with suppress(OSError, ValueError):
            told = json.loads((folder / FILE).read_text(encoding="utf-8"))
            environ.update({name: told[name] for name in NAMES if name in told and name not in environ})

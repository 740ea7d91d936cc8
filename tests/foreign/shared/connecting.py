"""The settings of the database that the run was given, as README says they should be."""

from __future__ import annotations

import os
from typing import Any
from urllib.parse import urlsplit


def database() -> dict[str, Any]:
    """Read ``FOREIGN_DATABASE``, a URL."""
    url = urlsplit(os.environ["FOREIGN_DATABASE"])
    if url.scheme == "sqlite":
        options = {"transaction_mode": "IMMEDIATE", "init_command": "PRAGMA journal_mode=WAL;", "timeout": 20}
        return {"ENGINE": "django.db.backends.sqlite3", "NAME": url.path, "OPTIONS": options}
    return {
        "ENGINE": "django.db.backends.postgresql",
        "NAME": url.path.strip("/"),
        "USER": url.username or "",
        "PASSWORD": url.password or "",
        "HOST": url.hostname or "",
        "PORT": url.port or "",
    }

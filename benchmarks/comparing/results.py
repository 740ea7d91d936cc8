"""The figures as JSON, and what a reader wants of them: medians, with their spread."""

from __future__ import annotations

import json
import os
import platform
from pathlib import Path
from statistics import median
from typing import Any, NamedTuple

import psycopg

SERVER_SETTINGS = (
    "server_version",
    "fsync",
    "synchronous_commit",
    "full_page_writes",
    "shared_buffers",
    "max_wal_size",
    "checkpoint_timeout",
    "random_page_cost",
)


class Spread(NamedTuple):
    """A figure taken several times."""

    median: float
    least: float
    most: float


def spread(values: list[float]) -> Spread:
    """Sum up."""
    return Spread(median(values), min(values), max(values))


def machine(url: str) -> dict[str, str]:
    """Tell what it was measured on."""
    with psycopg.connect(url) as connection:
        server = {name: connection.execute(f"SHOW {name}").fetchone()[0] for name in SERVER_SETTINGS}
    return {
        "CPUs": str(os.cpu_count()),
        "system": f"{platform.system()} {platform.machine()}",
        "Python": platform.python_version(),
        **{f"PostgreSQL {name}" if name != "server_version" else "PostgreSQL": value for name, value in server.items()},
    }


def write(results: dict[str, Any], output: Path) -> None:
    """Keep them."""
    output.write_text(json.dumps(results, indent=1, ensure_ascii=False) + "\n", encoding="utf-8")


def read(output: Path) -> dict[str, Any]:
    """Give what was kept."""
    found: dict[str, Any] = json.loads(output.read_text(encoding="utf-8"))
    return found

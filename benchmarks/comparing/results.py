"""The figures as JSON, and what a reader wants of them: medians, with their spread."""

from __future__ import annotations

import json
import os
import platform
import re
from datetime import UTC, datetime
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
PLANNED = ("runs", "rows", "bulk", "jobs", "workers", "window", "sizes")
SAID = ("title", "package", "version", "python", "slots", "together", "notes", "settings", "not_offered")
NUMBERS = re.compile(r"\[[^\[\]{}\"]*\]")


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


def shown(results: dict[str, Any]) -> dict[str, Any]:
    """Leave what the page shows: of each figure the median, the least and the most."""
    plan = {name: results["plan"][name] for name in PLANNED}
    peers = {
        name: {
            **{said: peer[said] for said in SAID},
            "values": {measure: _shown(values) for measure, values in peer["values"].items()},
            "counted": [found] if (found := worst(peer["counted"])) else [],
        }
        for name, peer in results["peers"].items()
    }
    return {**results, "plan": plan, "peers": peers}


def put_beside(published: dict[str, Any], results: dict[str, Any], how: str) -> dict[str, Any]:
    """Put drains measured by themselves beside what is published, in place of others that were."""
    found = shown(results)
    for peer in found["peers"].values():
        for part in ("values", "not_offered"):
            peer[part] = {name: value for name, value in peer[part].items() if name.startswith("drain.")}
    return {**published, "beside": {"when": f"{datetime.now(UTC):%Y-%m-%d}", "how": how, **found}}


def worst(counted: list[dict[str, Any]]) -> dict[str, Any] | None:
    """Find the drain whose jobs wrote least like what is recorded of them; None, where all did as they say."""
    off = [found for found in counted if found["counted"] != found["completed"]]
    return max(off, key=lambda found: abs(found["counted"] - found["completed"]), default=None)


def write(results: dict[str, Any], output: Path) -> None:
    """Keep them; the values of a figure on one line."""
    output.parent.mkdir(parents=True, exist_ok=True)
    text = json.dumps(results, indent=1, ensure_ascii=False)
    output.write_text(NUMBERS.sub(lambda found: " ".join(found[0].split()), text) + "\n", encoding="utf-8")


def read(output: Path) -> dict[str, Any]:
    """Give what was kept."""
    found: dict[str, Any] = json.loads(output.read_text(encoding="utf-8"))
    return found


def _shown(values: list[float]) -> list[float]:
    digits = [round(value, 4) for value in spread(values)]
    return sorted(digits) if len(values) > 1 else digits[:1]

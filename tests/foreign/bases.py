"""
The database of a host alone, kept once it is migrated: pretix takes minutes to get there.

Kept in the environment's folder, so that it goes when the pins change.
"""

from __future__ import annotations

import hashlib
import shutil
import subprocess
from pathlib import Path
from urllib.parse import urlsplit

from tests.foreign.environments import FOLDER, KEPT

TOOLS = ("pg_dump", "psql")


def restore(host: str, url: str) -> bool:
    """Put back what was kept; False if nothing was, or the tools of PostgreSQL are not there."""
    kept = _kept(host, url)
    if not kept.exists():
        return False
    if kept.suffix == ".sqlite3":
        shutil.copy(kept, urlsplit(url).path)
        return True
    command = ["psql", "--quiet", "--no-psqlrc", "--set", "ON_ERROR_STOP=1", "--file", str(kept), "--dbname", url]
    return subprocess.run(command, stdout=subprocess.DEVNULL, check=True).returncode == 0


def keep(host: str, url: str) -> None:
    """Keep what a database has now, if it can be kept."""
    kept = _kept(host, url)
    if kept.suffix == ".sqlite3":
        shutil.copy(urlsplit(url).path, kept)
    elif all(shutil.which(tool) for tool in TOOLS):
        part = kept.with_suffix(".part")
        command = ["pg_dump", "--no-owner", "--no-privileges", "--file", str(part), url]
        if (
            subprocess.run(command, stderr=subprocess.DEVNULL, check=False).returncode == 0
        ):  # It may be older than the server.
            part.rename(kept)


def _kept(host: str, url: str) -> Path:
    migrations = sorted((FOLDER / host).rglob("migrations/*.py"))
    mark = hashlib.sha256(b"".join(file.read_bytes() for file in migrations)).hexdigest()[:8]
    return KEPT / host / f"base-{mark}{'.sqlite3' if url.startswith('sqlite') else '.sql'}"

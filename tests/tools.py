"""
What ``make test-all`` uses beside Python, and what is not asked without it: ``python -m tests.tools`` says which is missing.

Where ``CI`` is set, nothing may be missing: it ends with status 1.
"""

from __future__ import annotations

import os
import shutil
import socket
import subprocess
import sys
from collections.abc import Callable
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path
from typing import Final
from urllib.parse import urlsplit

REDIS: Final = os.environ.get("REDIS_URL", "redis://127.0.0.1:6379/0")
NEWEST: Final = os.environ.get("NEWEST_PYTHON", "python3.13")
AMQP: Final = os.environ.get("AMQP_URL", "amqp://guest:guest@127.0.0.1:5672//")


@dataclass(frozen=True, kw_only=True)
class Tool:
    """
    Something that some tests need.

    Args:
        name: As people call it.
        found: Tells whether it is there.
        without: What is not asked if it is missing.
        remedy: How to have it.
    """

    name: str
    found: Callable[[], bool]
    without: str
    remedy: str


def chromium() -> str | None:
    """The browser: if it is there, the one that has neither windows nor services of its own and takes half as much."""
    return shutil.which("chromium-headless-shell") or shutil.which("chromium")


def faketime() -> Path | None:
    """The library of libfaketime, wherever Debian keeps it."""
    return next(iter(sorted(Path("/usr/lib").glob("*/faketime/libfaketimeMT.so.1"))), None)


def runs(python: str) -> bool:
    """Whether there is such an interpreter. A name may lead to what only says that there is none."""
    found = shutil.which(python)
    return found is not None and subprocess.run([found, "--version"], capture_output=True, check=False).returncode == 0


def has_node() -> bool:
    """Whether there is a Node that has ``fetch``."""
    found = shutil.which("node")
    asked = [found or "", "--eval", "process.exit(typeof fetch === 'function' ? 0 : 1)"]
    return found is not None and subprocess.run(asked, check=False).returncode == 0


def answers(url: str) -> bool:
    """Whether somebody listens where a URL says."""
    there = urlsplit(url)
    try:
        socket.create_connection((there.hostname or "127.0.0.1", there.port or 0), timeout=2).close()
    except OSError:
        return False
    return True


TOOLS: Final = {
    "chromium": Tool(
        name="Chromium and its driver",
        found=lambda: bool(chromium() and shutil.which("chromedriver")),
        without="all pages in a browser",
        remedy="apt-get install chromium chromium-driver",
    ),
    "redis": Tool(
        name="a Redis",
        found=lambda: answers(REDIS),
        without="Celery over Redis",
        remedy="start one on 127.0.0.1:6379, or name one in REDIS_URL",
    ),
    "rabbitmq": Tool(
        name="a RabbitMQ",
        found=lambda: answers(AMQP),
        without="Celery over RabbitMQ",
        remedy="start one on 127.0.0.1:5672, or name one in AMQP_URL",
    ),
    "redis-server": Tool(
        name="redis-server",
        found=lambda: shutil.which("redis-server") is not None,
        without="chaos over Celery, whose broker is cut off and ended",
        remedy="apt-get install redis-server",
    ),
    "faketime": Tool(
        name="libfaketime",
        found=lambda: faketime() is not None,
        without="chaos, where clocks of processes are moved",
        remedy="apt-get install faketime",
    ),
    "gevent": Tool(
        name="gevent",
        found=lambda: find_spec("gevent") is not None,
        without="Celery's pool of green threads",
        remedy="pip install gevent",
    ),
    "node": Tool(
        name="Node 18 or later",
        found=has_node,
        without="the demo's worker in Node, which takes jobs over HTTP",
        remedy="apt-get install nodejs",
    ),
    "xgettext": Tool(
        name="xgettext",
        found=lambda: shutil.which("xgettext") is not None,
        without="whether the catalogues have all texts",
        remedy="apt-get install gettext",
    ),
    "newest": Tool(
        name="Python 3.13",
        found=lambda: runs(NEWEST),
        without="the newest Python and Django",
        remedy="install it, or name its path in NEWEST_PYTHON",
    ),
}


def main() -> None:
    """Say what is missing, what is not asked then, and how to have it."""
    missing = [tool for tool in TOOLS.values() if not tool.found()]
    for tool in missing:
        print(f"Without {tool.name}, these are skipped: {tool.without}. To have it: {tool.remedy}.")
    if not missing:
        print("Everything that some of the tests need is there.")
    if missing and "CI" in os.environ:
        sys.exit("Where CI is set, nothing may be skipped.")


if __name__ == "__main__":
    main()

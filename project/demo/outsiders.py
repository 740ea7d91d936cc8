"""Starts those whom the site calls, each as a process on loopback, and asks them what they have done."""

from __future__ import annotations

import json
import os
import socket
from contextlib import ExitStack
from time import monotonic, sleep
from typing import Any
from urllib.error import URLError
from urllib.request import urlopen

from django.conf import settings

from project.demo.processes import start_process


def start(stack: ExitStack, name: str, *options: str) -> str:
    """
    Start the module of that name, and wait until it answers.

    Returns:
        Its address.

    Raises:
        SystemExit: if it does not.
    """
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    process = start_process(stack, name, f"project.demo.{name}", "--port", str(port), *options)
    url = f"http://127.0.0.1:{port}"
    give_up = monotonic() + 120
    while monotonic() < give_up and process.poll() is None:
        try:
            read_books(url)
            return url
        except (URLError, OSError):
            sleep(0.05)
    raise SystemExit(f"What the site calls did not come up; see {name}.log in the demo's folder.")


def start_portal(
    stack: ExitStack, *, slow: float = 0.05, failing: float = 0.02, losing: float = 0.02, seed: int = 1
) -> str:
    """Start the portal on which appointments are booked, and tell this process and those that follow where it is."""
    rates = f"--failing {failing} --losing {losing} --slow {slow} --most-a-second 150 --by-day-only"
    rates += f" --pace {settings.PORTAL_PACE} --seed {seed}"
    url = start(stack, "portal", *rates.split())
    settings.PORTAL_URL = os.environ["PORTAL_URL"] = url
    return url


def read_books(url: str) -> dict[str, Any]:
    """Ask one of them what it has done."""
    with urlopen(f"{url}/books", timeout=20) as answer:  # noqa: S310 (the demo's own)
        told: dict[str, Any] = json.load(answer)
    return told

"""What a worker is called on the rows it runs."""

from __future__ import annotations

import os
import socket
from functools import cache
from secrets import token_hex
from typing import Final

from timeline.engine.running import MAX_WORKER

LENGTH: Final = 2  # Bytes.


def worker_name(name: str = "") -> str:
    """
    Tell this process apart from any other, also from one that was called the same before it: what runs in a container has
    the same host name and process id each time it is started.

    Args:
        name: What it is to be called; left out: host name and process id.

    Returns:
        That, and something that is never said twice: ``host:4711:ab12``. After a fork another.
    """
    return _named(name, os.getpid())


@cache
def _named(name: str, pid: int) -> str:
    end = f":{token_hex(LENGTH)}"
    return (name or f"{socket.gethostname()}:{pid}")[: MAX_WORKER - len(end)] + end

"""The name of a worker on the rows that it runs."""

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
    Make a name for this process that no other process has, not even an earlier one with the same wanted name: in a container, a
    process has the same host name and process id each time it is started.

    Args:
        name: The wanted name; left out: host name and process id.

    Returns:
        The name with a random suffix: ``host:4711:ab12``. After a fork the suffix is another one.
    """
    return _named(name, os.getpid())


@cache
def _named(name: str, pid: int) -> str:
    end = f":{token_hex(LENGTH)}"
    return (name or f"{socket.gethostname()}:{pid}")[: MAX_WORKER - len(end)] + end

"""What a worker is called on the rows it runs."""

from __future__ import annotations

import os
import socket


def worker_name() -> str:
    """Host name and process id."""
    return f"{socket.gethostname()}:{os.getpid()}"

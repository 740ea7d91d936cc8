"""The site under uvicorn, in a thread of the tests."""

from __future__ import annotations

import gc
import socket
import threading
import time
import warnings
from collections.abc import Iterator
from contextlib import contextmanager

import uvicorn
from django.contrib.staticfiles.handlers import ASGIStaticFilesHandler
from django.core.asgi import get_asgi_application


@contextmanager
def uvicorn_serving(port: int = 0) -> Iterator[str]:
    """
    Serve within the block. Gives the address.

    Args:
        port: On loopback; 0: a free one.
    """
    config = uvicorn.Config(
        ASGIStaticFilesHandler(get_asgi_application()),
        lifespan="off",
        ws="none",
        log_level="warning",
        timeout_graceful_shutdown=1,
    )
    server = uvicorn.Server(config)
    with socket.socket() as listening:
        listening.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        listening.bind(("127.0.0.1", port))
        thread = threading.Thread(target=server.run, kwargs={"sockets": [listening]}, daemon=True)
        thread.start()
        until = time.monotonic() + 120
        while not server.started and time.monotonic() < until:
            time.sleep(0.01)
        try:
            yield f"http://127.0.0.1:{listening.getsockname()[1]}"
        finally:
            server.should_exit = True
            thread.join(120)
            with (
                warnings.catch_warnings()
            ):  # Requests that were cut off leave what they were read into to the collector.
                warnings.simplefilter("ignore", ResourceWarning)
                gc.collect()

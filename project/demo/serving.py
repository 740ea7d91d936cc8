"""A small server on loopback, for those whom the demo's site calls: in threads of this process, or as a process of its own."""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from threading import Thread
from typing import Any, Self


class Answering(ThreadingHTTPServer):
    """
    The server. It outlives its callers.

    Args:
        port: On loopback; 0: a free one.
        calls: What answers a call.
    """

    daemon_threads = True
    request_queue_size = 64

    def __init__(self, port: int, calls: type[Call]) -> None:
        super().__init__(("127.0.0.1", port), calls)

    @property
    def url(self) -> str:
        """Its address."""
        return f"http://127.0.0.1:{self.server_address[1]}"

    def handle_error(self, request: object, client_address: object) -> None:
        """A caller that was killed is nothing to tell of."""

    @contextmanager
    def answering(self) -> Iterator[Self]:
        """Answer in threads within the block."""
        thread = Thread(target=self.serve_forever, kwargs={"poll_interval": 0.02}, daemon=True)
        thread.start()
        try:
            yield self
        finally:
            self.shutdown()
            thread.join()
            self.server_close()

    def answer_for_ever(self) -> None:
        """Answer until Ctrl-C, or a signal that ends the process."""
        try:
            with suppress(KeyboardInterrupt):
                self.serve_forever(poll_interval=0.05)
        finally:
            self.server_close()


class Call(BaseHTTPRequestHandler):
    """One call."""

    timeout = 10

    def read(self) -> dict[str, Any]:
        """Give the JSON that came with it."""
        text = self.rfile.read(int(self.headers.get("Content-Length", 0)))
        said: dict[str, Any] = json.loads(text) if text.startswith(b"{") else {}
        return said

    def answer(self, status: int, said: dict[str, Any]) -> None:
        """Answer with JSON."""
        self.send(status, "application/json", json.dumps(said).encode())

    def send(self, status: int, kind: str, body: bytes) -> None:
        """Answer."""
        self.send_response(status)
        self.send_header("Content-Type", kind)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, format: str, *args: object) -> None:
        """Nothing: the books say it."""

"""
A receiver of webhooks, as somebody else would write one: a small server on loopback that verifies what comes, and shows it.

``python -m project.demo.receiver --port 8012 --secret FILE``. What it got is at ``/``; ``GET /books`` counts it.
"""

from __future__ import annotations

import argparse
import json
import signal
import sys
from collections import deque
from html import escape
from pathlib import Path
from threading import Lock
from typing import Any, Final

from standardwebhooks import Webhook, WebhookVerificationError

if __name__ == "__main__":  # As a process it needs nothing of the site.
    sys.path.insert(0, str(Path(__file__).resolve().parent.parent.parent))

from project.demo.serving import Answering, Call

SHOWN: Final = 50
MOST: Final = 1_000_000  # Bytes of a request.
_PAGE: Final = """<!doctype html>
<html lang="en"><head><meta charset="utf-8"><meta name="viewport" content="width=device-width, initial-scale=1">
<title>Webhooks that came</title></head><body><h1>Webhooks that came</h1>
<p>Verified: {verified}. Came again: {repeated}. Refused, as the signature is wrong: {refused}. Reload the page for more.</p>
<ol reversed>{rows}</ol></body></html>"""


class Receiver(Answering):
    """
    The server.

    Args:
        port: On loopback; 0: a free one.
        secret: File with the secret of the endpoint, which is made once this answers.
    """

    def __init__(self, port: int, secret: Path) -> None:
        super().__init__(port, _Calls)
        self.counts = {"verified": 0, "repeated": 0, "refused": 0}
        self._secret = secret
        self._seen: set[str] = set()
        self._last = deque[dict[str, Any]](maxlen=SHOWN)
        self._lock = Lock()

    def take(self, body: bytes, headers: dict[str, str]) -> bool:
        """Verify the bytes as they came, and keep what is new; false: it is not from whom it says."""
        try:
            told = Webhook(self._secret.read_text(encoding="utf-8")).verify(body, headers)
        except (WebhookVerificationError, OSError, ValueError):
            return self._count("refused", accepted=False)
        with self._lock:
            is_new = headers["webhook-id"] not in self._seen
            self._seen.add(headers["webhook-id"])
            if is_new:
                self._last.appendleft(told)
        return self._count("verified" if is_new else "repeated", accepted=True)

    def page(self) -> str:
        """What it got, the latest first."""
        with self._lock:
            rows = "".join(f"<li><pre>{escape(json.dumps(told, indent=1))}</pre></li>" for told in self._last)
            return _PAGE.format(**self.counts, rows=rows)

    def _count(self, what: str, *, accepted: bool) -> bool:
        with self._lock:
            self.counts[what] += 1
        return accepted


class _Calls(Call):
    server: Receiver

    def do_GET(self) -> None:
        if self.path == "/books":
            self.answer(200, dict(self.server.counts))
        else:
            self.send(200, "text/html; charset=utf-8", self.server.page().encode())

    def do_POST(self) -> None:
        length = self.headers.get("Content-Length", "")
        if not (length.isascii() and length.isdigit()) or int(length) > MOST:
            self.send(413, "text/plain", b"")
            return
        headers = {name.lower(): value for name, value in self.headers.items()}
        self.send(204 if self.server.take(self.rfile.read(int(length)), headers) else 400, "text/plain", b"")


if __name__ == "__main__":
    parser = argparse.ArgumentParser()
    parser.add_argument("--port", type=int, default=8012)
    parser.add_argument("--secret", type=Path, required=True)
    given = parser.parse_args()
    signal.signal(signal.SIGTERM, lambda *_args: sys.exit())
    Receiver(given.port, given.secret).answer_for_ever()

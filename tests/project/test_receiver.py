"""The demo's receiver of webhooks: it believes only what is signed, shows it once, and says how much came."""

from __future__ import annotations

import json
import socket
from datetime import UTC, datetime, timedelta

import httpx
import pytest
from standardwebhooks import Webhook

from project.demo.receiver import MOST, Receiver

SECRET = "whsec_b2YgdGhlIHRlc3RzIG9ubHk="  # noqa: S105
BODY = json.dumps({"type": "task.completed", "data": {"task": "<b>trial.remind</b>"}})


def signed(body=BODY, secret=SECRET, at=None):
    at = at or datetime.now(UTC)
    signature = Webhook(secret).sign("msg_1", at, body)
    return {"webhook-id": "msg_1", "webhook-timestamp": str(int(at.timestamp())), "webhook-signature": signature}


@pytest.fixture
def site(tmp_path):
    file = tmp_path / "secret"
    file.write_text(SECRET)
    with Receiver(0, file).answering() as receiver, httpx.Client(base_url=receiver.url) as client:
        yield client


class TestReceiver:
    def test_shows_what_is_signed_once(self, site):
        assert [site.post("/hook", content=BODY, headers=signed()).status_code for _ in range(2)] == [204, 204]

        assert site.get("/books").json() == {"verified": 1, "repeated": 1, "refused": 0}
        assert site.get("/").text.count("&lt;b&gt;trial.remind&lt;/b&gt;") == 1

    @pytest.mark.parametrize(
        "headers",
        [
            {},
            signed("another body"),
            signed(secret="whsec_YW5vdGhlciBzZWNyZXQgb2YgdGVzdHM="),  # noqa: S106
            signed(at=datetime.now(UTC) - timedelta(hours=1)),
            signed() | {"webhook-timestamp": "soon"},
        ],
    )
    def test_refuses_what_is_not(self, site, headers):
        assert site.post("/hook", content=BODY, headers=headers).status_code == 400

        assert site.get("/books").json() == {"verified": 0, "repeated": 0, "refused": 1}
        assert "trial.remind" not in site.get("/").text

    @pytest.mark.parametrize("length", [str(MOST + 1), "-1", "x", ""])
    def test_reads_no_more_than_a_webhook_may_be_long(self, site, length):
        with socket.create_connection((site.base_url.host, site.base_url.port), timeout=5) as raw:
            raw.sendall(f"POST /hook HTTP/1.1\r\nContent-Length: {length}\r\n\r\n".encode())

            assert b" 413 " in raw.recv(100)

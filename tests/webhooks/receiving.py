"""A receiver: a server on this machine that keeps what it was sent, and answers as it is told."""

from __future__ import annotations

import json
import ssl
import threading
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any, Self

from cryptography import x509
from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.hazmat.primitives.serialization import Encoding, NoEncryption, PrivateFormat
from cryptography.x509.oid import NameOID
from standardwebhooks import Webhook

from timeline import IGNORE, OPEN, Machine, Then, never, on, task


class Told(Machine):
    """Tells two states, and an event."""

    entity = "testapp.Order"
    starts_on = "told.begun"
    initial = "new"
    table = {
        "new": {"told.asked": "asked", "told.quiet": "quiet"},
        "quiet": {"told.asked": "asked"},
        "asked": {"told.answered": "done"},
        "done": {},
        OPEN: {"told.seen": IGNORE, "told.dropped": "dropped"},
        "dropped": {},
    }
    timers = {("new", "asked"): never}
    tells = ("done", "dropped", "told.asked")

    @task(on("quiet", hours=1), atomic=False)
    def ask(self, order: Any) -> Then:
        return Then("told.asked")


def self_signed(folder: Path) -> str:
    """Make a certificate for ``localhost`` that signed itself, and its key; give the path of the file with both."""
    key = ec.generate_private_key(ec.SECP256R1())
    name = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, "localhost")])
    made = datetime.now(UTC)
    certificate = (
        x509.CertificateBuilder()
        .subject_name(name)
        .issuer_name(name)
        .public_key(key.public_key())
        .serial_number(x509.random_serial_number())
        .not_valid_before(made - timedelta(days=1))
        .not_valid_after(made + timedelta(days=1))
        .add_extension(x509.SubjectAlternativeName([x509.DNSName("localhost")]), critical=False)
        .add_extension(x509.BasicConstraints(ca=True, path_length=None), critical=True)
        .sign(key, hashes.SHA256())
    )
    private = key.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption())
    file = folder / "receiver.pem"
    file.write_bytes(certificate.public_bytes(Encoding.PEM) + private)
    return str(file)


class Request:
    """What was sent."""

    def __init__(self, path: str, headers: dict[str, str], body: str) -> None:
        self.path = path
        self.headers = {name.lower(): value for name, value in headers.items()}
        self.body = body

    @property
    def id(self) -> str:
        return self.headers["webhook-id"]

    @property
    def data(self) -> dict[str, Any]:
        return json.loads(self.body)["data"]

    def verified_by(self, secret: str) -> dict[str, Any]:
        return Webhook(secret).verify(self.body, self.headers)


class _Server(ThreadingHTTPServer):
    daemon_threads = True
    request_queue_size = 100

    def handle_error(self, *_args: Any) -> None:
        pass


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    disable_nagle_algorithm = True
    receiver: Receiver

    def do_POST(self) -> None:
        length = int(self.headers.get("content-length", 0))
        request = Request(self.path, dict(self.headers), self.rfile.read(length).decode())
        self.receiver.requests.append(request)
        try:
            self.answer(self.receiver.answer(request))
        except OSError:
            self.close_connection = True

    def answer(self, said: Any) -> None:
        if callable(said):
            self.close_connection = True
            said(self.wfile)
            return
        status, body, *headers = said if isinstance(said, tuple) else (said, b"")
        self.send_response(status)
        self.send_header("Content-Length", str(len(body)))
        for name, value in headers:
            self.send_header(name, value)
        if 300 <= status < 400:
            self.send_header("Location", "http://169.254.169.254/latest/meta-data/")
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *_args: Any) -> None:
        pass


class Receiver:
    """Answers 204, or as ``answer(request)`` says: a status, or a status, a body and any headers, or bytes as they are."""

    def __init__(self, certificate: str = "") -> None:
        self.ca_file = certificate
        self._server = _Server(("127.0.0.1", 0), type("Handler", (_Handler,), {"receiver": self}))
        self.url = f"http://127.0.0.1:{self._server.server_address[1]}"
        if certificate:
            context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
            context.load_cert_chain(certificate)
            self._server.socket = context.wrap_socket(self._server.socket, server_side=True)
            self.url = self.url.replace("http://127.0.0.1", "https://localhost")
        self.reset()

    def reset(self) -> None:
        self.requests: list[Request] = []
        self.answer: Callable[[Request], Any] = lambda _request: 204

    def __enter__(self) -> Self:
        threading.Thread(target=self._server.serve_forever, kwargs={"poll_interval": 0.05}, daemon=True).start()
        return self

    def __exit__(self, *_error: object) -> None:
        self._server.shutdown()
        self._server.server_close()

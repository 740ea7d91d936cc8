"""A pool of connections as PostgreSQL's clients see one: each is told another process id than the server's own."""

from __future__ import annotations

import socket
import threading
from contextlib import suppress
from typing import Any

BACKEND_KEY = b"K"  # PostgreSQL's manual, "Message Formats": BackendKeyData, with the process id after type and length.


class Pooler:
    """
    Hands bytes on between clients on a port of its own and a server, within a ``with`` block.

    Args:
        settings: Django's settings of the database behind it.
    """

    def __init__(self, settings: dict[str, Any]) -> None:
        self._settings = dict(settings)
        self._sockets: list[socket.socket] = []
        self._door = socket.create_server(("127.0.0.1", 0))
        self.port = self._door.getsockname()[1]
        self.connections = 0

    def __enter__(self) -> Pooler:
        threading.Thread(target=self._accept, daemon=True).start()
        return self

    def __exit__(self, *_: object) -> None:
        for one in [self._door, *self._sockets]:
            _hang_up(one)

    def _accept(self) -> None:
        while True:
            try:
                client, _address = self._door.accept()
            except OSError:
                return
            server = self._connect()
            self.connections += 1
            self._sockets += [client, server]
            threading.Thread(target=_hand_on, args=(client, server), daemon=True).start()
            threading.Thread(target=_hand_on, args=(server, client, True), daemon=True).start()

    def _connect(self) -> socket.socket:
        host, port = self._settings["HOST"] or "localhost", self._settings["PORT"] or 5432
        if not host.startswith("/"):
            return socket.create_connection((host, int(port)))
        server = socket.socket(socket.AF_UNIX)
        server.connect(f"{host}/.s.PGSQL.{port}")
        return server


def _hand_on(source: socket.socket, target: socket.socket, disguise: bool = False) -> None:
    try:
        while disguise:
            head = _read(source, 5)
            body = _read(source, int.from_bytes(head[1:], "big") - 4)
            if disguise := head[:1] != BACKEND_KEY:
                target.sendall(head + body)
            else:
                target.sendall(head + bytes([body[0] ^ 1]) + body[1:])
        while piece := source.recv(65536):
            target.sendall(piece)
    except OSError:
        pass
    finally:
        _hang_up(target)


def _hang_up(one: socket.socket) -> None:
    """Close it, also for a thread that waits for something to read."""
    with suppress(OSError):
        one.shutdown(socket.SHUT_RDWR)
    one.close()


def _read(source: socket.socket, length: int) -> bytes:
    read = b""
    while len(read) < length:
        if not (piece := source.recv(length - len(read))):
            raise ConnectionResetError
        read += piece
    return read

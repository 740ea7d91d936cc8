"""Just enough of PostgreSQL's protocol to see a client commit (PostgreSQL's manual, "Message Formats")."""

from __future__ import annotations

import re
from typing import Final

_WRITES: Final = re.compile(rb"\b(INSERT|UPDATE|DELETE|MERGE)\b", re.IGNORECASE)
_BEGINS: Final = re.compile(rb"\s*(BEGIN|START\s+TRANSACTION)\b", re.IGNORECASE)
_COMMITS: Final = re.compile(rb"\s*(COMMIT|END)\b", re.IGNORECASE)
_ENDS: Final = re.compile(rb"\s*(COMMIT|END|ROLLBACK(?!\s+TO)|ABORT)\b", re.IGNORECASE)


class Frontend:
    """Reads what one client sends, from its first byte on. TLS is not understood: connect with ``sslmode=disable``."""

    def __init__(self) -> None:
        self._rest = b""
        self._greeted = False
        self._in_transaction = False
        self._statements: dict[bytes, bytes] = {}
        self._bound: dict[bytes, bytes] = {}
        self._committing = False

    def feed(self, piece: bytes) -> bool:
        """
        Read on.

        Returns:
            Whether this piece completes what makes the server commit: COMMIT itself, or a statement that writes outside of a
            transaction, which commits by itself.
        """
        self._rest += piece
        commits = False
        while (length := self._length()) and len(self._rest) >= length:
            message, self._rest = self._rest[:length], self._rest[length:]
            if not self._greeted:
                self._greeted = True
            else:
                commits |= self._read(message[:1], message[5:])
        return commits

    def _length(self) -> int:
        """Of the next message; 0 if its head has not come."""
        head = 1 if self._greeted else 0
        if len(self._rest) < head + 4:
            return 0
        return head + int.from_bytes(self._rest[head : head + 4], "big")

    def _read(self, kind: bytes, body: bytes) -> bool:
        """Whether the server commits once it has this message."""
        if kind == b"Q":
            return self._executes(body)
        if kind == b"P":
            name, _, rest = body.partition(b"\x00")
            self._statements[name] = rest.partition(b"\x00")[0]
        elif kind == b"B":
            portal, _, rest = body.partition(b"\x00")
            self._bound[portal] = self._statements.get(rest.partition(b"\x00")[0], b"")
        elif kind == b"E":
            self._committing |= self._executes(self._bound.get(body.partition(b"\x00")[0], b""))
        elif kind == b"S":
            commits, self._committing = self._committing, False
            return commits
        return False

    def _executes(self, query: bytes) -> bool:
        alone = not self._in_transaction
        if _BEGINS.match(query):
            self._in_transaction = True
        elif _ENDS.match(query):
            self._in_transaction = False
            return bool(_COMMITS.match(query))
        return alone and bool(_WRITES.search(query))

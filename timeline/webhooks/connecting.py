"""Connect: to addresses that were looked at, by no other way. No proxy and no setting of the environment is asked."""

from __future__ import annotations

import asyncio
import socket
import ssl
from collections.abc import Iterable
from functools import cache
from typing import Any, Final

import httpcore
import httpx

from timeline.webhooks.conf import get_settings
from timeline.webhooks.guarding import Refused, check_address

KEPT_ALIVE: Final = 5.0  # Seconds without a delivery after which a connection is closed.


class CheckedBackend(httpcore.AsyncNetworkBackend):
    """
    Resolves a name once, refuses it if one of its addresses is not public, and connects to what it has looked at.

    Certificates and ``Host`` are about the name all the same: that is above this.
    """

    def __init__(self) -> None:
        self._inner = httpcore.AnyIOBackend()

    async def connect_tcp(
        self,
        host: str,
        port: int,
        timeout: float | None = None,
        local_address: str | None = None,
        socket_options: Iterable[Any] | None = None,
    ) -> httpcore.AsyncNetworkStream:
        """
        Connect to the first address that answers.

        Raises:
            Refused: if one of them may not be called.
            httpcore.ConnectError: if none answers.
        """
        problem: Exception = httpcore.ConnectError()
        for address in await resolved(host, port):
            try:
                return await self._inner.connect_tcp(address, port, timeout, local_address, socket_options)
            except (httpcore.ConnectError, httpcore.ConnectTimeout) as error:
                problem = error
        raise problem

    async def connect_unix_socket(self, *_args: Any, **_extra: Any) -> httpcore.AsyncNetworkStream:
        """Refuse: nothing of this machine is called."""
        raise Refused("unix")

    async def sleep(self, seconds: float) -> None:
        """Wait."""
        await asyncio.sleep(seconds)


async def resolved(host: str, port: int) -> list[str]:
    """
    Look a name up, once.

    Raises:
        Refused: if one of its addresses may not be called.
        OSError: if it has none.
    """
    found = await asyncio.get_running_loop().getaddrinfo(host, port, type=socket.SOCK_STREAM)
    addresses = list(dict.fromkeys(str(where[0]) for *_kind, where in found))
    for address in addresses:
        check_address(address)
    if not addresses:
        raise socket.gaierror(host)
    return addresses


def make_pool() -> httpcore.AsyncConnectionPool:
    """Make what keeps connections, of one event loop. The certificates are those that httpx trusts, and ``CA_FILE``."""
    given = get_settings()
    return httpcore.AsyncConnectionPool(
        ssl_context=_trusting(given.CA_FILE),
        max_connections=given.CONCURRENCY + 8,
        max_keepalive_connections=given.CONCURRENCY,
        keepalive_expiry=KEPT_ALIVE,
        network_backend=CheckedBackend(),
    )


@cache
def _trusting(file: str | None) -> ssl.SSLContext:
    """Trust the usual certificates, and those of a file."""
    context: ssl.SSLContext = httpx.create_ssl_context(trust_env=False)
    if file is not None:
        context.load_verify_locations(file)
    return context

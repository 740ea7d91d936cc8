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

    A look-up takes a thread until it has an answer, also if nobody waits for it any more. So who wants the same name meanwhile
    waits for the same look-up: a name without an answer takes one thread, and holds up no other.

    Certificates and ``Host`` are about the name all the same: that is above this.
    """

    def __init__(self) -> None:
        self._inner = httpcore.AnyIOBackend()
        self._lookups: dict[tuple[str, int], asyncio.Task[list[str]]] = {}

    async def connect_tcp(
        self,
        host: str,
        port: int,
        timeout: float | None = None,
        local_address: str | None = None,
        socket_options: Iterable[Any] | None = None,
    ) -> httpcore.AsyncNetworkStream:
        """
        Connect to the first address that answers. One that says nothing leaves time for those after it.

        Raises:
            Refused: if one of them may not be called.
            httpcore.ConnectError: if none answers.
        """
        problem: Exception = httpcore.ConnectError()
        addresses = await self._resolved(host, port)
        share = get_settings().TIMEOUT.total_seconds() / (len(addresses) + 1)
        for place, address in enumerate(addresses, 1):
            most = share if place < len(addresses) else timeout
            try:
                return await self._inner.connect_tcp(address, port, most, local_address, socket_options)
            except (httpcore.ConnectError, httpcore.ConnectTimeout) as error:
                problem = error
        raise problem

    async def _resolved(self, host: str, port: int) -> list[str]:
        """Look a name up, or wait for who does so already."""
        name = (host, port)
        if (lookup := self._lookups.get(name)) is None:
            lookup = self._lookups[name] = asyncio.create_task(resolved(host, port))
            lookup.add_done_callback(lambda done: self._end(name, done))
        return await asyncio.shield(lookup)

    def _end(self, name: tuple[str, int], lookup: asyncio.Task[list[str]]) -> None:
        del self._lookups[name]
        if not lookup.cancelled():
            lookup.exception()  # So that nobody is told of it where all have stopped waiting.

    async def aclose(self) -> None:
        """Wait for no look-up any more."""
        lookups = list(self._lookups.values())
        for lookup in lookups:
            lookup.cancel()
        await asyncio.gather(*lookups, return_exceptions=True)

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


class Pool(httpcore.AsyncConnectionPool):
    """Keeps connections, and closes what they are made with."""

    def __init__(self, backend: CheckedBackend, **options: Any) -> None:
        super().__init__(network_backend=backend, **options)
        self._backend = backend

    async def aclose(self) -> None:
        """Close all."""
        await super().aclose()
        await self._backend.aclose()


def make_pool() -> Pool:
    """Make what keeps connections, of one event loop. The certificates are those that httpx trusts, and ``CA_FILE``."""
    given = get_settings()
    return Pool(
        CheckedBackend(),
        ssl_context=_trusting(given.CA_FILE),
        max_connections=given.CONCURRENCY + 8,
        max_keepalive_connections=given.CONCURRENCY,
        keepalive_expiry=KEPT_ALIVE,
    )


@cache
def _trusting(file: str | None) -> ssl.SSLContext:
    """Trust the usual certificates, and those of a file."""
    context: ssl.SSLContext = httpx.create_ssl_context(trust_env=False)
    if file is not None:
        context.load_verify_locations(file)
    return context

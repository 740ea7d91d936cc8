"""Connect: to addresses that were looked at, by no other way. No proxy and no setting of the environment is asked."""

from __future__ import annotations

import asyncio
import ipaddress
import re
import socket
import ssl
from collections.abc import Iterable
from functools import cache
from ipaddress import IPv4Address, IPv4Network, IPv6Address, IPv6Network
from typing import Any, Final, NamedTuple
from urllib.parse import urlsplit

import httpcore
import httpx
from django.utils.translation import gettext as _

from timeline.webhooks.conf import get_settings
from timeline.webhooks.models import MAX_URL

# One label of a name; the last one begins with a letter, so that no number is taken for a name.
_LABEL: Final = r"[a-z0-9](?:[a-z0-9-]{0,61}[a-z0-9])?"
_NAME: Final = re.compile(rf"(?:{_LABEL}\.)*[a-z](?:[a-z0-9-]{{0,61}}[a-z0-9])?", re.ASCII)
# Reserved for what is no public name, or never given to anybody because networks of their own use it.
_OF_THIS_NETWORK: Final = (
    ".localhost",
    ".local",
    ".localdomain",
    ".internal",
    ".intranet",
    ".private",
    ".corp",
    ".home",
    ".home.arpa",
    ".lan",
    ".mail",
    ".svc",
    ".consul",
    ".test",
    ".invalid",
    ".onion",
)
_BRACKETED: Final = re.compile(r"\[[0-9a-fA-F.]*:[0-9a-fA-F:.]*\](?::[0-9]+)?", re.ASCII)
_PRINTABLE: Final = re.compile(r"[!-~]+", re.ASCII)
_PLAIN_V4: Final = re.compile(r"(?:0|[1-9][0-9]{0,2})(?:\.(?:0|[1-9][0-9]{0,2})){3}", re.ASCII)

# Public by the registry of IANA, and yet no place for a receiver: relays of 6to4, and what a cloud tells its own machines.
_NEVER_V4: Final = tuple(IPv4Network(net) for net in ("192.0.0.0/24", "192.88.99.0/24", "168.63.129.16/32"))
_GLOBAL_V6: Final = IPv6Network(
    "2000::/3"
)  # Of all of IPv6, what is given to anybody. NAT64 and mapped ones are not in it.
_NEVER_V6: Final = tuple(IPv6Network(net) for net in ("2001::/23", "2001:db8::/32", "2002::/16", "3fff::/20"))

_LOOPBACK: Final = frozenset({IPv4Address("127.0.0.1"), IPv6Address("::1")})
KEPT_ALIVE: Final = 5.0  # Seconds without a delivery after which a connection is closed.


class NotCalled(Exception):
    """This is not called. What it says is for people."""


class Target(NamedTuple):
    """Where a delivery goes: a URL taken apart."""

    scheme: str
    host: str
    port: int
    path: str

    @property
    def netloc(self) -> str:
        """``Host``, as it is sent."""
        host = f"[{self.host}]" if ":" in self.host else self.host
        return host if self.port == {"https": 443, "http": 80}[self.scheme] else f"{host}:{self.port}"


def check_url(url: str) -> Target:
    """See that a URL may be called, as far as that shows in it; ``NotCalled`` if not."""
    if not 0 < len(url) <= MAX_URL or not _PRINTABLE.fullmatch(url) or any(sign in url for sign in '\\"<>^`{|}'):
        raise NotCalled(
            _("A URL has at most %(most)d characters, all of them ASCII; write other names as xn--….")
            % {"most": MAX_URL}
        )
    try:
        parts = urlsplit(url)
        host, port = (parts.hostname or "").lower(), parts.port
    except ValueError:
        raise NotCalled(_("This is no URL.")) from None
    loopback = get_settings().ALLOW_LOOPBACK
    if parts.scheme not in ("https", "http") or (parts.scheme == "http" and not loopback):
        raise NotCalled(_("Only https is called."))
    if "@" in parts.netloc:
        raise NotCalled(_("Leave out name and password: deliveries are signed."))
    if "#" in url:
        raise NotCalled(_("Leave out what stands behind #: it is not sent."))
    if port == 0 or not _names_a_place(parts.netloc):
        raise NotCalled(_("This is no URL."))
    port = port or (443 if parts.scheme == "https" else 80)
    _check_host(host, loopback)
    if port not in get_settings().PORTS and not (loopback and _is_loopback(host)):
        raise NotCalled(_("Port %(port)d is not called.") % {"port": port})
    path = parts.path or "/"
    return Target(parts.scheme, host, port, f"{path}?{parts.query}" if parts.query else path)


def _names_a_place(netloc: str) -> bool:
    """Whether there is a host. What has brackets has to be an address of IPv6: a later version would be taken for a name."""
    if "[" in netloc or "]" in netloc:
        return _BRACKETED.fullmatch(netloc) is not None
    return bool(netloc) and not netloc.endswith(":")


def _check_host(host: str, loopback: bool) -> None:
    """See that it is a name, or an address in the one way to write it."""
    if ":" in host or _PLAIN_V4.fullmatch(host):
        check_address(host)
    elif len(host) > 253 or not _NAME.fullmatch(host):
        raise NotCalled(_("%(host)s is no name of a host.") % {"host": host[:100] or "?"})
    elif ("." not in host and not (loopback and host == "localhost")) or host.endswith(_OF_THIS_NETWORK):
        raise NotCalled(_("%(host)s is a name of this network only.") % {"host": host[:100]})


def check_address(address: str) -> None:
    """Refuse (``NotCalled``) an address that not anybody could reach; with ``ALLOW_LOOPBACK``, this machine's own may be."""
    try:
        if "%" in address:
            raise ValueError
        ip = ipaddress.ip_address(address)
    except ValueError:
        raise NotCalled(_("%(address)s is no address.") % {"address": address[:60]}) from None
    if get_settings().ALLOW_LOOPBACK and ip in _LOOPBACK:
        return
    if not (_is_public_v4(ip) if isinstance(ip, IPv4Address) else _is_public_v6(ip)):
        raise NotCalled(_("%(address)s is not a public address.") % {"address": ip})


def _is_loopback(host: str) -> bool:
    return host in ("localhost", "127.0.0.1", "::1")


def _is_public_v4(ip: IPv4Address) -> bool:
    return ip.is_global and not (ip.is_multicast or ip.is_reserved) and not any(ip in net for net in _NEVER_V4)


def _is_public_v6(ip: IPv6Address) -> bool:
    return ip in _GLOBAL_V6 and ip.is_global and not any(ip in net for net in _NEVER_V6)


class CheckedBackend(httpcore.AsyncNetworkBackend):
    """
    Resolves a name once, refuses it if an address is not public, and connects to what it has looked at.

    A look-up keeps a thread until it has an answer; all who want the same name wait for the same one.
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
        """Connect to the first address that answers; a silent one leaves time for others. ``NotCalled``, ``ConnectError``."""
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
        lookups = list(self._lookups.values())
        for lookup in lookups:
            lookup.cancel()
        await asyncio.gather(*lookups, return_exceptions=True)

    async def connect_unix_socket(self, *_args: Any, **_extra: Any) -> httpcore.AsyncNetworkStream:
        """Refuse: nothing of this machine is called."""
        raise NotCalled("unix")

    async def sleep(self, seconds: float) -> None:
        await asyncio.sleep(seconds)


async def resolved(host: str, port: int) -> list[str]:
    """Look a name up, once; ``NotCalled`` if an address may not be called, ``OSError`` if there is none."""
    found = await asyncio.get_running_loop().getaddrinfo(host, port, type=socket.SOCK_STREAM)
    addresses = list(dict.fromkeys(str(where[0]) for *_kind, where in found))
    for address in addresses:
        check_address(address)
    if not addresses:
        raise socket.gaierror(host)
    return addresses


class Connection(httpcore.AsyncHTTPConnection):
    """A connection that is used again only if its receiver has said no more than it was asked."""

    def has_expired(self) -> bool:
        """Whether it has to be closed: what was said beyond the answer would be taken for that to the next delivery."""
        return super().has_expired() or self._says_more()

    def _says_more(self) -> bool:
        inner: Any = self._connection
        return isinstance(inner, httpcore.AsyncHTTP11Connection) and bool(inner._h11_state.trailing_data[0])


class Pool(httpcore.AsyncConnectionPool):
    """Keeps connections, and closes what they are made with."""

    def __init__(self, backend: CheckedBackend, **options: Any) -> None:
        super().__init__(network_backend=backend, **options)
        self._backend, self._options = backend, options

    def create_connection(self, origin: httpcore.Origin) -> httpcore.AsyncConnectionInterface:
        return Connection(
            origin=origin,
            ssl_context=self._options["ssl_context"],
            keepalive_expiry=self._options["keepalive_expiry"],
            network_backend=self._backend,
        )

    async def aclose(self) -> None:
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
    context: ssl.SSLContext = httpx.create_ssl_context(trust_env=False)
    if file is not None:
        context.load_verify_locations(file)
    return context

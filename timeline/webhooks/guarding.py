"""
Guard: which URLs may be called, and which addresses. Whoever may make endpoints must not reach what only this machine reaches.

A URL is looked at when an endpoint is saved and at each delivery. Its name is resolved once, for the connection itself; if any
of its addresses is not a public one, nothing is connected to.
"""

from __future__ import annotations

import ipaddress
import re
from ipaddress import IPv4Address, IPv4Network, IPv6Address, IPv6Network
from typing import Final, NamedTuple
from urllib.parse import urlsplit

from django.utils.translation import gettext as _

from timeline.webhooks.conf import get_settings
from timeline.webhooks.models import MAX_URL

# One label of a name; the last one begins with a letter, so that no number is taken for a name.
_LABEL: Final = r"[a-z0-9](?:[a-z0-9-]{0,61}[a-z0-9])?"
_NAME: Final = re.compile(rf"(?:{_LABEL}\.)*[a-z](?:[a-z0-9-]{{0,61}}[a-z0-9])?", re.ASCII)
_OF_THIS_NETWORK: Final = (".localhost", ".local", ".internal", ".localdomain", ".home.arpa", ".onion")
_PRINTABLE: Final = re.compile(r"[!-~]+", re.ASCII)
_PLAIN_V4: Final = re.compile(r"(?:0|[1-9][0-9]{0,2})(?:\.(?:0|[1-9][0-9]{0,2})){3}", re.ASCII)

# Public by the registry of IANA, and yet no place for a receiver: relays of 6to4, and what a cloud tells its own machines.
_NEVER_V4: Final = tuple(IPv4Network(net) for net in ("192.0.0.0/24", "192.88.99.0/24", "168.63.129.16/32"))
_GLOBAL_V6: Final = IPv6Network(
    "2000::/3"
)  # Of all of IPv6, what is given to anybody. NAT64 and mapped ones are not in it.
_NEVER_V6: Final = tuple(IPv6Network(net) for net in ("2001::/23", "2001:db8::/32", "2002::/16", "3fff::/20"))


class Refused(Exception):
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
    """
    See that a URL may be called, as far as that shows in it.

    Raises:
        Refused: if not.
    """
    if not 0 < len(url) <= MAX_URL or not _PRINTABLE.fullmatch(url) or any(sign in url for sign in '\\"<>^`{|}'):
        raise Refused(
            _("A URL has at most %(most)d characters, all of them ASCII; write other names as xn--….")
            % {"most": MAX_URL}
        )
    try:
        parts = urlsplit(url)
        host, port = (parts.hostname or "").lower(), parts.port
    except ValueError:
        raise Refused(_("This is no URL.")) from None
    loopback = get_settings().ALLOW_LOOPBACK
    if parts.scheme not in ("https", "http") or (parts.scheme == "http" and not loopback):
        raise Refused(_("Only https is called."))
    if "@" in parts.netloc:
        raise Refused(_("Leave out name and password: deliveries are signed."))
    if "#" in url:
        raise Refused(_("Leave out what stands behind #: it is not sent."))
    if not parts.netloc or port == 0 or parts.netloc.endswith(":"):
        raise Refused(_("This is no URL."))
    port = port or (443 if parts.scheme == "https" else 80)
    _check_host(host, loopback)
    if port not in get_settings().PORTS and not (loopback and _is_loopback(host)):
        raise Refused(_("Port %(port)d is not called.") % {"port": port})
    path = parts.path or "/"
    return Target(parts.scheme, host, port, f"{path}?{parts.query}" if parts.query else path)


def _check_host(host: str, loopback: bool) -> None:
    """See that it is a name, or an address in the one way to write it."""
    if ":" in host or _PLAIN_V4.fullmatch(host):
        check_address(host)
    elif len(host) > 253 or not _NAME.fullmatch(host):
        raise Refused(_("%(host)s is no name of a host.") % {"host": host[:100] or "?"})
    elif ("." not in host and not (loopback and host == "localhost")) or host.endswith(_OF_THIS_NETWORK):
        raise Refused(_("%(host)s is a name of this network only.") % {"host": host[:100]})


def check_address(address: str) -> None:
    """
    See that an address is one that anybody could reach; with ``ALLOW_LOOPBACK`` also this machine's own.

    Raises:
        Refused: if not.
    """
    try:
        if "%" in address:
            raise ValueError
        ip = ipaddress.ip_address(address)
    except ValueError:
        raise Refused(_("%(address)s is no address.") % {"address": address[:60]}) from None
    if get_settings().ALLOW_LOOPBACK and ip in _LOOPBACK:
        return
    if not (_is_public_v4(ip) if isinstance(ip, IPv4Address) else _is_public_v6(ip)):
        raise Refused(_("%(address)s is not a public address.") % {"address": ip})


_LOOPBACK: Final = frozenset({IPv4Address("127.0.0.1"), IPv6Address("::1")})


def _is_loopback(host: str) -> bool:
    return host in ("localhost", "127.0.0.1", "::1")


def _is_public_v4(ip: IPv4Address) -> bool:
    return ip.is_global and not (ip.is_multicast or ip.is_reserved) and not any(ip in net for net in _NEVER_V4)


def _is_public_v6(ip: IPv6Address) -> bool:
    return ip in _GLOBAL_V6 and ip.is_global and not any(ip in net for net in _NEVER_V6)

"""Which addresses may a request leave for?

Public ones, and those that POSTDATE_EGRESS_ALLOW names. Whoever may schedule a webhook must not reach through us what
they cannot reach themselves: this machine, the network around it, the metadata service of a cloud.
"""

from __future__ import annotations

import re
import socket
from dataclasses import dataclass
from ipaddress import IPv4Address, IPv4Network, IPv6Address, IPv6Network, ip_address, ip_network
from typing import TYPE_CHECKING, Self

from postdate.domain.outcome import Rejected
from postdate.errors import NotConfigured
from postdate.providers.host import host_name

if TYPE_CHECKING:
    from collections.abc import Iterable

    from postdate.settings import Settings

Address = IPv4Address | IPv6Address

SETTING = "POSTDATE_EGRESS_ALLOW"
NOT_PUBLIC = f"leads to an address that is not public ({SETTING} lets others through)"
PORTS = range(1, 65536)

_LOOPBACK = (IPv4Address("127.0.0.1"), IPv6Address("::1"))
_NAT64 = IPv6Network("64:ff9b::/96")
_UNICAST = IPv6Network("2000::/3")
"""All that is allocated of IPv6 so far: what lies outside is local, special or reserved."""
_SPECIAL = (
    IPv4Network("192.0.0.0/24"),  # protocol assignments: global to older Pythons, and a cloud's metadata lives there
    IPv4Network("192.88.99.0/24"),  # relays that no longer exist (RFC 7526)
    IPv4Network("168.63.129.16/32"),  # answers every machine of Azure about itself
)
_RULE = re.compile(r"(?:\[(?P<bracketed>[^\[\]]*)\]|(?P<bare>[^:\[\]]*))(?::(?P<port>[0-9]{1,5}))?|(?P<v6>[^\[\]]*)")
_BETWEEN_RULES = re.compile(r"[\s,]+")


class AddressRefused(Rejected):
    """A request was not made, because it would have left for an address that is not public.

    An outcome: nothing was sent, and the same address will be refused again until a person changes the setting.
    Its text does not say which address a name leads to, since people may read it who must not know; `address` does.
    """

    def __init__(self, host: str, *, port: int, address: Address) -> None:
        """Keep where the request should have gone."""
        self.host = host
        self.port = port
        self.address = address
        super().__init__(f"{host}:{port} {NOT_PUBLIC}")


@dataclass(frozen=True, kw_only=True)
class Allowed:
    """One entry of POSTDATE_EGRESS_ALLOW: a host name or a network, at one port or at all."""

    where: str | IPv4Network | IPv6Network
    port: int | None = None

    @classmethod
    def parse(cls, entry: str) -> Self:
        """Read `hooks.internal`, `127.0.0.1:8080`, `10.1.0.0/16`, `fd00::/8` or `[::1]:8080`.

        Raises ValueError with the rule.
        """
        match = _RULE.fullmatch(entry)
        if match is None:
            raise ValueError("must be a host name, an address or a network, and may end in :port")
        port = None if match["port"] is None else int(match["port"])
        if port is not None and port not in PORTS:
            raise ValueError("must have a port from 1 to 65535")
        return cls(where=_place(match["bracketed"] or match["bare"] or match["v6"] or ""), port=port)

    def covers(self, host: str, port: int, address: Address) -> bool:
        """Whether a request to `host` may connect to `address` because of this entry."""
        if self.port not in {None, port}:
            return False
        return self.where == host if isinstance(self.where, str) else address in self.where


@dataclass(frozen=True, kw_only=True)
class Egress:
    """What may be reached: public addresses, and what is allowed beside them."""

    allowed: tuple[Allowed, ...] = ()

    @classmethod
    def of(cls, settings: Settings) -> Self:
        """Read POSTDATE_EGRESS_ALLOW, entries separated by commas or blanks.

        Raises `NotConfigured` where it cannot be understood.
        """
        entries = [each for each in _BETWEEN_RULES.split(settings.egress_allow) if each]
        allowed = []
        for place, entry in enumerate(entries, start=1):
            try:
                allowed.append(Allowed.parse(entry))
            except ValueError as error:
                raise NotConfigured(SETTING, needed_by="the HTTP client", hint=f"entry {place} {error}") from None
        return cls(allowed=tuple(allowed))

    def refused(self, host: str, port: int, addresses: Iterable[Address]) -> Address | None:
        """Return the first of the addresses that a request to `host` must not reach; None where all are right.

        All must be: a name that leads inside as well as outside is an attack or a mistake, and what happens
        must not depend on the order of a resolver's answer.
        """
        name = _bare(host)
        for address in addresses:
            if not (is_public(address) or any(each.covers(name, port, address) for each in self.allowed)):
                return address
        return None


def is_public(address: Address) -> bool:
    """Whether anybody on the internet has this address, looking into those that carry an IPv4 one."""
    if isinstance(address, IPv6Address):
        carried = _carried(address)
        if carried is None:
            return address in _UNICAST and address.is_global and address.scope_id is None
        address = carried
    special = any(address in network for network in _SPECIAL)
    return address.is_global and not (address.is_multicast or address.is_reserved or special)


def plain(address: Address) -> Address:
    """Return an address as IPv4 where it is one written as IPv6 (RFC 4291, 2.5.5.2)."""
    return (address.ipv4_mapped or address) if isinstance(address, IPv6Address) else address


def known_addresses(host: str) -> tuple[Address, ...]:
    """Return the addresses of a host that no resolver need be asked about; none for an ordinary name.

    Those are addresses in every spelling that resolvers understand, such as `2130706433`, `0x7f.1` and `127.1`, and
    the names of this machine itself (RFC 6761, 6.3).
    """
    name = _bare(host)
    if name == "localhost" or name.endswith(".localhost"):
        return _LOOPBACK
    try:
        return (plain(ip_address(name)),)
    except ValueError:
        pass
    try:
        return (IPv4Address(socket.inet_aton(name)),)
    except (OSError, UnicodeEncodeError):
        return ()


def _bare(host: str) -> str:
    return host.lower().removesuffix(".")


def _carried(address: IPv6Address) -> IPv4Address | None:
    """Return the IPv4 address that packets to this one end up at (RFC 4291, RFC 6052, RFC 3056)."""
    if address in _NAT64:
        return IPv4Address(int(address) & 0xFFFFFFFF)
    return address.ipv4_mapped or address.sixtofour


def _place(where: str) -> str | IPv4Network | IPv6Network:
    try:
        return ip_network(where)
    except ValueError as error:
        if "/" in where or ":" in where:
            raise ValueError(f"must name a network: {error}") from None
    if known_addresses(where) and not where.lower().endswith("localhost"):
        raise ValueError("must write an IPv4 address as four decimal numbers")
    return host_name(where)

"""How does a request reach checked addresses only?

The name is resolved once, every address is checked, and the connection goes to a checked address: a name that leads
elsewhere a moment later (DNS rebinding) changes nothing. TLS still asks for, and verifies, the name.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Iterable, Sequence
from ipaddress import ip_address

import httpcore2
import httpx2
import structlog

from postdate.errors import Misconfigured
from postdate.providers.egress import Address, AddressRefused, Egress, known_addresses, plain
from postdate.providers.received import CountedStream
from postdate.providers.trust import web_trust

Resolve = Callable[[str, int], Awaitable[Sequence[str]]]
"""`resolve(host, port)` returns the host's addresses as text, the best first. Raises OSError where there are none."""

MAX_TRIED = 4
"""How many addresses of one host are tried."""


class GuardedBackend(httpcore2.AsyncNetworkBackend):
    """Connects to addresses that the egress rules let through."""

    def __init__(self, egress: Egress, resolve: Resolve) -> None:
        self._egress = egress
        self._resolve = resolve
        self._network = httpcore2.AnyIOBackend()

    async def connect_tcp(  # noqa: PLR0917 - the backend's contract
        self,
        host: str,
        port: int,
        timeout: float | None = None,  # noqa: ASYNC109
        local_address: str | None = None,
        socket_options: Iterable[httpcore2.SOCKET_OPTION] | None = None,
    ) -> httpcore2.AsyncNetworkStream:
        """Resolve, check and connect, all within `timeout` seconds.

        Raises `AddressRefused`, or httpcore2's `ConnectError` and `ConnectTimeout`.
        """
        clock = asyncio.get_running_loop().time
        end = None if timeout is None else clock() + timeout
        addresses = await self._checked(host, port, timeout)
        failed: Exception = httpcore2.ConnectError(f"{host} has no address")
        for left, address in zip(range(len(addresses), 0, -1), addresses, strict=True):
            share = None if end is None else max(end - clock(), 0) / left
            try:
                opened = await self._network.connect_tcp(str(address), port, share, local_address, socket_options)
            except (httpcore2.ConnectError, httpcore2.ConnectTimeout) as error:
                failed = error
            else:
                return CountedStream(opened)
        raise failed

    async def sleep(self, seconds: float) -> None:
        """Wait, between attempts to connect."""
        await self._network.sleep(seconds)

    async def _checked(self, host: str, port: int, timeout: float | None) -> Sequence[Address]:  # noqa: ASYNC109
        addresses = known_addresses(host) or await self._resolved(host, port, timeout)
        refused = self._egress.refused(host, port, addresses)
        if refused is not None:
            structlog.get_logger("postdate").warning("egress refused", host=host, port=port, address=str(refused))
            raise AddressRefused(host, port=port, address=refused)
        return addresses[:MAX_TRIED]

    async def _resolved(self, host: str, port: int, timeout: float | None) -> Sequence[Address]:  # noqa: ASYNC109
        try:
            async with asyncio.timeout(timeout):
                answer = await self._resolve(host, port)
        except TimeoutError:
            raise httpcore2.ConnectTimeout(f"{host} was not resolved in time") from None
        except (OSError, UnicodeError) as error:
            raise httpcore2.ConnectError(f"{host} was not resolved: {error}") from error
        return list(dict.fromkeys(plain(ip_address(each)) for each in answer))


class GuardedTransport(httpx2.AsyncHTTPTransport):
    """httpx2's own transport over a guarded backend. It knows no proxies: those would connect elsewhere."""

    def __init__(self, egress: Egress, resolve: Resolve, limits: httpx2.Limits) -> None:
        tls = web_trust()
        super().__init__(verify=tls, trust_env=False, limits=limits)
        if not isinstance(getattr(self, "_pool", None), httpcore2.AsyncConnectionPool):
            # What follows would be in vain, and every address open.
            raise Misconfigured(f"this version of httpx2 ({httpx2.__version__}) cannot be guarded: use an older one")
        self._pool = httpcore2.AsyncConnectionPool(
            ssl_context=tls,
            max_connections=limits.max_connections,
            max_keepalive_connections=limits.max_keepalive_connections,
            keepalive_expiry=limits.keepalive_expiry,
            network_backend=GuardedBackend(egress, resolve),
        )

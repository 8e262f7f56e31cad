"""Connections to servers: kept open between requests, and only to hosts that may be asked.

A host that the user named, in an address or in a setting such as `AWS_ENDPOINT_URL`, may be any.
A host that only a server named, in a redirect, must have a public address: otherwise a server
could make this machine read from its own network.
"""

from __future__ import annotations

import atexit
import base64
import functools
import ipaddress
import os
import socket
import ssl
import threading
import time
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from http.client import HTTPConnection
from typing import NamedTuple
from urllib.parse import SplitResult, unquote, urlsplit

from .encryption import EncryptedSocket

CONNECT_SECONDS = 10.0
STALL_SECONDS = 15.0  # without a byte
_IDLE_SECONDS = 20.0  # servers close what is idle, often after a minute
_MOST_IDLE = 32
_NAT64 = ipaddress.IPv6Network("64:ff9b::/96")
_GLOBAL_UNICAST = ipaddress.IPv6Network("2000::/3")  # all that the internet has given out


class RefusedHost(Exception):
    """A redirect leads to an address inside a network."""


class Host(NamedTuple):
    """Whom to connect to; `named` says that the user chose it."""

    scheme: str
    name: str
    port: int
    named: bool


class Connections:
    """The open connections of this process."""

    def __init__(self) -> None:
        """Begin with none."""
        self._lock = threading.Lock()
        self._idle: dict[Host, list[tuple[float, HTTPConnection]]] = {}
        self._busy: set[HTTPConnection] = set()

    @contextmanager
    def connection(self, host: Host) -> Iterator[tuple[HTTPConnection, bool]]:
        """Lend a connection, and whether it was used before; it is closed if anything fails."""
        connection = self._take_idle(host)
        again = connection is not None
        if connection is None:
            connection = _connect(host)
        with self._lock:
            self._busy.add(connection)
        keep = False
        try:
            yield connection, again
            keep = connection.sock is not None
        finally:
            with self._lock:
                self._busy.discard(connection)
                room = sum(map(len, self._idle.values())) < _MOST_IDLE
                if keep and room:
                    self._idle.setdefault(host, []).append((time.monotonic(), connection))
            if not (keep and room):
                connection.close()

    def interrupt(self) -> None:
        """Wake every thread that waits for a server: its read fails at once."""
        with self._lock:
            busy = list(self._busy)
        for connection in busy:
            if connection.sock is not None:
                try:
                    connection.sock.shutdown(socket.SHUT_RDWR)
                except OSError:
                    continue  # it is closed already

    def close(self) -> None:
        """Close what is idle."""
        with self._lock:
            idle = [each for connections in self._idle.values() for _, each in connections]
            self._idle.clear()
        for connection in idle:
            connection.close()

    def _take_idle(self, host: Host) -> HTTPConnection | None:
        with self._lock:
            idle = self._idle.get(host, [])
            while idle:
                since, connection = idle.pop()
                if time.monotonic() - since < _IDLE_SECONDS:
                    return connection
                connection.close()
        return None


def _connect(host: Host) -> HTTPConnection:
    proxy = _proxy(host)
    connection = HTTPConnection(host.name, host.port)
    connection.auto_open = 0
    sock = _tunnel(proxy, host) if proxy else _dial(host.name, host.port, named=host.named)
    try:
        sock.settimeout(STALL_SECONDS)
        sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        encrypted = EncryptedSocket(sock, _trust(), host.name) if host.scheme == "https" else sock
    except BaseException:
        sock.close()
        raise
    connection.sock = encrypted
    return connection


def _dial(name: str, port: int, *, named: bool) -> socket.socket:
    """Connect to the first address of the host that answers; all must be public if unnamed."""
    found = socket.getaddrinfo(name, port, type=socket.SOCK_STREAM)
    if not named and not all(_is_public(str(each[4][0])) for each in found):
        raise RefusedHost
    failure: OSError = OSError("the host has no address")
    for family, kind, protocol, _, address in found:
        sock = socket.socket(family, kind, protocol)
        try:
            sock.settimeout(CONNECT_SECONDS)
            sock.connect(address)
        except OSError as error:
            sock.close()
            failure = error
        except BaseException:
            sock.close()
            raise
        else:
            return sock
    raise failure


def _is_public(text: str) -> bool:
    address = ipaddress.ip_address(text.partition("%")[0])
    if isinstance(address, ipaddress.IPv6Address):
        address = _inner(address)
    if isinstance(address, ipaddress.IPv6Address) and address not in _GLOBAL_UNICAST:
        return False
    return address.is_global and not address.is_multicast


def _inner(address: ipaddress.IPv6Address) -> ipaddress.IPv4Address | ipaddress.IPv6Address:
    """Return the IPv4 address that a gateway would make of this one; itself if there is none."""
    if address in _NAT64:
        return ipaddress.IPv4Address(int(address) & 0xFFFFFFFF)
    return address.ipv4_mapped or address.sixtofour or address


def _proxy(host: Host) -> SplitResult | None:
    """Return the proxy that the environment names for encrypted connections to this host."""
    proxy = urllib.request.getproxies().get("https") if host.scheme == "https" else None
    if not proxy or urllib.request.proxy_bypass(host.name):
        return None
    return urlsplit(proxy if "://" in proxy else f"http://{proxy}")


def _tunnel(proxy: SplitResult, host: Host) -> socket.socket:
    """Connect through a proxy, which resolves the name itself."""
    if not host.named and _is_inside(host.name):
        raise RefusedHost
    through = HTTPConnection(proxy.hostname or "", proxy.port or 80, timeout=CONNECT_SECONDS)
    through.set_tunnel(host.name, host.port, _login(proxy))
    through.connect()
    sock = through.sock
    through.sock = None
    return sock


def _login(proxy: SplitResult) -> dict[str, str]:
    if proxy.username is None:
        return {}
    login = f"{unquote(proxy.username)}:{unquote(proxy.password or '')}".encode()
    return {"Proxy-Authorization": f"Basic {base64.b64encode(login).decode()}"}


def _is_inside(name: str) -> bool:
    """Is it the address of a machine inside a network, or a name for this one?"""
    try:
        return not _is_public(name)
    except ValueError:
        return name == "localhost" or "." not in name


@functools.cache
def _trust() -> ssl.SSLContext:
    """Load the certificates that this machine trusts; `SSL_CERT_FILE` names others."""
    context = ssl.create_default_context()
    if bundle := os.environ.get("AWS_CA_BUNDLE"):
        context.load_verify_locations(bundle)
    return context


CONNECTIONS = Connections()
atexit.register(CONNECTIONS.close)

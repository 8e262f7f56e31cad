"""Whom we connect to, and over what."""

import socket
import ssl
import threading

import pytest
from storage.conftest import skipping_what_is_missing
from storage.servers.files import serve_files
from storage.servers.nginx import serve_https

from difflens.core.addresses import locate
from difflens.core.errors import UnreadableFile
from difflens.storage import connections, places
from difflens.storage.connections import Host, RefusedHost
from difflens.storage.interruption import Interrupted
from difflens.storage.links import Link

DATA = bytes(range(256)) * 4000

INSIDE = [
    "127.0.0.1", "127.9.9.9", "10.0.0.1", "172.16.0.1", "192.168.1.1", "169.254.169.254",
    "100.64.0.1", "224.0.0.1", "::1", "fe80::1%eth0", "fd00::1", "::ffff:10.0.0.1", "::",
    "64:ff9b::169.254.169.254", "64:ff9b:1::10.0.0.1", "2002:0a00:0001::1", "::10.0.0.1", "fec0::1",
]  # fmt: skip


@pytest.mark.parametrize("address", INSIDE)
def test_an_address_inside_a_network_is_not_public(address):
    assert not connections._is_public(address)


@pytest.mark.parametrize(
    "address",
    ["8.8.8.8", "2606:4700::1111", "::ffff:8.8.8.8", "64:ff9b::8.8.8.8", "2002:808:808::1"],
)
def test_an_address_of_the_internet_is_public(address):
    assert connections._is_public(address)


def test_a_name_that_also_leads_inside_is_refused(monkeypatch):
    answers = [(2, 1, 6, "", (address, 443)) for address in ("8.8.8.8", "10.0.0.1")]
    monkeypatch.setattr(socket, "getaddrinfo", lambda *_, **__: answers)

    with pytest.raises(RefusedHost):
        connections._dial("somewhere.example", 443, named=False)


@pytest.mark.parametrize(
    "location",
    [
        "http://host/a",
        "ftp://host/a",
        "https://user:password@host/a",
        "https://host:x/",
        "a b",
        "//[a",
    ],
)
def test_a_redirect_out_of_https_or_to_no_server_is_refused(location):
    with pytest.raises(RefusedHost):
        Link("https://host/b").follow(location)


def test_what_proves_who_we_are_stays_with_its_host():
    link = Link("https://host/b", {"Authorization": "secret"}, frozenset({"host"}))

    assert link.follow("/c").headers == link.headers
    assert link.follow("https://host:444/c").headers == {}
    assert link.follow("https://other/c").headers == {}
    assert not link.follow("https://other/c").host.named
    assert "secret" not in repr(link)


@pytest.fixture
def trusting(certificates, monkeypatch):
    monkeypatch.setenv("SSL_CERT_FILE", str(certificates.authority))
    connections._trust.cache_clear()
    places.forget()
    yield certificates
    places.forget()
    connections._trust.cache_clear()


def test_a_file_is_read_over_tls(folder, trusting):
    (folder / "a.bin").write_bytes(DATA)
    with serve_files(folder, certificate=trusting.server) as server:
        file = places.open_file(locate(f"{server.url}/a.bin"))
        assert file.read(1000, 1_000_000) == DATA[1000:1_000_000]


def test_a_file_is_read_from_nginx(folder, tmp_path, trusting):
    (folder / "a b.bin").write_bytes(DATA)
    home = tmp_path / "nginx"
    home.mkdir()
    with skipping_what_is_missing():
        server = serve_https(folder, home, trusting)
    with server:
        file = places.open_file(locate(f"https://localhost:{server.port}/a b.bin"))
        assert file.read(1000, 1_000_000) == DATA[1000:1_000_000]
        (folder / "a b.bin").write_bytes(DATA[::-1])
        with pytest.raises(UnreadableFile, match="no such file"):
            places.open_file(locate(f"https://localhost:{server.port}/none"))


def test_a_server_that_nobody_trusts_is_one_line(folder, certificates):
    (folder / "a.bin").write_bytes(DATA)
    with (
        serve_files(folder, certificate=certificates.server) as server,
        pytest.raises(UnreadableFile, match="certificate is not trusted"),
    ):
        places.open_file(locate(f"{server.url}/a.bin"))


@pytest.mark.usefixtures("trusting")
def test_a_certificate_for_another_host_is_one_line(folder, certificates):
    (folder / "a.bin").write_bytes(DATA)
    with (
        serve_files(folder, certificate=certificates.server) as server,
        pytest.raises(UnreadableFile, match="not trusted: Hostname mismatch"),
    ):
        places.open_file(locate(f"https://127.1:{server.port}/a.bin"))


@pytest.mark.parametrize("fault", ["cut", "chunked", "no_length"])
def test_over_tls_an_answer_that_is_cut_goes_on(folder, trusting, fault):
    (folder / "a.bin").write_bytes(DATA)
    with serve_files(folder, certificate=trusting.server, program="faults") as server:
        file = places.open_file(locate(f"{server.url}/a.bin"))
        server.ask("fault", kind=fault, times=2)
        assert file.read(150_000, 1_000_000) == DATA[150_000:1_000_000]


def test_who_waits_over_tls_is_woken(folder, trusting):
    (folder / "a.bin").write_bytes(DATA)
    with serve_files(folder, certificate=trusting.server, program="faults") as server:
        file = places.open_file(locate(f"{server.url}/a.bin"))
        server.ask("fault", kind="stall", value=20)
        timer = threading.Timer(0.3, places.end_transfers)
        timer.start()
        with pytest.raises(Interrupted):
            file.read(150_000, 1_000_000)
        timer.join()


def test_a_proxy_is_asked_for_a_tunnel_with_its_own_login(monkeypatch):
    asked: list[bytes] = []
    with socket.create_server(("127.0.0.1", 0)) as listener:

        def serve() -> None:
            connection, _ = listener.accept()
            with connection:
                asked.append(connection.recv(4096))
                connection.sendall(b"HTTP/1.1 200 OK\r\n\r\n")
                connection.recv(4096)  # the beginning of TLS; it is not answered

        thread = threading.Thread(target=serve)
        thread.start()
        port = listener.getsockname()[1]
        monkeypatch.setenv("https_proxy", f"http://me:p%40ss@127.0.0.1:{port}")
        monkeypatch.delenv("no_proxy", raising=False)
        with pytest.raises((ssl.SSLError, OSError)):
            connections._connect(Host("https", "models.example", 443, named=True))
        thread.join()

    assert asked[0].startswith(b"CONNECT models.example:443 HTTP/1.")
    assert b"Proxy-Authorization: Basic bWU6cEBzcw==" in asked[0]


def test_through_a_proxy_a_redirect_to_an_address_inside_is_refused(monkeypatch):
    monkeypatch.setenv("https_proxy", "http://127.0.0.1:1")
    monkeypatch.delenv("no_proxy", raising=False)
    for name in ("10.0.0.1", "localhost", "metadata"):
        with pytest.raises(RefusedHost):
            connections._connect(Host("https", name, 443, named=False))

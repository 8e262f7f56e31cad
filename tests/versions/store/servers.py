"""A real PostgreSQL for the tests: unprivileged, on a private port, in a folder of its own."""

import os
import pwd
import shutil
import signal
import socket
import subprocess
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import psycopg

USER, PASSWORD = "lens", "s3cret/word@"  # of a server that lives for the tests alone
QUOTED = "s3cret%2Fword%40"


def programs() -> Path | None:
    """Find initdb and postgres: on the path, or where Debian puts them."""
    found = shutil.which("initdb")
    if found:
        return Path(found).resolve().parent
    return max(Path("/usr/lib/postgresql").glob("*/bin"), default=None)


class Server:
    """One server; it may be stopped hard and started again on the same data."""

    def __init__(self, folder: Path, home: Path) -> None:
        self.folder, self.home = folder, home
        with socket.socket() as probe:
            probe.bind(("127.0.0.1", 0))
            self.port = probe.getsockname()[1]
        self.process: subprocess.Popen[bytes] | None = None
        self.databases = 0

    def make(self) -> None:
        secret = self.folder / "password"
        secret.write_text(PASSWORD)
        if os.getuid() == 0:
            owner = unprivileged()
            for path in (self.folder, secret):
                os.chown(path, owner.pw_uid, owner.pw_gid)
        arguments = ["-D", "data", "-U", USER, "--pwfile=password", "-A", "scram-sha-256",
                     "-E", "UTF8", "--locale=C.UTF-8", "--no-sync"]  # fmt: skip
        with self.started_as() as how:
            subprocess.run([self.home / "initdb", *arguments], check=True, **how)

    def start(self) -> None:
        # Processes die here, never the machine: what they wrote stays in the page cache.
        settings = {"fsync": "off", "max_connections": "60", "port": str(self.port),
                    "listen_addresses": "127.0.0.1",
                    "unix_socket_directories": str(self.folder)}  # fmt: skip
        options = [part for key, value in settings.items() for part in ("-c", f"{key}={value}")]
        command = [str(self.home / "postgres"), "-D", "data", *options]
        with self.started_as() as how:
            process = self.process = subprocess.Popen(command, **how)
        until = time.monotonic() + 30
        while True:
            try:
                self.ask("SELECT 1")
            except psycopg.OperationalError:
                assert process.poll() is None
                assert time.monotonic() < until
                time.sleep(0.02)
            else:
                return

    @contextmanager
    def started_as(self) -> Iterator[dict[str, Any]]:
        """Yield the way its programs are started: never as root, for they refuse that."""
        how: dict[str, Any] = {"cwd": self.folder}
        if os.getuid() == 0:
            owner = unprivileged()
            how |= {"user": owner.pw_uid, "group": owner.pw_gid, "extra_groups": []}
        with (self.folder / "log").open("ab") as log:
            yield {**how, "stdout": log, "stderr": log}

    def stop(self, how: signal.Signals = signal.SIGINT) -> None:
        """End it; SIGQUIT is its immediate shutdown, without a last word to the disk."""
        if self.process and self.process.poll() is None:
            self.process.send_signal(how)
            self.process.wait(30)

    def ask(self, statement: str) -> list[Any]:
        with psycopg.connect(self.address("postgres"), autocommit=True) as connection:
            found = connection.execute(statement)
            return found.fetchall() if found.description else []

    def address(self, database: str) -> str:
        return f"postgresql://{USER}:{QUOTED}@127.0.0.1:{self.port}/{database}"

    def fresh(self) -> str:
        """Make an empty database and give its address."""
        self.databases += 1
        name = f"test_{self.databases}"
        self.ask(f"CREATE DATABASE {name}")
        return self.address(name)

    def forget(self, address: str) -> None:
        """Remove a database, whoever is connected to it."""
        self.ask(f"DROP DATABASE IF EXISTS {address.rpartition('/')[2]} WITH (FORCE)")


def unprivileged() -> pwd.struct_passwd:
    try:
        return pwd.getpwnam("postgres")
    except KeyError:
        return pwd.getpwnam("nobody")


@contextmanager
def running() -> Iterator[Server | None]:
    """Run a server; None if PostgreSQL is not installed."""
    home = programs()
    if home is None:
        yield None
        return
    with tempfile.TemporaryDirectory(prefix="difflens-pg-", ignore_cleanup_errors=True) as folder:
        server = Server(Path(folder), home)
        server.make()
        server.start()
        try:
            yield server
        finally:
            server.stop()

"""Servers for tests of storage, one of each kind for all tests of a process."""

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from storage.servers.certificates import Certificates, make_certificates
from storage.servers.process import MissingProgram
from storage.servers.s3 import Store, serve_moto, serve_s3rver


@contextmanager
def skipping_what_is_missing() -> Iterator[None]:
    """Skip a test that needs a program which is not installed."""
    try:
        yield
    except MissingProgram as missing:
        pytest.skip(str(missing))


@pytest.fixture(scope="session")
def moto() -> Iterator[Store]:
    """A store that checks every signature."""
    server, store = serve_moto()
    with server:
        yield store


@pytest.fixture(scope="session")
def s3rver(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Store]:
    """A second store, by others."""
    with skipping_what_is_missing():
        server, store = serve_s3rver(tmp_path_factory.mktemp("s3rver"))
    with server:
        yield store


@pytest.fixture(scope="session")
def certificates(tmp_path_factory: pytest.TempPathFactory) -> Certificates:
    """An authority to trust, and what a server on 127.0.0.1 shows."""
    return make_certificates(tmp_path_factory.mktemp("certificates"))


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """An empty folder to serve."""
    made = tmp_path / "served"
    made.mkdir()
    return made

"""Stores to test: every test that asks for `url` runs on both databases."""

import pytest
from versions.store.servers import running

from difflens.versions.store import open_store


@pytest.fixture(scope="session")
def started():
    with running() as server:
        yield server


@pytest.fixture
def server(started):
    if started is None:
        pytest.skip("PostgreSQL is not installed (Debian: postgresql)")
    return started


@pytest.fixture(params=["sqlite", "postgresql"])
def url(request, tmp_path):
    if request.param == "sqlite":
        yield f"sqlite:///{tmp_path}/store.db"
        return
    server = request.getfixturevalue("server")
    address = server.fresh()
    yield address
    server.forget(address)


@pytest.fixture
def store(url):
    with open_store(url, patience=20) as opened:
        yield opened

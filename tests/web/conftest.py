"""One seeded database for all tests of the pages, and clients for it."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from starlette.testclient import TestClient

from mergemill.web.application import make_application
from mergemill.web.request_guard import make_access_rules
from taskdb.store import Store
from tests.web.seed import SeededDatabase, seed_database

HOST = "http://127.0.0.1:8400"
TOKEN = "correct horse battery"
ClientFactory = Callable[..., TestClient]


@pytest.fixture(scope="session")
def seeded(tmp_path_factory: pytest.TempPathFactory) -> SeededDatabase:
    """A database with tasks of four repositories. Tests do not change it."""
    folder: Path = tmp_path_factory.mktemp("web")
    return seed_database(folder)


@pytest.fixture(scope="session")
def make_client(seeded: SeededDatabase) -> Iterator[ClientFactory]:
    """Function that returns a client of a server with a host and a token."""
    with Store.open(seeded.settings.storage.db, create=False) as store:

        def make(host: str = "127.0.0.1", token: str | None = TOKEN, base_url: str = HOST) -> TestClient:
            application = make_application(store, seeded.settings, make_access_rules(host, token))
            return TestClient(application, base_url=base_url, raise_server_exceptions=False)

        yield make


@pytest.fixture(scope="session")
def client(make_client: ClientFactory) -> TestClient:
    """A client of a server on this machine that has a token."""
    return make_client()

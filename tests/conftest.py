"""The project's pytest option, and fixtures shared by several folders."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.registry import LocalRegistry


def pytest_addoption(parser: pytest.Parser) -> None:
    """`--update` writes snapshots instead of comparing them."""
    parser.addoption("--update", action="store_true", help="write snapshots (plan.json of examples) again")


@pytest.fixture(scope="session")
def registry(tmp_path_factory: pytest.TempPathFactory) -> Iterator[LocalRegistry]:
    """A registry for the test session."""
    made = LocalRegistry(tmp_path_factory.mktemp("registry"))
    made.start()
    yield made
    made.stop()

"""The one option of our own, and what tests of several folders need."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.registry import Registry


def pytest_addoption(parser: pytest.Parser) -> None:
    """`--update` writes snapshots instead of comparing them."""
    parser.addoption("--update", action="store_true", help="write snapshots (plan.json of examples) anew")


@pytest.fixture(scope="session")
def registry(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Registry]:
    """A registry of the test session's own."""
    made = Registry(tmp_path_factory.mktemp("registry"))
    made.start()
    yield made
    made.stop()

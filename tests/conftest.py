"""The one option of our own."""

from __future__ import annotations

import pytest


def pytest_addoption(parser: pytest.Parser) -> None:
    """`--update` writes snapshots instead of comparing them."""
    parser.addoption("--update", action="store_true", help="write snapshots (plan.json of examples) anew")

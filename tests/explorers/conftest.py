"""The server of scripted models is closed at the end."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.explorers.models import close_server


@pytest.fixture(scope="session", autouse=True)
def model_server() -> Iterator[None]:
    yield
    close_server()

"""A server to be told what to say, and the API that asks it."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import ExitStack

import pytest

from mergemill.config import Settings
from miner.github.api import Api
from tests.miner.github.server import Instant, Server, serving

TOKEN = "ghp_firsttoken1111"


@pytest.fixture(autouse=True)
def _no_tokens(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("GITHUB_TOKEN", "MERGEMILL_GITHUB_TOKENS", "http_proxy", "HTTP_PROXY"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("NO_PROXY", "127.0.0.1")


@pytest.fixture
def clock() -> Instant:
    return Instant()


@pytest.fixture
def server(clock: Instant) -> Iterator[Server]:
    with serving(clock) as found:
        yield found


@pytest.fixture
def connect(server: Server, clock: Instant) -> Iterator[Callable[..., Api]]:
    """An Api that asks the server; settings by keyword."""
    with ExitStack() as stack:

        def make(timeout: int = 5, **options: object) -> Api:
            settings = Settings.model_validate({"github_api": server.url, "github_tokens": TOKEN} | options)
            return stack.enter_context(Api(settings, clock=clock, timeout=timeout))

        yield make

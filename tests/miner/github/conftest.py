"""A scripted server, and an API client connected to it."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import ExitStack

import pytest

from core.config import Settings
from miner.github.api import GitHubApi
from tests.miner.github.scripted_server import FrozenClock, ScriptedServer, run_server

TOKEN = "ghp_firsttoken1111"


@pytest.fixture(autouse=True)
def _no_tokens(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("GITHUB_TOKEN", "MERGEMILL_GITHUB_TOKENS", "http_proxy", "HTTP_PROXY"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("NO_PROXY", "127.0.0.1")


@pytest.fixture
def clock() -> FrozenClock:
    return FrozenClock()


@pytest.fixture
def server(clock: FrozenClock) -> Iterator[ScriptedServer]:
    with run_server(clock) as scripted:
        yield scripted


@pytest.fixture
def connect(server: ScriptedServer, clock: FrozenClock) -> Iterator[Callable[..., GitHubApi]]:
    """Connect an API client to the server; settings by keyword."""
    with ExitStack() as stack:

        def make(timeout: int = 5, **options: object) -> GitHubApi:
            settings = Settings.model_validate({"github_api": server.url, "github_tokens": TOKEN} | options)
            return stack.enter_context(GitHubApi(settings.github, settings.host, clock=clock, timeout=timeout))

        yield make

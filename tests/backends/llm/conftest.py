"""Scripted model server and its client."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import ExitStack

import pytest

from backends.llm.client import ChatModel
from core.config import Settings
from core.settings.machine import HostSettings
from tests.backends.llm.server import ModelServer, run_model_server


@pytest.fixture
def server(monkeypatch: pytest.MonkeyPatch) -> Iterator[ModelServer]:
    monkeypatch.delenv("OPENAI_API_KEY", raising=False)
    monkeypatch.setenv("NO_PROXY", "127.0.0.1")
    with run_model_server() as model:
        yield model


@pytest.fixture
def client(server: ModelServer) -> Iterator[Callable[..., ChatModel]]:
    """Factory of clients with short retry delays."""
    with ExitStack() as opened:

        def make_client(**settings: object) -> ChatModel:
            given = {"llm": server.url, "model": "scripted", "llm_timeout": 60, **settings}
            model = ChatModel(Settings.model_validate(given).llm, HostSettings(), first_pause=0.01)
            opened.callback(model.close)
            return model

        yield make_client

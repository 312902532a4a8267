"""A scripted model, and the client that asks it."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import ExitStack

import pytest

from backends.llm.client import ChatModel
from mergemill.config import Settings
from tests.llm.server import ModelServer, serving


@pytest.fixture
def server(monkeypatch: pytest.MonkeyPatch) -> Iterator[ModelServer]:
    monkeypatch.delenv("OPENAI_API_KEY", raising=False)
    monkeypatch.setenv("NO_PROXY", "127.0.0.1")
    with serving() as model:
        yield model


@pytest.fixture
def client(server: ModelServer) -> Iterator[Callable[..., ChatModel]]:
    """Makes clients that hardly wait between attempts."""
    with ExitStack() as opened:

        def made(**settings: object) -> ChatModel:
            given = {"llm": server.url, "model": "scripted", "llm_timeout": 10, **settings}
            model = ChatModel(Settings.model_validate(given), first_pause=0.01)
            opened.callback(model.close)
            return model

        yield made

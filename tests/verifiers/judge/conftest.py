"""A scripted model over HTTP, and clients for it."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from backends.llm.client import ChatModel
from core.config import Settings
from taskdb.artifacts import Artifacts
from tests.backends.llm.conftest import client, server
from tests.backends.llm.server import ModelServer
from verifiers.judge.client import JudgeClient

__all__ = ["client", "server"]

Asked = Callable[..., JudgeClient]


@pytest.fixture
def make_client(server: ModelServer, client: Callable[..., ChatModel], tmp_path: Path) -> Asked:
    """Return a factory of judge clients that share one store."""

    def begun(**settings: object) -> JudgeClient:
        given = {"store": tmp_path / "store", "judge_samples": 1, **settings}
        model = client(**given)
        return JudgeClient.from_settings(
            model,
            Settings.model_validate({"llm": server.url, "model": model.name, **given}),
            Artifacts(tmp_path / "store" / "artifacts"),
        )

    return begun

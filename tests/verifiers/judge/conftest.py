"""A scripted model over HTTP, and one change whose statement it is asked about."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from backends.llm.client import ChatModel
from mergemill.config import Settings
from taskdb.artifacts import Artifacts
from tests.llm.conftest import client, server
from tests.llm.server import ModelServer
from verifiers.judge.asking import Asking

__all__ = ["client", "server"]

Asked = Callable[..., Asking]


@pytest.fixture
def asking(server: ModelServer, client: Callable[..., ChatModel], tmp_path: Path) -> Asked:
    """Begins to ask, as often as one likes, with one store."""

    def begun(**settings: object) -> Asking:
        given = {"store": tmp_path / "store", "judge_samples": 1, **settings}
        model = client(**given)
        return Asking.begin(
            model,
            Settings.model_validate({"llm": server.url, "model": model.name, **given}),
            Artifacts(tmp_path / "store" / "artifacts"),
        )

    return begun

"""Gateways in front of scripted models."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path

import pytest

from samplers.gateway.process import GatewayProcess, Upstream
from tests.samplers.scripted_model import ScriptedModel

StartGateway = Callable[..., GatewayProcess]


@pytest.fixture
def start_gateway(tmp_path: Path) -> Iterator[StartGateway]:
    """Start a gateway in front of a model; further arguments are those of `Upstream`."""
    with ExitStack() as stack:

        def start(model: ScriptedModel, dialect: str = "openai", **settings: object) -> GatewayProcess:
            base = model.url.removesuffix("/v1") if dialect == "anthropic" else model.url
            given = {"request_timeout": 20, "first_pause": 0.01} | settings
            upstream = Upstream.model_validate({"url": base, "dialect": dialect} | given)
            socket = tmp_path / "agents.sock"
            return stack.enter_context(GatewayProcess(upstream, tmp_path / "logs", agent_socket=socket, port=0))

        yield start

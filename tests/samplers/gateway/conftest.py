"""Gateways in front of scripted models. A gateway is kept for the next test with the same upstream: starting one takes
a third of a second."""

from __future__ import annotations

import socket
from collections import OrderedDict
from collections.abc import Callable, Iterator
from contextlib import suppress

import pytest

from core.errors import InputError
from samplers.gateway.process import GatewayProcess, Upstream
from tests.samplers.scripted_model import ScriptedModel

StartGateway = Callable[..., GatewayProcess]
ServeModel = Callable[..., ScriptedModel]
Gateways = OrderedDict[str, GatewayProcess]

MAX_KEPT = 4


@pytest.fixture(scope="session")
def upstream_port() -> int:
    """A port at which the models of all tests are, one after the other."""
    with socket.create_server(("127.0.0.1", 0)) as listener:
        return int(listener.getsockname()[1])


@pytest.fixture
def serve_model(upstream_port: int) -> ServeModel:
    """Make a model at the port that the gateways know."""
    return lambda answer, **settings: ScriptedModel(answer, port=upstream_port, **settings)


@pytest.fixture(scope="session")
def kept_gateways() -> Iterator[Gateways]:
    kept: Gateways = OrderedDict()
    yield kept
    for gateway in kept.values():
        gateway.__exit__(None, None, None)


@pytest.fixture
def start_gateway(kept_gateways: Gateways, tmp_path_factory: pytest.TempPathFactory) -> Iterator[StartGateway]:
    """Start a gateway in front of a model; further arguments are those of `Upstream`."""
    used: list[GatewayProcess] = []

    def start(model: ScriptedModel, dialect: str = "openai", **settings: object) -> GatewayProcess:
        base = model.url.removesuffix("/v1") if dialect == "anthropic" else model.url
        given = {"request_timeout": 20, "first_pause": 0.01} | settings
        upstream = Upstream.model_validate({"url": base, "dialect": dialect} | given)
        key = upstream.model_dump_json()
        if key not in kept_gateways:
            folder = tmp_path_factory.mktemp("gateway")
            made = GatewayProcess(upstream, folder / "logs", agent_socket=folder / "agents.sock", port=0)
            kept_gateways[key] = made.__enter__()
        used.append(kept_gateways[key])
        return used[-1]

    yield start
    for gateway in dict.fromkeys(used):
        _empty(gateway)
    for key in [key for key, gateway in kept_gateways.items() if not gateway.is_alive]:
        kept_gateways.pop(key).__exit__(None, None, None)
    while len(kept_gateways) > MAX_KEPT:
        kept_gateways.popitem(last=False)[1].__exit__(None, None, None)


def _empty(gateway: GatewayProcess) -> None:
    """Close all rollouts and remove their logs."""
    for log in gateway.log_dir.glob("*.jsonl"):
        if gateway.is_alive:
            with suppress(InputError):
                gateway.close_rollout(log.stem)
        log.unlink()

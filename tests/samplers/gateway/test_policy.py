"""What the gateway changes in a request, and that it names each change."""

from __future__ import annotations

from typing import Any

import pytest

from samplers.gateway.exchanges import Exchange, read_exchanges
from samplers.gateway.process import GatewayProcess, RolloutAccess
from tests.samplers.gateway.clients import iterate_events, make_body, post
from tests.samplers.gateway.conftest import ServeModel, StartGateway
from tests.samplers.scripted_model import Turn

HOSTED: dict[str, list[dict[str, Any]]] = {
    "chat": [{"type": "function", "function": {"name": "web_search", "parameters": {}}}],
    "messages": [
        {"type": "web_search_20250305", "name": "web_search"},
        {"type": "web_fetch_20250910", "name": "web_fetch"},
        {"type": "code_execution_20250825", "name": "code_execution"},
        {"name": "WebFetch", "input_schema": {}},
    ],
    "responses": [
        {"type": "web_search"},
        {"type": "file_search", "vector_store_ids": []},
        {"type": "code_interpreter", "container": {"type": "auto"}},
        {"type": "computer_use_preview"},
        {"type": "mcp", "server_label": "x", "server_url": "https://example.org"},
    ],
}


def read_last(gateway: GatewayProcess) -> Exchange:
    return read_exchanges(gateway.log_dir / "r.jsonl")[-1]


@pytest.mark.parametrize("dialect", ["chat", "messages", "responses"])
def test_tools_that_reach_the_web_or_run_elsewhere_are_removed_by_name(
    start_gateway: StartGateway, serve_model: ServeModel, dialect: str
) -> None:
    with serve_model([Turn(text="ok")]) as model:
        gateway = start_gateway(model)
        gateway.open_rollout("r", RolloutAccess(secret="s"))
        tools = make_body(dialect, "hi")["tools"] + HOSTED[dialect]
        assert post(gateway, "s", dialect, tools=tools).status_code == 200
        assert model.requests[0].tools == ["bash"]
        removed = [change for change in read_last(gateway).changes if change.startswith("tool removed")]
        assert len(removed) == len(HOSTED[dialect])


def test_a_request_whose_only_tools_are_hosted_has_none_and_no_choice(
    start_gateway: StartGateway, serve_model: ServeModel
) -> None:
    with serve_model([Turn(text="ok")]) as model:
        gateway = start_gateway(model)
        gateway.open_rollout("r", RolloutAccess(secret="s"))
        post(gateway, "s", "responses", tools=HOSTED["responses"], tool_choice={"type": "web_search"})
        assert not {"tools", "tool_choice"} & set(model.requests[0].body)


def test_a_rollout_may_keep_all_tools(start_gateway: StartGateway, serve_model: ServeModel) -> None:
    with serve_model([Turn(text="ok")]) as model:
        gateway = start_gateway(model)
        gateway.open_rollout("r", RolloutAccess(secret="s", tools="all"))
        post(gateway, "s", "chat", tools=HOSTED["chat"])
        assert model.requests[0].tools == ["web_search"]


@pytest.mark.parametrize("upstream", ["openai", "anthropic"])
def test_model_and_sampling_are_the_rollouts(
    start_gateway: StartGateway, serve_model: ServeModel, upstream: str
) -> None:
    sampling = {"temperature": 0.25, "top_p": 0.9, "max_tokens": 77, "seed": 5}
    with serve_model([Turn(text="ok")]) as model:
        gateway = start_gateway(model, upstream)
        gateway.open_rollout("r", RolloutAccess(secret="s", model="trained", sampling=sampling))
        post(gateway, "s", "messages", temperature=1.0)
        body = model.requests[0].body
        assert {key: body.get(key) for key in ("model", "temperature", "top_p", "max_tokens")} == {
            "model": "trained",
            "temperature": 0.25,
            "top_p": 0.9,
            "max_tokens": 77,
        }
        assert body.get("seed") == (5 if upstream == "openai" else None)
        changes = " ".join(read_last(gateway).changes)
        for name in ("model: agents-own -> trained", "temperature: 1.0 -> 0.25", "max_tokens: 1000 -> 77", "seed"):
            assert name in changes


def test_the_length_of_an_answer_keeps_the_agents_name_for_it(
    start_gateway: StartGateway, serve_model: ServeModel
) -> None:
    with serve_model([Turn(text="ok")]) as model:
        gateway = start_gateway(model)
        gateway.open_rollout("r", RolloutAccess(secret="s", sampling={"max_tokens": 77}))
        post(gateway, "s", "chat", max_completion_tokens=5)
        assert model.requests[0].body["max_completion_tokens"] == 77
        assert "max_tokens" not in model.requests[0].body


@pytest.mark.parametrize("streamed", [False, True], ids=["plain", "streamed"])
def test_token_ids_are_recorded_and_kept_from_agents_that_did_not_want_them(
    start_gateway: StartGateway, serve_model: ServeModel, streamed: bool
) -> None:
    with serve_model([Turn(text="one two three")], token_ids=True) as model:
        gateway = start_gateway(model, token_ids="vllm")
        gateway.open_rollout("r", RolloutAccess(secret="s"))
        response = post(gateway, "s", "chat", streamed=streamed)
        assert "token_ids" not in response.text
        assert "logprob" not in response.text
        exchange = read_last(gateway)
        assert exchange.prompt_token_ids
        assert exchange.completion_token_ids
        assert exchange.logprobs
        assert len(exchange.prompt_token_ids) == exchange.prompt_tokens
        assert len(exchange.completion_token_ids) == len(exchange.logprobs) == exchange.completion_tokens
        wanted = post(gateway, "s", "chat", streamed=streamed, return_token_ids=True)
        assert "token_ids" in wanted.text
        assert "logprobs" not in wanted.text


def test_the_usage_of_a_stream_is_recorded_and_kept_from_agents_that_did_not_want_it(
    start_gateway: StartGateway,
    serve_model: ServeModel,
) -> None:
    with serve_model([Turn(text="one two three")]) as model:
        gateway = start_gateway(model)
        gateway.open_rollout("r", RolloutAccess(secret="s"))
        response = post(gateway, "s", "chat", streamed=True, stream_options=None)
        assert not any("usage" in event for event in iterate_events(response.text))
        assert read_last(gateway).completion_tokens == 4

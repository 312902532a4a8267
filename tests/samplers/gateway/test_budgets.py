"""Budgets of rollouts: what stops them, and how an agent and the driver learn of it."""

from __future__ import annotations

from typing import Any

import openai
import pytest

from backends.llm.meter import TokenPrices
from samplers.gateway.process import Budget, RolloutAccess
from tests.samplers.gateway.clients import post
from tests.samplers.gateway.conftest import ServeModel, StartGateway
from tests.samplers.scripted_model import ModelRequest, Turn


@pytest.mark.parametrize(
    ("budget", "name"),
    [({"requests": 2}, "requests"), ({"tokens": 60}, "tokens"), ({"cost": 0.0004}, "cost")],
)
def test_a_budget_that_is_used_up_stops_a_rollout_and_names_itself(
    start_gateway: StartGateway, serve_model: ServeModel, budget: dict[str, Any], name: str
) -> None:
    with serve_model([Turn(text="one two three")]) as model:
        prices = TokenPrices(prompt=10, cached=1, completion=20)
        gateway = start_gateway(model, prices=prices)
        gateway.open_rollout("r", RolloutAccess(secret="s", budget=Budget(**budget)))
        gateway.open_rollout("other", RolloutAccess(secret="t"))
        statuses = [post(gateway, "s", "chat", f"question {number}").status_code for number in range(6)]
        answered = statuses.index(400)
        assert statuses == [200] * answered + [400] * (6 - answered)
        assert 1 < answered == model.paid
        usage = gateway.get_usage("r")
        assert usage.stopped_by == name
        assert usage.requests == answered
        assert usage.last_error
        assert usage.last_error["kind"] == "budget"
        assert post(gateway, "t", "chat").status_code == 200


NO_TOOLS: dict[str, Any] = {"tools": []}


@pytest.mark.parametrize("dialect", ["chat", "messages", "responses"])
def test_turns_are_answers_to_requests_with_tools_and_titles_are_free(
    start_gateway: StartGateway, serve_model: ServeModel, dialect: str
) -> None:
    with serve_model([Turn(text="ok")]) as model:
        gateway = start_gateway(model)
        gateway.open_rollout("r", RolloutAccess(secret="s", budget=Budget(turns=3)))
        titles = [post(gateway, "s", dialect, f"title {number}", **NO_TOOLS).status_code for number in range(2)]
        turns = [post(gateway, "s", dialect, f"step {number}").status_code for number in range(5)]
        title = post(gateway, "s", dialect, "summary", **NO_TOOLS).status_code
        assert (titles, turns, title) == ([200, 200], [200, 200, 200, 400, 400], 200)
        usage = gateway.get_usage("r")
        assert (usage.turns, usage.requests, usage.stopped_by) == (3, 6, "turns")


def test_every_answer_is_a_turn_where_no_request_has_tools(
    start_gateway: StartGateway, serve_model: ServeModel
) -> None:
    with serve_model([Turn(text="ok")]) as model:
        gateway = start_gateway(model)
        gateway.open_rollout("r", RolloutAccess(secret="s", budget=Budget(turns=2)))
        assert [post(gateway, "s", "chat", f"step {number}", **NO_TOOLS).status_code for number in range(4)] == [
            200,
            200,
            400,
            400,
        ]
        assert gateway.get_usage("r").stopped_by == "turns"


def test_a_request_that_fails_is_no_turn(start_gateway: StartGateway, serve_model: ServeModel) -> None:
    def answer(request: ModelRequest) -> Turn:
        return Turn(fault="context") if "fail" in request.raw.decode() else Turn(text="ok")

    with serve_model(answer) as model:
        gateway = start_gateway(model)
        gateway.open_rollout("r", RolloutAccess(secret="s", budget=Budget(turns=1)))
        assert [post(gateway, "s", "chat", f"fail {number}").status_code for number in range(3)] == [400] * 3
        assert gateway.get_usage("r").stopped_by is None
        assert [post(gateway, "s", "chat", f"step {number}").status_code for number in range(2)] == [200, 400]
        assert gateway.get_usage("r").stopped_by == "turns"


def test_turns_of_a_gateway_that_died_count(start_gateway: StartGateway, serve_model: ServeModel) -> None:
    with serve_model([Turn(text="ok")]) as model:
        gateway = start_gateway(model)
        gateway.open_rollout("r", RolloutAccess(secret="s", budget=Budget(turns=2)))
        assert post(gateway, "s", "chat", "title", **NO_TOOLS).status_code == 200
        assert post(gateway, "s", "chat", "step 0").status_code == 200
        gateway.kill()
        gateway.restart()
        assert [post(gateway, "s", "chat", f"step {number}").status_code for number in (1, 2)] == [200, 400]
        gateway.open_rollout("r", RolloutAccess(secret="s", budget=Budget(turns=2), replay=True))
        assert [post(gateway, "s", "chat", f"step {number}").status_code for number in (0, 1, 2)] == [
            200,
            200,
            400,
        ]
        assert model.paid == 3


@pytest.mark.parametrize("dialect", ["chat", "messages", "responses"])
def test_no_client_retries_what_a_budget_refuses(
    start_gateway: StartGateway, serve_model: ServeModel, dialect: str
) -> None:
    with serve_model([Turn(text="ok")]) as model:
        gateway = start_gateway(model)
        gateway.open_rollout("r", RolloutAccess(secret="s", budget=Budget(requests=0)))
        response = post(gateway, "s", dialect)
        assert response.status_code == 400
        assert "budget of this rollout is used up: requests 0 of 0" in response.json()["error"]["message"]
        assert response.json()["error"]["type"] == "invalid_request_error"
        assert (response.json().get("type") == "error") is (dialect == "messages")
        with (
            openai.OpenAI(base_url=f"http://127.0.0.1:{gateway.port}/v1", api_key="s", max_retries=3) as client,
            pytest.raises(openai.BadRequestError, match="budget"),
        ):
            client.responses.create(model="m", input="x")
        assert not model.requests


def test_cached_tokens_have_their_own_price(start_gateway: StartGateway, serve_model: ServeModel) -> None:
    with serve_model([Turn(text="one two three", cached_tokens=4)]) as model:
        prices = TokenPrices(prompt=1000, cached=10, completion=1_000_000)
        gateway = start_gateway(model, prices=prices)
        gateway.open_rollout("r", RolloutAccess(secret="s"))
        post(gateway, "s", "chat")
        usage = gateway.get_usage("r")
        expected = ((usage.prompt_tokens - 4) * 1000 + 4 * 10 + usage.completion_tokens * 1_000_000) / 1_000_000
        assert usage.cost == pytest.approx(expected)
        assert usage.cached_tokens == 4

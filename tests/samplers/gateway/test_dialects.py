"""Three dialects of clients in front of two of upstreams, plain and streamed: the agent gets what the model gave."""

from __future__ import annotations

import httpx
import openai
import pytest

from samplers.gateway.exchanges import read_exchanges
from samplers.gateway.process import RolloutAccess
from samplers.gateway.translation import to_chat_answer
from tests.samplers.gateway.clients import iterate_events, make_body, make_url, post, read_reply
from tests.samplers.gateway.conftest import ServeModel, StartGateway
from tests.samplers.scripted_model import Call, Turn

ANSWER = Turn(
    text="Here is what I do.",
    reasoning="First look around.",
    calls=(Call("bash", {"command": "ls -la"}, "call_a"), Call("bash", {"command": "cat 'ü'"}, "call_b")),
    cached_tokens=2,
)
REASONS = {"chat": "tool_calls", "messages": "tool_use", "responses": "completed"}
ACCESS = RolloutAccess(secret="s3cret", model="trained")


@pytest.mark.parametrize("streamed", [False, True], ids=["plain", "streamed"])
@pytest.mark.parametrize("upstream", ["openai", "anthropic"])
def test_a_client_of_each_dialect_gets_text_reasoning_and_parallel_calls(
    start_gateway: StartGateway, serve_model: ServeModel, upstream: str, streamed: bool
) -> None:
    with serve_model([ANSWER]) as model:
        gateway = start_gateway(model, upstream)
        gateway.open_rollout("r", ACCESS)
        for dialect in ("chat", "messages", "responses"):
            reply = read_reply(dialect, post(gateway, "s3cret", dialect, f"{dialect}", streamed=streamed))
            assert reply.text == ANSWER.text
            assert reply.reasoning == ANSWER.reasoning
            assert reply.calls == [(call.id, call.name, call.arguments) for call in ANSWER.calls]
            assert reply.reason == REASONS[dialect]
            request = model.requests[-1]
            assert request.is_chat is (upstream == "openai")
            assert request.body["model"] == "trained"
            assert request.tools == ["bash"]
            exchange = read_exchanges(gateway.log_dir / "r.jsonl")[-1]
            assert reply.tokens == (exchange.prompt_tokens, exchange.completion_tokens)
            assert exchange.prompt_tokens > exchange.cached_tokens == 2
            assert exchange.request.encode() == request.raw
            assert exchange.response
            message = to_chat_answer(exchange.response, exchange.upstream_dialect)
            assert (message["content"], message["reasoning_content"]) == (ANSWER.text, ANSWER.reasoning)


def test_the_openai_sdk_reads_every_stream(start_gateway: StartGateway, serve_model: ServeModel) -> None:
    with serve_model([ANSWER]) as model:
        for upstream in ("openai", "anthropic"):
            gateway = start_gateway(model, upstream)
            gateway.open_rollout("r", ACCESS)
            with openai.OpenAI(base_url=f"http://127.0.0.1:{gateway.port}/v1", api_key="s3cret") as client:
                with client.responses.stream(model="m", input="hi") as events:
                    final = events.get_final_response()
                assert [item.type for item in final.output] == [
                    "reasoning",
                    "message",
                    "function_call",
                    "function_call",
                ]
                assert final.output_text == ANSWER.text
                messages = [{"role": "user", "content": "hi"}]
                with client.chat.completions.stream(model="m", messages=messages) as chunks:  # type: ignore[arg-type]
                    completion = chunks.get_final_completion()
                assert completion.choices[0].message.content == ANSWER.text
                assert client.models.list().data[0].id == "trained"


def test_an_unchanged_request_is_sent_on_byte_for_byte(start_gateway: StartGateway, serve_model: ServeModel) -> None:
    body = b'{ "messages": [{"role": "user",   "content": "h\\u00e9"}], "model": "m", "max_tokens": 7 }'
    with serve_model([Turn(text="hello")]) as model:
        gateway = start_gateway(model)
        gateway.open_rollout("r", RolloutAccess(secret="s"))
        httpx.post(make_url(gateway, "s", "chat"), content=body)
        assert model.requests[0].raw == body
        (exchange,) = read_exchanges(gateway.log_dir / "r.jsonl")
        assert exchange.changes == ()
        assert exchange.received == exchange.request == body.decode()


@pytest.mark.parametrize("upstream", ["openai", "anthropic"])
@pytest.mark.parametrize("dialect", ["chat", "messages", "responses"])
def test_the_first_token_goes_out_when_it_comes_in(
    start_gateway: StartGateway, serve_model: ServeModel, upstream: str, dialect: str
) -> None:
    """The model waits after the first piece until the client has it."""
    with serve_model([Turn(text="one two three four five six", delay=0.05)]) as model:
        gateway = start_gateway(model, upstream)
        gateway.open_rollout("r", ACCESS)
        body = {"chat": {"messages": [{"role": "user", "content": "x"}]}, "responses": {"input": "x"}}
        json = body.get(dialect, body["chat"] | {"max_tokens": 5}) | {"model": "m", "stream": True}
        with httpx.stream("POST", make_url(gateway, "s3cret", dialect), json=json, timeout=20) as response:
            pieces = list(response.iter_text())
        whole = [piece for piece in pieces if "one two" in piece and "five six" in piece and "three" not in piece]
        assert len(pieces) > 3
        assert not whole
        first = next(at for at, piece in enumerate(pieces) if "one two" in piece)
        assert not any("five six" in piece for piece in pieces[: first + 1])
        assert list(iterate_events("".join(pieces)))


@pytest.mark.parametrize("streamed", [False, True], ids=["plain", "streamed"])
def test_signed_thinking_goes_to_the_agent_and_back(
    start_gateway: StartGateway, serve_model: ServeModel, streamed: bool
) -> None:
    """Anthropic's models accept their own thinking only with its signature."""
    signed = {"type": "thinking", "thinking": ANSWER.reasoning, "signature": "c2lnbmVk"}
    with serve_model([ANSWER, Turn(text="done")]) as model:
        gateway = start_gateway(model, "anthropic")
        gateway.open_rollout("r", ACCESS)
        chat = post(gateway, "s3cret", "chat", "a", streamed=streamed)
        if streamed:
            deltas = [e["choices"][0]["delta"] for e in iterate_events(chat.text) if e["choices"]]
            assert [delta["thinking_blocks"] for delta in deltas if "thinking_blocks" in delta] == [[signed]]
            response = list(iterate_events(post(gateway, "s3cret", "responses", "b", streamed=True).text))[-1]
            output = response["response"]["output"]
        else:
            assert chat.json()["choices"][0]["message"]["thinking_blocks"] == [signed]
            output = post(gateway, "s3cret", "responses", "b").json()["output"]
        post(gateway, "s3cret", "responses", input=[{"role": "user", "content": "b"}, *output])
        assert model.requests[-1].body["messages"][1]["content"][0] == signed


@pytest.mark.parametrize("upstream", ["openai", "anthropic"])
def test_features_that_a_client_of_anthropic_switches_on_reach_anthropic_alone(
    start_gateway: StartGateway, serve_model: ServeModel, upstream: str
) -> None:
    with serve_model([Turn(text="ok")]) as model:
        gateway = start_gateway(model, upstream)
        gateway.open_rollout("r", ACCESS)
        headers = {"anthropic-beta": "interleaved-thinking-2025-05-14", "anthropic-version": "2023-06-01"}
        httpx.post(make_url(gateway, "s3cret", "messages"), json=make_body("messages", "hi"), headers=headers)
        beta = "interleaved-thinking-2025-05-14" if upstream == "anthropic" else None
        assert model.requests[0].headers.get("anthropic-beta") == beta

"""A language model behind the gateway of a rollout, for loops that run in this process."""

from __future__ import annotations

import json
import time
from collections.abc import Mapping, Sequence
from typing import Any

from backends.llm.api_messages import build_api_message, build_api_tool
from backends.llm.base import Message, ModelReply, ResponseSchema, Tool
from backends.llm.meter import UsageMeter
from backends.llm.response import FINISH_LENGTH, ResponseAccumulator
from backends.llm.text_tool_calls import extract_tool_calls
from core.errors import CancelledRunError
from samplers.scaffolds.base import GatewayEndpoint
from samplers.scaffolds.gateway_client import request_completion

UNKNOWN_CONTEXT = 1_000_000
"""Tokens: the upstream refuses a request that is too long."""


class GatewayModel:
    """The model of a rollout (`backends.llm.base.LanguageModel`).

    For a single conversation, whose turns are only added.

    Earlier answers are sent again as they came, so that the record that is recorded stays a single conversation. Two
    things would be rejected and are not: arguments of a call that are not a JSON object, in whose place an empty object
    is sent; and results of calls that an answer has as text, which become messages of the user.

    Args:
        name: name of the model.
        endpoint: endpoint of the rollout's gateway.
    """

    def __init__(self, name: str, endpoint: GatewayEndpoint) -> None:
        self.name = name
        self.context_tokens = UNKNOWN_CONTEXT
        self._endpoint = endpoint
        self._answers: list[tuple[Message, dict[str, Any]]] = []
        self._is_stopped = False

    def complete(
        self,
        messages: Sequence[Message],
        tools: Sequence[Tool] = (),
        *,
        meter: UsageMeter,
        deadline: float | None = None,
        response_schema: ResponseSchema | None = None,
        request_key: str = "",
    ) -> ModelReply:
        """Return the model's next turn; see `backends.llm.base.LanguageModel`. The gateway retries, prices and records.

        Raises:
            GatewayError: there is no answer.
            BudgetExceededError: the deadline has passed.
            CancelledRunError: `stop` was called.
        """
        del response_schema, request_key  # the gateway makes keys of its own
        if self._is_stopped:
            raise CancelledRunError("stopped before a model request")
        body: dict[str, Any] = {"model": self.name, "messages": self._build_messages(messages)}
        if tools:
            body["tools"] = [build_api_tool(tool) for tool in tools]
        started = time.monotonic()
        seconds = None if deadline is None else max(1.0, deadline - started)
        data = request_completion(self._endpoint, body, seconds)
        reply = _read_reply(data, tools, time.monotonic() - started)
        meter.add(reply.usage, 0.0, reply.seconds)
        self._answers.append((reply.message, data["choices"][0]["message"]))
        return reply

    def get_model(self, name: str) -> GatewayModel:
        """Return a model of another name; the gateway sends the rollout's all the same."""
        return GatewayModel(name, self._endpoint)

    def stop(self) -> None:
        """Make no further request."""
        self._is_stopped = True

    def _build_messages(self, messages: Sequence[Message]) -> list[dict[str, Any]]:
        answers, built = iter(self._answers), list[dict[str, Any]]()
        as_text = False
        for message in messages:
            if message.role == "assistant":
                known, raw = next(answers, (None, dict[str, Any]()))
                calls = raw.get("tool_calls") or ()
                as_text = known == message and bool(message.tool_calls) and not calls
                is_sent_again = known == message and all(_has_object(call) for call in calls)
                built.append(raw if is_sent_again else build_api_message(message))
            elif message.role == "tool" and as_text:
                text = f"Result of `{message.tool_name}`:\n{message.text}"
                if built[-1]["role"] == "user":
                    text = f"{built.pop()['content']}\n\n{text}"
                built.append({"role": "user", "content": text})
            else:
                built.append(build_api_message(message))
        return built


def _read_reply(data: Mapping[str, Any], tools: Sequence[Tool], seconds: float) -> ModelReply:
    answer = ResponseAccumulator()
    answer.add_chunk(data)
    text, calls = answer.text, answer.build_tool_calls()
    if tools and not calls:  # as in `backends.llm.client`: models write calls as text now and then
        text, calls = extract_tool_calls(text, (), cut=answer.finish_reason == FINISH_LENGTH)
    return ModelReply(
        text=text,
        tool_calls=calls,
        usage=answer.count_usage(0),
        seconds=seconds,
        finish_reason=answer.finish_reason or "",
        reasoning=answer.reasoning,
    )


def _has_object(call: Mapping[str, Any]) -> bool:
    """Return whether the arguments of a call of the API are a JSON object."""
    try:
        return isinstance(json.loads((call.get("function") or {}).get("arguments") or "{}"), dict)
    except ValueError:
        return False

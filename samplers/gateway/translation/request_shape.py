"""The shape of a client's request, as its translation reads it. Other requests are the upstream's to judge."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from pydantic import ValidationError

from samplers.gateway.dialects import Dialect
from samplers.gateway.failures import refuse
from samplers.gateway.json_text import Json
from samplers.gateway.shapes import ApiShape, describe_flaw

Text = str | None
Parts = str | list[dict[str, Any]] | None
Object = dict[str, Any] | None

CHAT_ROLES = frozenset(("system", "developer", "user", "assistant", "tool"))
MESSAGES_ROLES = frozenset(("system", "user", "assistant"))
RESPONSES_ROLES = frozenset(("system", "developer", "user", "assistant"))
_FORMER_KEYS = {"functions": "tools", "function_call": "tool_choice"}
"""Parameter of chat completions that is no longer published -> its successor."""


class _RequestedFunction(ApiShape):
    name: str
    arguments: str | dict[str, Any] | None = None


class _RequestedCall(ApiShape):
    id: Text = None
    function: _RequestedFunction


class _ChatTurn(ApiShape):
    role: str
    content: Parts = None
    tool_calls: list[_RequestedCall] | None = None
    tool_call_id: Text = None


class _Parameters(ApiShape):
    """Parameters that have the same name in all dialects."""

    tools: list[dict[str, Any]] | None = None
    tool_choice: str | dict[str, Any] | None = None
    temperature: float | None = None


class _ChatRequest(_Parameters):
    messages: list[_ChatTurn]
    stop: str | list[str] | None = None
    max_tokens: int | None = None
    max_completion_tokens: int | None = None
    response_format: Object = None


class _RequestedBlock(ApiShape):
    type: Text = None
    text: Text = None
    thinking: Text = None
    id: Text = None
    tool_use_id: Text = None
    name: Text = None
    input: Object = None
    content: str | list[Any] | dict[str, Any] | None = None
    source: Object = None


class _MessagesTurn(ApiShape):
    role: str
    content: str | list[_RequestedBlock]


class _MessagesRequest(_Parameters):
    system: str | list[dict[str, Any]] | None = None
    messages: list[_MessagesTurn]
    tool_choice: Object = None
    output_config: Object = None


class _Item(ApiShape):
    type: Text = None
    role: Text = None
    content: Parts = None
    summary: list[dict[str, Any]] | None = None
    name: Text = None
    call_id: Text = None
    arguments: str | dict[str, Any] | None = None
    output: str | list[dict[str, Any]] | dict[str, Any] | None = None
    action: Object = None
    operation: Object = None


class _ResponsesRequest(_Parameters):
    input: str | list[_Item]
    instructions: str | list[dict[str, Any]] | None = None
    text: Object = None


_SHAPES: Mapping[Dialect, tuple[type[ApiShape], str, frozenset[str]]] = {
    Dialect.CHAT: (_ChatRequest, "messages", CHAT_ROLES),
    Dialect.MESSAGES: (_MessagesRequest, "messages", MESSAGES_ROLES),
    Dialect.RESPONSES: (_ResponsesRequest, "input", RESPONSES_ROLES),
}
"""Dialect -> shape, key of the conversation, and roles."""


def check_request(body: Json, dialect: Dialect) -> None:
    """Check a request that is to be translated.

    Raises:
        GatewayFailure: it has another shape, or a role or parameter that has no counterpart.
    """
    shape, key, roles = _SHAPES[dialect]
    try:
        shape.model_validate(body)
    except ValidationError as error:
        raise refuse(f"the request cannot be read: {describe_flaw(error, body)}") from error
    for former, current in _FORMER_KEYS.items() if dialect is Dialect.CHAT else ():
        if body.get(former):
            raise refuse(f"`{former}` is not available: use `{current}`")
    turns = body[key] if isinstance(body[key], list) else ()
    for at, turn in enumerate(turns):
        role = turn.get("role")
        if role is not None and role not in roles:
            raise refuse(f"the role of `{key}.{at}` is none of {', '.join(sorted(roles))}")
        if turn.get("function_call"):
            raise refuse(f"the `function_call` of `{key}.{at}` is not available: use `tool_calls`")

"""Translation between the dialects of clients and upstreams: pure functions, with chat completions in the middle."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field

from backends.llm.call_pieces import read_arguments
from backends.llm.conversations.items import read_items
from backends.llm.conversations.messages import read_messages, translate_tool
from backends.llm.conversations.parts import join_text, read_reasoning
from backends.llm.conversations.tool_table import ToolTable
from samplers.gateway.dialects import Dialect
from samplers.gateway.failures import refuse_unreadable
from samplers.gateway.json_text import Json
from samplers.gateway.translation.answers import (
    build_chat_answer,
    build_message_answer,
    build_response_answer,
    first_choice,
    read_response_output,
)
from samplers.gateway.translation.chat_request import translate_chat_request
from samplers.gateway.translation.hosted_tools import is_hosted_tool
from samplers.gateway.translation.messages_request import translate_messages_request
from samplers.gateway.translation.normalisation import replace_function_call
from samplers.gateway.translation.request_shape import check_request
from samplers.gateway.translation.response_stream import ChatToResponses
from samplers.gateway.translation.responses_request import translate_responses_request
from samplers.gateway.translation.streams import ChatToMessages, MessagesToChat, StreamTranslator

__all__ = ["Translation", "to_chat_answer", "to_chat_messages", "translate_request"]


@dataclass(frozen=True, kw_only=True)
class Translation:
    """How the answer to a request becomes the client's. `table` and `request` are those of a Responses request."""

    client: Dialect
    upstream: Dialect
    request: Json
    table: ToolTable = field(default_factory=ToolTable)

    @property
    def is_identity(self) -> bool:
        """Whether client and upstream have the same dialect."""
        return self.client is self.upstream

    def translate_answer(self, answer: Json) -> Json:
        """Return a complete answer in the client's dialect."""
        if self.is_identity:
            return answer
        chat = build_chat_answer(answer) if self.upstream is Dialect.MESSAGES else answer
        if self.client is Dialect.MESSAGES:
            return build_message_answer(chat)
        return build_response_answer(chat, self.table, self.request) if self.client is Dialect.RESPONSES else chat

    def make_stages(self) -> list[StreamTranslator]:
        """Return the translators through which each event of a stream passes, in order."""
        if self.is_identity:
            return []
        stages: list[StreamTranslator] = [MessagesToChat()] if self.upstream is Dialect.MESSAGES else []
        if self.client is Dialect.MESSAGES:
            stages.append(ChatToMessages())
        elif self.client is Dialect.RESPONSES:
            stages.append(ChatToResponses(self.table, self.request))
        return stages


@refuse_unreadable()
def translate_request(body: Json, client: Dialect, upstream: Dialect) -> tuple[Json, list[str], Translation]:
    """Return a request in the upstream's dialect, the changes that changed, and how to translate the answer.

    Args:
        body: the request of the client; it is not changed.
        client: dialect of the client.
        upstream: CHAT or MESSAGES.

    Raises:
        GatewayFailure: it holds a part that cannot be translated.
    """
    translation = Translation(client=client, upstream=upstream, request=body)
    if client is upstream:
        return body, [], translation
    check_request(body, client)
    dropped: list[str] = []
    chat = body
    if client is Dialect.RESPONSES:
        chat, dropped, table = translate_responses_request(body)
        translation = Translation(client=client, upstream=upstream, request=body, table=table)
    elif client is Dialect.MESSAGES:
        chat, dropped = translate_messages_request(body)
    if upstream is Dialect.MESSAGES:
        chat, more = translate_chat_request(chat)
        dropped += more
    changes = [f"translated: {client} -> {upstream}"]
    if dropped:
        changes.append(f"without counterpart: {', '.join(sorted(set(dropped)))}")
    return chat, changes, translation


@refuse_unreadable()
def to_chat_messages(request_json: Json, dialect: str) -> tuple[list[Json], list[Json]]:
    """Return conversation and tools of a request of any dialect in the form of chat completions.

    Contents of text alone are strings, marks for caches are left out, reasoning is in `reasoning_content`.

    Raises:
        GatewayFailure: it holds a part that cannot be translated.
    """
    if dialect == Dialect.MESSAGES:
        tools = [translate_tool(tool) for tool in request_json.get("tools") or () if not is_hosted_tool(tool, dialect)]
        return [_normalise_message(message) for message in read_messages(request_json)], tools
    if dialect == Dialect.RESPONSES:
        table = ToolTable(tool for tool in request_json.get("tools") or () if not is_hosted_tool(tool, dialect))
        return [_normalise_message(message) for message in read_items(request_json)], table.functions
    listed = _replace_former_calls(request_json.get("messages") or ())
    messages = [_normalise_message(message) for message in listed]
    return messages, [tool for tool in request_json.get("tools") or () if tool.get("type") == "function"]


@refuse_unreadable()
def to_chat_answer(response_json: Json, dialect: str) -> Json:
    """Return the assistant's message of a complete answer of any dialect in the form of chat completions."""
    if dialect == Dialect.MESSAGES:
        return _normalise_message(first_choice(build_chat_answer(response_json))["message"])
    if dialect == Dialect.RESPONSES:
        return _normalise_message(read_response_output(response_json))
    message = first_choice(response_json).get("message") or {"role": "assistant"}
    return _normalise_message(replace_function_call(message))


def _replace_former_calls(messages: Iterable[Json]) -> Iterator[Json]:
    """Yield messages in which calls and results of the earlier form, which have no ids, are calls and results."""
    open_calls: list[tuple[object, str]] = []
    for at, message in enumerate(messages):
        call = message.get("function_call")
        if isinstance(call, dict):
            open_calls.append((call.get("name"), f"call_{at}"))
            calls = [*(message.get("tool_calls") or ()), {"id": f"call_{at}", "function": call}]
            yield message | {"tool_calls": calls}
        elif message.get("role") == "function":
            known = next((pair for pair in open_calls if pair[0] == message.get("name")), (None, ""))
            open_calls = [pair for pair in open_calls if pair is not known]
            yield message | {"role": "tool", "tool_call_id": known[1]}
        else:
            yield message


def _normalise_message(message: Json) -> Json:
    """Return a message with role, content, reasoning, calls and the id of its call alone."""
    content = message.get("content")
    if isinstance(content, list) and not all(part.get("type", "text") in ("text", "refusal") for part in content):
        kept: object = [{key: part[key] for key in part if key != "cache_control"} for part in content]
    else:
        kept = join_text(content) or str(message.get("refusal") or "")
    made: Json = {"role": "system" if message.get("role") == "developer" else message.get("role"), "content": kept}
    if reasoning := read_reasoning(message):
        made["reasoning_content"] = reasoning
    if message.get("tool_calls"):
        made["tool_calls"] = [_normalise_call(call) for call in message["tool_calls"]]
    if message.get("tool_call_id"):
        made["tool_call_id"] = message["tool_call_id"]
    return made


def _normalise_call(call: Json) -> Json:
    function = call.get("function") or {}
    kept = {"name": function.get("name") or "", "arguments": read_arguments(function.get("arguments"))}
    return {"id": call.get("id") or "", "type": "function", "function": kept}

"""Complete answers of a dialect in another. Chat completions stand in the middle."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from backends.llm.conversations.items import read_items
from backends.llm.conversations.messages import read_assistant
from backends.llm.conversations.parts import join_text, parse_arguments, read_reasoning, seal_reasoning
from backends.llm.conversations.tool_table import ToolTable
from samplers.gateway.json_text import Json

STOP_REASONS = {"length": "max_tokens", "tool_calls": "tool_use", "content_filter": "refusal"}
FINISH_REASONS = {"max_tokens": "length", "tool_use": "tool_calls", "refusal": "content_filter"}
INCOMPLETE_REASONS = {"length": "max_output_tokens", "content_filter": "content_filter"}


def first_choice(answer: Mapping[str, Any]) -> Json:
    """Return the first choice of an answer of chat completions; empty where there is none."""
    choices: Any = answer.get("choices") or ({},)
    return dict(choices[0])


def translate_chat_usage(usage: Mapping[str, Any] | None) -> Json:
    """Return the usage of chat completions as that of Messages, in which cached tokens are counted apart."""
    usage = usage or {}
    cached = (usage.get("prompt_tokens_details") or {}).get("cached_tokens") or 0
    return {
        "input_tokens": max((usage.get("prompt_tokens") or 0) - cached, 0),
        "cache_creation_input_tokens": 0,
        "cache_read_input_tokens": cached,
        "output_tokens": usage.get("completion_tokens") or 0,
    }


def translate_messages_usage(usage: Mapping[str, Any] | None) -> Json:
    """Return the usage of Messages as that of chat completions."""
    usage = usage or {}
    cached = usage.get("cache_read_input_tokens") or 0
    prompt = (usage.get("input_tokens") or 0) + cached + (usage.get("cache_creation_input_tokens") or 0)
    completion = usage.get("output_tokens") or 0
    return {
        "prompt_tokens": prompt,
        "completion_tokens": completion,
        "total_tokens": prompt + completion,
        "prompt_tokens_details": {"cached_tokens": cached},
    }


def choose_stop_reason(choice: Mapping[str, Any]) -> tuple[str, str | None]:
    """Return stop reason and stop sequence of Messages for a choice of chat completions."""
    finish = str(choice.get("finish_reason") or "stop")
    if finish == "stop" and (choice.get("message") or {}).get("tool_calls"):
        return "tool_use", None
    matched = choice.get("stop_reason")  # of vLLM: the text that ended the answer
    if finish == "stop" and isinstance(matched, str):
        return "stop_sequence", matched
    return STOP_REASONS.get(finish, "end_turn"), None


def build_message_answer(answer: Json) -> Json:
    """Return an answer of chat completions as one of Messages."""
    choice = first_choice(answer)
    message = choice.get("message") or {}
    content: list[Json] = list(message.get("thinking_blocks") or ())
    reasoning = read_reasoning(message)
    if reasoning and not content:
        content.append({"type": "thinking", "thinking": reasoning, "signature": ""})
    text = join_text(message.get("content")) or str(message.get("refusal") or "")
    if text:
        content.append({"type": "text", "text": text})
    for call in message.get("tool_calls") or ():
        function = call.get("function") or {}
        arguments = parse_arguments(function.get("arguments"))
        content.append({"type": "tool_use", "id": call.get("id"), "name": function.get("name"), "input": arguments})
    reason, sequence = choose_stop_reason(choice)
    return {
        "id": answer.get("id") or "msg",
        "type": "message",
        "role": "assistant",
        "model": answer.get("model") or "",
        "content": content,
        "stop_reason": reason,
        "stop_sequence": sequence,
        "usage": translate_chat_usage(answer.get("usage")),
    }


def build_chat_answer(answer: Json) -> Json:
    """Return an answer of Messages as one of chat completions."""
    message = read_assistant(list(answer.get("content") or ()))
    message["content"] = message["content"] or None
    reason = str(answer.get("stop_reason") or "end_turn")
    return {
        "id": answer.get("id") or "chatcmpl",
        "object": "chat.completion",
        "created": 0,
        "model": answer.get("model") or "",
        "choices": [{"index": 0, "message": message, "finish_reason": FINISH_REASONS.get(reason, "stop")}],
        "usage": translate_messages_usage(answer.get("usage")),
    }


def build_response_answer(answer: Json, table: ToolTable, request: Json) -> Json:
    """Return an answer of chat completions as a response of Responses to a request."""
    choice = first_choice(answer)
    message = choice.get("message") or {}
    incomplete = INCOMPLETE_REASONS.get(str(choice.get("finish_reason")))
    return build_response_frame(answer, request) | {
        "status": "incomplete" if incomplete else "completed",
        "incomplete_details": {"reason": incomplete} if incomplete else None,
        "output": build_output(str(answer.get("id") or "resp"), message, table),
        "usage": _build_response_usage(answer.get("usage") or {}),
    }


def build_response_frame(answer: Mapping[str, Any], request: Json) -> Json:
    """Return a response in progress, without output."""
    return {
        "id": f"resp_{answer.get('id') or ''}",
        "object": "response",
        "created_at": answer.get("created") or 0,
        "status": "in_progress",
        "error": None,
        "incomplete_details": None,
        "instructions": request.get("instructions"),
        "metadata": request.get("metadata") or {},
        "model": answer.get("model") or request.get("model") or "",
        "output": [],
        "parallel_tool_calls": request.get("parallel_tool_calls", True),
        "store": False,
        "temperature": request.get("temperature"),
        "tool_choice": request.get("tool_choice") or "auto",
        "tools": request.get("tools") or [],
        "top_p": request.get("top_p"),
        "usage": None,
    }


def build_output(answer_id: str, message: Json, table: ToolTable) -> list[Json]:
    """Return the items of an answer: reasoning, text, calls."""
    items = []
    reasoning, blocks = read_reasoning(message), message.get("thinking_blocks")
    if reasoning or blocks:
        items.append(build_reasoning_item(answer_id, reasoning, blocks))
    text = join_text(message.get("content")) or str(message.get("refusal") or "")
    if text:
        items.append(build_text_item(answer_id, text))
    return items + [table.build_item(call) for call in message.get("tool_calls") or ()]


def build_reasoning_item(answer_id: str, text: str, blocks: object) -> Json:
    """Return an item of reasoning; its encrypted content lets a client without memory give it back."""
    return {
        "id": f"rs_{answer_id}",
        "type": "reasoning",
        "summary": [],
        "content": [{"type": "reasoning_text", "text": text}],
        "encrypted_content": seal_reasoning(text, blocks),
        "status": "completed",
    }


def build_text_item(answer_id: str, text: str) -> Json:
    """Return an item of text."""
    part = {"type": "output_text", "text": text, "annotations": [], "logprobs": []}
    return {"id": f"msg_{answer_id}", "type": "message", "role": "assistant", "status": "completed", "content": [part]}


def _build_response_usage(usage: Mapping[str, Any]) -> Json:
    prompt, completion = usage.get("prompt_tokens") or 0, usage.get("completion_tokens") or 0
    cached = (usage.get("prompt_tokens_details") or {}).get("cached_tokens") or 0
    reasoning = (usage.get("completion_tokens_details") or {}).get("reasoning_tokens") or 0
    return {
        "input_tokens": prompt,
        "input_tokens_details": {"cached_tokens": cached},
        "output_tokens": completion,
        "output_tokens_details": {"reasoning_tokens": reasoning},
        "total_tokens": prompt + completion,
    }


def read_response_output(response: Json) -> Json:
    """Return the assistant's message of a complete answer of Responses."""
    messages = read_items({"input": response.get("output") or []})
    return messages[0] if messages else {"role": "assistant", "content": ""}


def dump_arguments(value: object) -> str:
    """Return the arguments of a call as text."""
    return value if isinstance(value, str) else json.dumps(value or {}, ensure_ascii=False)

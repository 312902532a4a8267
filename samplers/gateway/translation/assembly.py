"""Complete answers from streams, in the dialect of the stream."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any, Protocol

from samplers.gateway.failures import ExchangeFailure, GatewayFailure
from samplers.gateway.json_text import Json

MAX_TEXT = 8 << 20
"""Characters of text, reasoning and arguments that an answer may have."""
_JOINED_KEYS = ("content", "reasoning_content", "reasoning", "refusal")
_BLOCK_TEXTS = {"text_delta": "text", "thinking_delta": "thinking", "signature_delta": "signature"}


class AnswerAssembler(Protocol):
    """Collects the events of a stream."""

    @property
    def is_finished(self) -> bool:
        """Whether the answer is complete."""
        ...

    def feed(self, event: Json) -> None:
        """Add an event.

        Raises:
            GatewayFailure: it is an error, or the answer is too large.
        """
        ...

    def build(self) -> Json:
        """Return the answer as if it had not been streamed."""
        ...


class ChatAssembler:
    """Collects chunks of chat completions in the published form."""

    def __init__(self) -> None:
        self._answer: Json = {}
        self._choices: dict[int, Json] = {}
        self._size = 0

    @property
    def is_finished(self) -> bool:
        """Whether every choice has a finish reason."""
        return bool(self._choices) and all(choice.get("finish_reason") for choice in self._choices.values())

    def feed(self, event: Json) -> None:
        """Add a chunk."""
        raise_stream_error(event)
        for key, value in event.items():
            if key == "choices":
                for choice in value or ():
                    self._add_choice(choice)
            elif value is not None or key not in self._answer:
                self._answer[key] = value

    def _add_choice(self, piece: Json) -> None:
        choice = self._choices.setdefault(piece.get("index", 0), {"index": piece.get("index", 0), "message": {}})
        self._add_delta(choice["message"], piece.get("delta") or {})
        for key, value in piece.items():
            if key in ("index", "delta") or value is None:
                continue
            if key == "token_ids":
                choice.setdefault(key, []).extend(value)
            elif key == "logprobs":
                choice.setdefault(key, {"content": []})["content"].extend(value.get("content") or ())
            else:
                choice[key] = value

    def _add_delta(self, message: Json, delta: Json) -> None:
        for key, value in delta.items():
            if key == "tool_calls":
                for call in value or ():
                    self._add_call(message, call)
            elif key == "function_call" and value:
                function = message.setdefault(key, {"name": "", "arguments": ""})
                function["name"] += value.get("name") or ""
                self._join_arguments(function, value)
            elif key in _JOINED_KEYS and isinstance(value, str):
                self._size = check_size(self._size + len(value))
                message[key] = (message.get(key) or "") + value
            elif value is not None or key not in message:
                message[key] = value

    def _add_call(self, message: Json, piece: Json) -> None:
        """Add a piece of the published form, in which calls begin in the order of their indices."""
        calls = message.setdefault("tool_calls", [])
        at, function = piece["index"], piece.get("function") or {}
        if at == len(calls):
            made = {"name": function.get("name") or "", "arguments": ""}
            calls.append({"id": piece.get("id") or "", "type": "function", "function": made})
        self._join_arguments(calls[at]["function"], function)

    def _join_arguments(self, function: Json, piece: Json) -> None:
        arguments = piece.get("arguments") or ""
        self._size = check_size(self._size + len(arguments))
        function["arguments"] += arguments

    def build(self) -> Json:
        """Return the answer; its content is null where it has no text."""
        choices = [self._choices[index] for index in sorted(self._choices)]
        for choice in choices:
            choice["message"] = {"role": "assistant", **choice["message"]}
            choice["message"]["content"] = choice["message"].get("content") or None
        return self._answer | {"object": "chat.completion", "choices": choices}


class MessagesAssembler:
    """Collects events of Messages in the published form."""

    def __init__(self) -> None:
        self._answer: Json = {}
        self._blocks: dict[int, Json] = {}
        self._inputs: dict[int, list[str]] = {}
        self._size = 0

    @property
    def is_finished(self) -> bool:
        """Whether there is a stop reason."""
        return bool(self._answer.get("stop_reason"))

    def feed(self, event: Json) -> None:
        """Add an event; pings and unknown events have nothing to add."""
        raise_stream_error(event)
        kind = event.get("type")
        if kind == "message_start":
            self._answer = dict(event.get("message") or {})
        elif kind == "content_block_start":
            self._blocks[event["index"]] = dict(event.get("content_block") or {})
        elif kind == "content_block_delta":
            self._add_delta(event["index"], event.get("delta") or {})
        elif kind == "message_delta":
            self._answer |= event.get("delta") or {}
            usage = {key: value for key, value in (event.get("usage") or {}).items() if value is not None}
            self._answer["usage"] = {**(self._answer.get("usage") or {}), **usage}

    def _add_delta(self, index: int, delta: Json) -> None:
        kind = str(delta.get("type"))
        block = self._blocks.setdefault(index, {})
        if kind == "input_json_delta":
            self._inputs.setdefault(index, []).append(delta.get("partial_json") or "")
            self._size = check_size(self._size + len(self._inputs[index][-1]))
        elif kind in _BLOCK_TEXTS:
            key = _BLOCK_TEXTS[kind]
            self._size = check_size(self._size + len(delta.get(key) or ""))
            block[key] = (block.get(key) or "") + (delta.get(key) or "")
        elif kind == "citations_delta":
            block["citations"] = [*(block.get("citations") or ()), delta.get("citation")]

    def build(self) -> Json:
        """Return the answer; a call's input that is not JSON stands as text under `_arguments`."""
        content = []
        for index in sorted(self._blocks):
            block = self._blocks[index]
            text = "".join(self._inputs.get(index, ()))
            content.append(block | ({"input": _parse_input(text)} if text else {}))
        return self._answer | {"content": content}


def _parse_input(text: str) -> Any:
    try:
        return json.loads(text)
    except ValueError:
        return {"_arguments": text}


def check_size(size: int) -> int:
    """Return the size of an answer.

    Raises:
        GatewayFailure: it is too large.
    """
    if size > MAX_TEXT:
        detail = f"the answer has more than {MAX_TEXT >> 20} MB of text"
        raise GatewayFailure(ExchangeFailure.TOO_LARGE, detail, 502)
    return size


def raise_stream_error(event: Mapping[str, Any]) -> None:
    """Check an event.

    Raises:
        GatewayFailure: it reports an error.
    """
    error = event.get("error")
    if not error:
        return
    detail = error.get("message") if isinstance(error, Mapping) else error
    detail = detail if isinstance(detail, str) and detail else json.dumps(error)
    raise GatewayFailure(ExchangeFailure.SERVER, f"the upstream ended the stream: {detail}", 502)

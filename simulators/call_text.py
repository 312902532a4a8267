"""Calls as text: `<think>..</think>` before JSON, a call as JSON, calls in Hermes tags."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from typing import Any

from simulators.conversation import FunctionCall

_THINK_PREFIX = re.compile(r"<think>(.*?)</think>\s*(.*)", re.DOTALL)
_HERMES_CALL = re.compile(r"<tool_call>\s*(.*?)\s*</tool_call>", re.DOTALL)


class CallTextError(ValueError):
    """A text is not a call; the message is the reason."""


def split_thought(text: str) -> tuple[str | None, str]:
    """Return the inside of the first `<think>` of a call's text, None where there is none, and what follows it."""
    match = _THINK_PREFIX.search(text)
    return (match[1], match[2].strip()) if match else (None, text.strip())


def parse_calls(text: str) -> tuple[FunctionCall, ...]:
    """Return the call or the list of calls in a JSON text; arguments may be JSON within a string.

    Raises:
        CallTextError: it is neither.
    """
    try:
        value = json.loads(text)
    except (ValueError, RecursionError) as error:
        raise CallTextError(f"no JSON: {error}") from error
    listed = value if isinstance(value, list) else [value]
    if not listed:
        raise CallTextError("an empty list of calls")
    return tuple(read_call(call) for call in listed)


def read_call(value: object) -> FunctionCall:
    """Return the call that a JSON value is.

    Raises:
        CallTextError: it has no name, or its arguments are not an object.
    """
    if not isinstance(value, Mapping) or not isinstance(value.get("name"), str) or not value["name"]:
        raise CallTextError("a call without a name")
    arguments = value.get("arguments", value.get("parameters", {}))
    if isinstance(arguments, str):
        arguments = _load_arguments(arguments)
    if arguments is None:
        arguments = {}
    if not isinstance(arguments, Mapping):
        raise CallTextError(f"the arguments of {value['name']} are no object")
    return FunctionCall(name=value["name"], arguments=dict(arguments))


def extract_hermes_calls(text: str) -> tuple[str, tuple[FunctionCall, ...]]:
    """Return a text without its `<tool_call>` parts, and their calls.

    Raises:
        CallTextError: a part is not a call.
    """
    calls = [call for part in _HERMES_CALL.findall(text) for call in parse_calls(part)]
    return _HERMES_CALL.sub("", text).strip(), tuple(calls)


def _load_arguments(text: str) -> Any:
    if not text.strip():
        return {}
    try:
        return json.loads(text)
    except (ValueError, RecursionError) as error:
        raise CallTextError(f"arguments that are no JSON: {error}") from error

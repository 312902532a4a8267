"""Steps 4 and 5: calls against the tools of the domain pack, and arguments against its validators."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import jsonschema

from simulators.conversation import FunctionCall
from simulators.domains.validators import ValidatorError, validate_call
from simulators.post_processing.context import StepContext
from simulators.post_processing.draft import Draft, DroppedError, DropReason

THINK_TOOL = "think"
"""A tool for reasoning, which some environments have and whose calls the released code drops."""


def check_tools(draft: Draft, context: StepContext) -> Draft:
    """Step 4: drop a conversation with a call that its tool does not permit."""
    for number, turn in enumerate(draft.turns, 1):
        for call in turn.calls:
            if call.name == THINK_TOOL:
                raise DroppedError(DropReason.THINK_CALLED, f"turn {number}")
            tool = context.pack.tools.get(call.name)
            if tool is None:
                raise DroppedError(DropReason.UNKNOWN_TOOL, f"turn {number}: {call.name}")
            check_call(call, tool["parameters"], number, released=context.options.released_rules)
    return draft


def check_call(call: FunctionCall, schema: Mapping[str, Any], number: int, *, released: bool) -> None:
    """Check a call against the schema of its tool; `released`: types of the first level alone.

    Raises:
        DroppedError: an argument is missing, unknown or of another type.
    """
    properties = schema.get("properties", {})
    for name in schema.get("required", ()):
        if name not in call.arguments:
            raise DroppedError(DropReason.ARGUMENT_MISSING, f"turn {number}: {call.name} without {name}")
    for name in call.arguments:
        if name not in properties:
            raise DroppedError(DropReason.ARGUMENT_UNKNOWN, f"turn {number}: {call.name} with {name}")
    if released:
        for name, value in call.arguments.items():
            if not has_released_type(value, properties[name]):
                raise DroppedError(DropReason.ARGUMENT_TYPE, f"turn {number}: {name} of {call.name} is {value!r}")
        return
    error = jsonschema.exceptions.best_match(jsonschema.Draft202012Validator(schema).iter_errors(dict(call.arguments)))
    if error is not None:
        where = ".".join(map(str, error.absolute_path)) or "its arguments"
        raise DroppedError(DropReason.ARGUMENT_TYPE, f"turn {number}: {where} of {call.name}: {error.message[:200]}")


def has_released_type(value: Any, schema: Mapping[str, Any]) -> bool:
    """Return whether a value has the type of a schema as the released code compares it.

    Items of a list are compared by their type alone, a boolean is a number, and other types hold for every value.
    """
    kinds: Mapping[str, type | tuple[type, ...]] = {
        "string": str,
        "array": list,
        "object": dict,
        "number": (int, float),
        "integer": int,
        "boolean": bool,
    }
    expected = schema.get("type")
    kind = kinds.get(expected) if isinstance(expected, str) else None
    if kind is None:
        return True
    if not isinstance(value, kind):
        return False
    items = schema.get("items", {}) if isinstance(value, list) else {}
    if isinstance(value, list) and isinstance(items, Mapping) and items.get("type"):
        return all(has_released_type(item, {"type": items["type"]}) for item in value)
    return True


def apply_validators(draft: Draft, context: StepContext) -> Draft:
    """Step 5: repair arguments by the validators of the pack; a call that cannot be repaired drops the conversation."""
    raws: dict[int, str] = {}
    turns = list(draft.turns)
    for at, turn in enumerate(turns):
        if not turn.calls:
            continue
        try:
            calls = tuple(
                validate_call(call, context.pack.rules, strict=not context.options.released_rules)
                for call in turn.calls
            )
        except ValidatorError as error:
            raise DroppedError(DropReason.ARGUMENT_FORMAT, f"turn {at + 1}: {error}") from error
        if calls != turn.calls:
            raws[at] = "\n".join(call.render() for call in turn.calls)
            turns[at] = replace(turn, calls=calls)
    return draft.add_repairs("validators", raws, turns=tuple(turns))

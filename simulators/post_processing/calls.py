"""Steps 1 to 3: a single call a turn, arguments as objects, calls as records.

In profile `simia` the text of a call turn stays as the released code leaves it: `<think>..</think>` and a
line end before the call, which `think.release_thoughts` turns into visible text.
"""

from __future__ import annotations

import json
from dataclasses import replace
from typing import Any

import json_repair

from simulators.call_text import CallTextError, parse_calls, read_call, split_thought
from simulators.conversation import DialogueTurn, FunctionCall, TurnRole
from simulators.post_processing.context import StepContext
from simulators.post_processing.draft import Draft, DroppedError, DropReason

SEVERAL_CALLS = ("<tool_", "\n[{")
"""Texts by which the released code finds calls in other forms than one object a turn."""


def drop_several_calls(draft: Draft, context: StepContext) -> Draft:
    """Step 1: drop a conversation with calls in another form; a list of calls may stay where the pack permits it."""
    parallel = context.pack.format.parallel_calls and not context.options.released_rules
    for number, turn in enumerate(draft.turns, 1):
        is_list = parallel and turn.role is TurnRole.FUNCTION_CALL
        mark = next((mark for mark in SEVERAL_CALLS if mark in turn.text and not (is_list and mark == "\n[{")), None)
        if mark is None and turn.role is TurnRole.FUNCTION_CALL and not parallel and _is_list(turn.text, context):
            mark = "[{"
        if mark:
            raise DroppedError(DropReason.SEVERAL_CALLS, f"turn {number} holds {mark.strip()}")
    return draft


def _is_list(text: str, context: StepContext) -> bool:
    """Return whether a call turn begins with a list of calls, which the released code leaves to step 3."""
    return not context.options.released_rules and split_thought(text)[1].startswith("[")


def repair_arguments(draft: Draft, context: StepContext) -> Draft:
    """Step 2: make the arguments of each call an object.

    Profile `simia` repairs as the released code does: quotes, else an empty object. Otherwise brackets and quotes are
    repaired by json-repair, and an argument that would have to be invented drops the conversation.
    """
    raws: dict[int, str] = {}
    turns = list(draft.turns)
    for at, turn in enumerate(turns):
        if turn.role is not TurnRole.FUNCTION_CALL:
            continue
        if context.options.released_rules:
            text, is_repaired = repair_released(turn.text)
        else:
            text, is_repaired = _repair_strictly(turn.text, at)
        if is_repaired:
            raws[at] = turn.text
        turns[at] = replace(turn, text=text)
    return draft.add_repairs("arguments", raws, turns=tuple(turns))


def repair_released(text: str) -> tuple[str, bool]:
    """Return the text of a call turn as the released code repairs it, and whether the arguments changed.

    A text that is not JSON is returned as it is.
    """
    thought, body = split_thought(text)
    prefix = "" if thought is None else f"<think>{thought}</think>\n"
    try:
        call = json.loads(body)
    except (ValueError, RecursionError):
        return text, False
    if not isinstance(call, dict):
        return text, False
    arguments = call.get("arguments")
    if isinstance(arguments, dict):
        return (prefix + json.dumps(call, ensure_ascii=False) if prefix else text), False
    call["arguments"] = _parse_released(arguments) if isinstance(arguments, str) else {}
    return prefix + json.dumps(call, ensure_ascii=False), True


def _parse_released(text: str) -> Any:
    bare = text.strip()
    candidates = [text]
    if bare.startswith("{") and bare.endswith("}"):
        candidates.append(bare.replace("'", '"'))
    for candidate in candidates:
        try:
            return json.loads(candidate)
        except (ValueError, RecursionError):
            continue
    return {}


def _repair_strictly(text: str, at: int) -> tuple[str, bool]:
    """Return the text with well-formed calls, and whether anything was repaired.

    Raises:
        DroppedError: the calls or their arguments cannot be read without inventing something.
    """
    thought, body = split_thought(text)
    prefix = "" if thought is None else f"<think>{thought}</think>\n"
    value, is_repaired = _load(body)
    listed = value if isinstance(value, list) else [value]
    made = []
    for call in listed:
        if not isinstance(call, dict) or not isinstance(call.get("name"), str) or not call["name"]:
            raise DroppedError(DropReason.CALL, f"turn {at + 1}: no call with a name: {body[:80]!r}")
        arguments = call.get("arguments")
        if isinstance(arguments, str) and arguments.strip():
            arguments, _ = _load(arguments)
            is_repaired = True
        if not isinstance(arguments, dict):
            raise DroppedError(DropReason.ARGUMENTS, f"turn {at + 1}: the arguments of {call['name']} are no object")
        made.append({"name": call["name"], "arguments": arguments})
    shown = json.dumps(made if isinstance(value, list) else made[0], ensure_ascii=False)
    return prefix + shown, is_repaired


def _load(text: str) -> tuple[Any, bool]:
    """Return the value of a JSON text, and whether it had to be repaired; None where it is not JSON at all."""
    try:
        return json.loads(text), False
    except (ValueError, RecursionError):
        pass
    if not text.lstrip().startswith(("{", "[")):
        return None, False
    try:
        return json_repair.loads(text), True
    except (ValueError, RecursionError):
        return None, False


def read_calls(draft: Draft, context: StepContext) -> Draft:
    """Step 3: read the calls; a call that cannot be read drops the conversation."""
    turns = []
    for number, turn in enumerate(draft.turns, 1):
        if turn.role is not TurnRole.FUNCTION_CALL:
            turns.append(turn)
            continue
        thought, body = split_thought(turn.text)
        try:
            calls = _read_released(body) if context.options.released_rules else parse_calls(body)
        except CallTextError as error:
            raise DroppedError(DropReason.CALL, f"turn {number}: {error}") from error
        if context.options.released_rules:
            text = "" if thought is None else f"<think>{thought}</think>\n"
            turns.append(replace(turn, text=text, calls=calls))
        else:
            turns.append(replace(turn, text="", calls=calls, reasoning=(thought or "").strip()))
    return replace(draft, turns=tuple(turns))


def _read_released(body: str) -> tuple[FunctionCall, ...]:
    """Return the call of a text; its arguments were made an object or are refused by step 4."""
    try:
        value = json.loads(body)
    except (ValueError, RecursionError) as error:
        raise CallTextError(f"no JSON: {error}") from error
    return (read_call(value),)


def render_hermes(turn: DialogueTurn, *, released: bool, llama: bool = False) -> str:
    """Return the text of a call turn with its calls in Hermes tags.

    Args:
        turn: turn with calls.
        released: write it as the released code does, whatever the trained model.
        llama: write calls as Llama 3.1 does, without tags and with `parameters`.
    """
    if llama and not released:
        parts = [
            json.dumps({"name": call.name, "parameters": dict(call.arguments)}, ensure_ascii=False)
            for call in turn.calls
        ]
    else:
        parts = [f"<tool_call>\n{call.render(ascii_only=released)}\n</tool_call>" for call in turn.calls]
    if released:
        return f"{turn.text}{parts[0]}\n"
    thought = f"<think>\n{turn.reasoning}\n</think>\n\n" if turn.reasoning else ""
    return thought + "\n".join(part for part in (turn.text.strip(), *parts) if part)

"""Readers of conversations. `READERS` lists the formats in the order in which they are tried; each takes a document.

Formats: ShareGPT (roles human, gpt, function_call, observation), Hermes text (ShareGPT or messages with calls in
`<tool_call>` and results in `<tool_response>`), messages in OpenAI's form, Harbor's Agent Trajectory Interchange Format
(`ATIF-v1.x`), results of tau2 (`simulations` with `messages`), and exports of own trajectories, which are messages,
ShareGPT or ATIF.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from backends.llm.conversations.parts import ConversationError, join_text
from backends.llm.conversations.reader import ReadMessage, check_fields, read_conversation, read_parts
from backends.llm.conversations.tools import read_tools
from simulators.call_text import CallTextError, extract_hermes_calls, parse_calls, read_call, split_thought
from simulators.conversation import AGENT_ROLES, Dialogue, DialogueTurn, FunctionCall, TurnRole

Document = Mapping[str, Any]


class SeedFormatError(Exception):
    """A document is not a conversation; the text is the reason."""


@dataclass(frozen=True, kw_only=True)
class SeedDocument:
    """A conversation of a document. `is_solved`: the outcome that its source recorded, None where it did not."""

    conversation: Dialogue
    name: str = ""
    subjects: tuple[str, ...] = ()
    """As of `Seed`."""
    license: str = ""
    is_solved: bool | None = None


@dataclass(frozen=True)
class SeedReader:
    """A format: its name, a test of the keys, and a function that yields the conversations of a document."""

    name: str
    accepts: Callable[[Document], bool]
    read: Callable[[Document], Iterator[SeedDocument]]


SHAREGPT_ROLES: Mapping[str, TurnRole] = {
    "system": TurnRole.SYSTEM,
    "human": TurnRole.HUMAN,
    "user": TurnRole.HUMAN,
    "gpt": TurnRole.ASSISTANT,
    "assistant": TurnRole.ASSISTANT,
    "function_call": TurnRole.FUNCTION_CALL,
    "observation": TurnRole.OBSERVATION,
    "tool": TurnRole.OBSERVATION,
}
MESSAGE_ROLES: Mapping[str, TurnRole] = {
    "system": TurnRole.SYSTEM,
    "developer": TurnRole.SYSTEM,
    "user": TurnRole.HUMAN,
    "assistant": TurnRole.ASSISTANT,
    "tool": TurnRole.OBSERVATION,
    "function": TurnRole.OBSERVATION,
}
TAU2_FIELDS = ("role", "content", "reasoning_content", "reasoning")
"""Fields of a message of tau2 that a model is given, apart from its calls."""
ATIF_ROLES: Mapping[str, TurnRole] = {
    "system": TurnRole.SYSTEM,
    "user": TurnRole.HUMAN,
    "agent": TurnRole.ASSISTANT,
}
SUBJECT_FIELDS = ("instance_id", "task_id", "scenario", "task")
"""Fields in which rows name a task or scenario."""
METADATA_FIELDS = ("task", "seed_name")
"""Fields of the `metadata` of own rows: id of the task; of simulated rows name of the seed."""
HERMES_CALL = "<tool_call>"
HERMES_TOOLS = re.compile(r"<tools>(.*?)</tools>", re.DOTALL)
HERMES_RESULT = re.compile(r"<tool_response>\s*(.*?)\s*</tool_response>", re.DOTALL)


def read_sharegpt(document: Document) -> Iterator[SeedDocument]:
    """Yield the conversation of a ShareGPT row."""
    turns = [_make_system(document)] if document.get("system") else []
    for entry in _get_list(document, "conversations"):
        role = _find_role(SHAREGPT_ROLES, entry.get("from", entry.get("role")))
        turns.append(_make_text_turn(role, _read_entry_text(entry)))
    yield _make_document(document, turns, _read_tools(document.get("tools")))


def read_hermes(document: Document) -> Iterator[SeedDocument]:
    """Yield the conversation of a row whose calls stand in its texts."""
    key = "conversations" if "conversations" in document else "messages"
    roles = SHAREGPT_ROLES if key == "conversations" else MESSAGE_ROLES
    turns = [_make_system(document)] if document.get("system") else []
    for entry in _get_list(document, key):
        role = _find_role(roles, entry.get("from", entry.get("role")))
        turns.append(_make_hermes_turn(role, _read_entry_text(entry), turns))
    tools = _read_tools(document.get("tools")) or _find_hermes_tools(turns)
    yield _make_document(document, turns, tools)


def read_messages(document: Document) -> Iterator[SeedDocument]:
    """Yield the conversation of a row of messages in the form of any model API."""
    turns = _make_turns(_get_list(document, "messages"), system=document.get("system"))
    yield _make_document(document, turns, _read_tools(document.get("tools")))


def read_atif(document: Document) -> Iterator[SeedDocument]:
    """Yield the conversation of a document of the Agent Trajectory Interchange Format."""
    turns: list[DialogueTurn] = []
    for step in _get_list(document, "steps"):
        turns.extend(_read_step(step))
    tools = _read_tools((document.get("agent") or {}).get("tool_definitions"))
    extra = document.get("extra") or {}
    yield _make_document({**extra, **document}, turns, tools)


def read_tau2(document: Document) -> Iterator[SeedDocument]:
    """Yield the conversations of a results file of tau2, with whether each earned its reward."""
    info = (document.get("info") or {}).get("environment_info") or {}
    system = [DialogueTurn(role=TurnRole.SYSTEM, text=str(info["policy"]))] if info.get("policy") else []
    for simulation in _get_list(document, "simulations"):
        reward = (simulation.get("reward_info") or {}).get("reward")
        listed = _get_list(simulation, "messages")
        own = _make_turns([shown for message in listed for shown in _list_tau2_messages(message)])
        # The greeting of the agent comes before there is a task.
        while own and own[0].role is TurnRole.ASSISTANT:
            own = own[1:]
        yield SeedDocument(
            conversation=Dialogue(turns=(*system, *own), tools=_read_tools(info.get("tool_defs"))),
            name=f"{simulation.get('task_id', '')}/{simulation.get('trial', 0)}",
            is_solved=None if reward is None else reward >= 1,
        )


def _is_hermes(document: Document) -> bool:
    entries = document.get("conversations") or document.get("messages")
    if not isinstance(entries, list):
        return False
    return any(
        isinstance(entry, Mapping) and HERMES_CALL in str(entry.get("value", entry.get("content"))) for entry in entries
    )


# The first reader that accepts a document reads it, so special forms stand before general forms.
READERS: tuple[SeedReader, ...] = (
    SeedReader("atif", lambda document: str(document.get("schema_version", "")).startswith("ATIF"), read_atif),
    SeedReader("tau2", lambda document: isinstance(document.get("simulations"), list), read_tau2),
    SeedReader("hermes", _is_hermes, read_hermes),
    SeedReader("sharegpt", lambda document: isinstance(document.get("conversations"), list), read_sharegpt),
    SeedReader("messages", lambda document: isinstance(document.get("messages"), list), read_messages),
)


def find_reader(document: Document) -> SeedReader:
    """Return the reader of a document.

    Raises:
        SeedFormatError: its keys are of no format.
    """
    reader = next((reader for reader in READERS if reader.accepts(document)), None)
    if reader is None:
        raise SeedFormatError(f"it is of none of {', '.join(seed_reader.name for seed_reader in READERS)}")
    return reader


def _get_list(document: Document, key: str) -> list[Document]:
    value = document.get(key)
    if not isinstance(value, list) or not all(isinstance(item, Mapping) for item in value):
        raise SeedFormatError(f"{key} is no list of objects")
    if not value:
        raise SeedFormatError(f"{key} is empty")
    return value


def _find_role(roles: Mapping[str, TurnRole], name: object) -> TurnRole:
    if name not in roles:
        raise SeedFormatError(f"the role {name!r} is unknown")
    return roles[str(name)]


def _make_system(document: Document) -> DialogueTurn:
    return DialogueTurn(role=TurnRole.SYSTEM, text=str(document["system"]))


def _make_document(
    document: Document, turns: Sequence[DialogueTurn], tools: tuple[Mapping[str, Any], ...]
) -> SeedDocument:
    names = [str(document[key]) for key in ("trajectory_id", "id", "instance_id", "task_id") if document.get(key)]
    resolved = document.get("resolved")
    return SeedDocument(
        conversation=Dialogue(turns=tuple(turns), tools=tools),
        name=names[0] if names else "",
        subjects=_list_subjects(document),
        license=str(document.get("license") or ""),
        is_solved=resolved if isinstance(resolved, bool) else None,
    )


def _list_subjects(document: Document) -> tuple[str, ...]:
    """Return the words by which a row, or its `metadata`, names a subject of its own, or of its seed."""
    metadata = document.get("metadata")
    if isinstance(metadata, str):  # a table has it as JSON
        try:
            metadata = json.loads(metadata)
        except (ValueError, RecursionError):
            metadata = None
    words = [document.get(key) for key in SUBJECT_FIELDS]
    if isinstance(metadata, Mapping):
        subjects = metadata.get("seed_subjects")
        words += [metadata.get(key) for key in METADATA_FIELDS]
        words += subjects if isinstance(subjects, list) else []
    # A text of several words is no name, such as the task itself.
    return tuple(dict.fromkeys(word for word in words if isinstance(word, str) and len(word.split()) == 1))


def _make_text_turn(role: TurnRole, text: str) -> DialogueTurn:
    """Return a turn of ShareGPT; the text of a call that cannot be read stays as it is."""
    if role is not TurnRole.FUNCTION_CALL:
        return DialogueTurn(role=role, text=text)
    thought, rest = split_thought(text)
    try:
        return DialogueTurn(role=role, calls=parse_calls(rest), reasoning=(thought or "").strip())
    except CallTextError:
        return DialogueTurn(role=role, text=text)


def _make_hermes_turn(role: TurnRole, text: str, before: Sequence[DialogueTurn]) -> DialogueTurn:
    if role in AGENT_ROLES and HERMES_CALL in text:
        thought, rest = split_thought(text)
        try:
            own, calls = extract_hermes_calls(rest)
        except CallTextError:
            return DialogueTurn(role=TurnRole.FUNCTION_CALL, text=text)
        reasoning = (thought or "").strip()
        return DialogueTurn(role=TurnRole.FUNCTION_CALL, text=own, calls=calls, reasoning=reasoning)
    if role in (TurnRole.HUMAN, TurnRole.OBSERVATION):
        results = HERMES_RESULT.findall(text)
        # Some rows have no tags around results, so a text after a call counts as its result.
        follows_call = bool(before) and before[-1].role is TurnRole.FUNCTION_CALL
        if results or follows_call:
            return DialogueTurn(role=TurnRole.OBSERVATION, text="\n".join(results) or text)
    return _make_text_turn(role, text)


def _find_hermes_tools(turns: Sequence[DialogueTurn]) -> tuple[Mapping[str, Any], ...]:
    """Return the tools in the `<tools>` of the system's text: a JSON list, or an object a line."""
    for turn in turns:
        parts = HERMES_TOOLS.findall(turn.text) if turn.role is TurnRole.SYSTEM else []
        # Prose names the empty pair of tags, too.
        listed = next((part for part in parts if part.strip()), "")
        if listed:
            try:
                return _read_tools(listed)
            except SeedFormatError:
                lines = [line for line in listed.splitlines() if line.strip()]
                return tuple(tool for line in lines for tool in _read_tools(f"[{line}]"))
    return ()


def _make_turns(messages: object, *, system: object = None) -> list[DialogueTurn]:
    """Return the turns of messages in the form of any model API.

    Raises:
        SeedFormatError: they have a form that is not read; the text names it.
    """
    try:
        read = read_conversation(messages, system=system)
    except ConversationError as error:
        raise SeedFormatError(str(error)) from error
    return [_make_turn(entry) for entry in read]


def _make_turn(read: ReadMessage) -> DialogueTurn:
    role, message = MESSAGE_ROLES[read.message["role"]], read.message
    text, reasoning = message["content"], message.get("reasoning_content", "")
    if not isinstance(text, str):
        raise SeedFormatError(f"message {read.source}: it has an image, and seeds are text alone")
    calls = message.get("tool_calls")
    if not calls:
        return DialogueTurn(role=role, text=text, reasoning=reasoning)
    try:
        parsed = tuple(read_call(call["function"]) for call in calls)
    except CallTextError:
        return DialogueTurn(role=TurnRole.FUNCTION_CALL, text=json.dumps(calls))
    return DialogueTurn(role=TurnRole.FUNCTION_CALL, text=text, calls=parsed, reasoning=reasoning)


def _list_tau2_messages(message: Document) -> Iterator[Mapping[str, Any]]:
    """Yield the messages that the agent sees; users of tau2 have tools, too, whose calls and results it does not."""
    if message.get("role") == "tool" and message.get("requestor", "assistant") != "assistant":
        return
    if message.get("role") == "user" and message.get("tool_calls"):
        return
    if "tool_messages" in message:
        for inner in _get_list(message, "tool_messages"):
            yield from _list_tau2_messages(inner)
        return
    kept = {name: message[name] for name in TAU2_FIELDS if name in message}
    calls = [{name: call[name] for name in ("id", "name", "arguments")} for call in message.get("tool_calls") or ()]
    yield {**kept, **({"tool_calls": calls} if calls else {})}


def _read_step(step: Document) -> Iterator[DialogueTurn]:
    role = _find_role(ATIF_ROLES, step.get("source"))
    text, reasoning = _flatten(step.get("message")), str(step.get("reasoning_content") or "")
    calls = step.get("tool_calls") or ()
    if role is TurnRole.ASSISTANT and calls:
        parsed = tuple(_read_atif_call(call) for call in calls)
        yield DialogueTurn(role=TurnRole.FUNCTION_CALL, text=text, calls=parsed, reasoning=reasoning)
    elif text or reasoning:
        yield DialogueTurn(role=role, text=text, reasoning=reasoning)
    results = [_flatten(result.get("content")) for result in (step.get("observation") or {}).get("results") or ()]
    if results:
        yield DialogueTurn(role=TurnRole.OBSERVATION, text="\n".join(results))


def _read_atif_call(call: Document) -> FunctionCall:
    arguments = call.get("arguments") or {}
    if not isinstance(arguments, Mapping) or not call.get("function_name"):
        raise SeedFormatError("a call has no name, or arguments that are no object")
    return FunctionCall(name=str(call["function_name"]), arguments=dict(arguments))


def _flatten(content: object) -> str:
    """Return the text of a content, which may be a list of parts.

    Raises:
        SeedFormatError: it has another form.
    """
    try:
        return join_text(read_parts(content, "system"))
    except ConversationError as error:
        raise SeedFormatError(str(error)) from error


def _read_entry_text(entry: Document) -> str:
    """Return the text of an entry whose calls, if any, stand in it.

    Raises:
        SeedFormatError: it has calls of its own, or another form.
    """
    try:
        check_fields(entry, ("from", "role", "value", "content", "name"))
    except ConversationError as error:
        raise SeedFormatError(str(error)) from error
    return _flatten(entry.get("value", entry.get("content")))


def _read_tools(value: object) -> tuple[Mapping[str, Any], ...]:
    """Return tools as `{name, description, parameters}`; the value is a list, JSON of it, or absent.

    Raises:
        SeedFormatError: it is something else.
    """
    try:
        functions = [tool["function"] for tool in read_tools(value)]
    except ConversationError as error:
        raise SeedFormatError(str(error)) from error
    return tuple(
        {
            "name": str(function["name"]),
            "description": str(function.get("description") or ""),
            "parameters": function.get("parameters") or {"type": "object", "properties": {}},
        }
        for function in functions
    )

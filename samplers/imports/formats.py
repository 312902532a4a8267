"""Readers of rollouts of others. `READERS` lists the formats; each reader takes a document or row."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any

from core.errors import InputError
from samplers.exports.atif import RAW_ARGUMENTS
from samplers.imports.foreign import (
    AnswerFacts,
    ForeignConversation,
    ForeignFormatError,
    ForeignRollout,
    Message,
    make_conversation,
    read_patch,
)
from samplers.imports.predictions import FORMS, MODEL, NAMES, encode_submission, select_form

Document = Mapping[str, Any]
Reader = Callable[[Document, Path], ForeignRollout]
MAIN_AGENTS = ("main", "primary")
SWE_AGENT_FIELDS = frozenset(("agent", "message_type", "thought", "action", "is_demo", "tags", "tool_call_ids"))
"""Fields of SWE-agent's own; thought and action repeat the message."""
ATIF_ROLES = {"system": "system", "user": "user", "agent": "assistant"}
UNKNOWN = "unknown"
PREDICTIONS = "predictions"
HEX = frozenset("0123456789abcdef")


def read_atif(document: Document, path: Path) -> ForeignRollout:
    """Return a document of the Agent Trajectory Interchange Format, with its embedded sub-agents."""
    agent = document.get("agent") or {}
    extra = document.get("extra") or {}
    names = [str(extra[key]) for key in ("instance_id", "task_name", "task") if extra.get(key)]
    parts = [document, *(document.get("subagent_trajectories") or ())]
    return ForeignRollout(
        instances=[*names, *list_path_names(path)],
        scaffold=str(agent.get("name") or UNKNOWN),
        scaffold_version=str(agent.get("version") or ""),
        model=str(agent.get("model_name") or UNKNOWN),
        submission=read_patch(extra.get("model_patch")),
        conversations=[_read_atif_conversation(part) for part in parts],
    )


def read_swe_agent(document: Document, path: Path) -> ForeignRollout:
    """Return a `.traj` file of SWE-agent: the history of its main agent, and the submission."""
    info = document.get("info") or {}
    history = [entry for entry in document["history"] if entry.get("agent", "main") in MAIN_AGENTS]
    return ForeignRollout(
        instances=list_path_names(path),
        scaffold="swe-agent",
        scaffold_version=str(info.get("swe_agent_version") or ""),
        model=_find_swe_agent_model(document),
        submission=read_patch(info.get("submission")),
        conversations=[make_conversation([_read_entry(entry) for entry in history])],
    )


def read_mini_swe_agent(document: Document, path: Path) -> ForeignRollout:
    """Return a `.traj.json` file of mini-swe-agent."""
    info = document.get("info") or {}
    config = (info.get("config") or {}).get("model") or {}
    named = [str(document["instance_id"])] if document.get("instance_id") else []
    return ForeignRollout(
        instances=[*named, *list_path_names(path)],
        scaffold="mini-swe-agent",
        scaffold_version=str(info.get("mini_version") or ""),
        model=str(config.get("model_name") or UNKNOWN),
        submission=read_patch(info.get("submission")),
        conversations=[make_conversation([entry for entry in document["messages"] if not _is_exit(entry)])],
    )


def read_messages_row(row: Document, path: Path) -> ForeignRollout:
    """Return a row of messages, such as one of `trajectories export --format messages`."""
    metadata = row.get("metadata") or {}
    messages = row["messages"]
    entries = messages if isinstance(messages, list) else []
    conversation = make_conversation(
        messages,
        row.get("tools"),
        system=row.get("system"),
        copied=[at for at, entry in enumerate(entries) if isinstance(entry, dict) and entry.get("weight") == 0],
    )
    return ForeignRollout(
        instances=_list_row_names(row, path),
        scaffold=str(metadata.get("scaffold") or row.get("scaffold") or UNKNOWN),
        scaffold_version=str(metadata.get("scaffold_version") or ""),
        model=str(metadata.get("model") or row.get("model") or row.get("model_name_or_path") or UNKNOWN),
        submission=read_patch(row.get("model_patch", row.get("patch"))),
        conversations=[conversation],
    )


def read_prediction(row: Document, path: Path) -> ForeignRollout:
    """Return a row of predictions, which has a submission and no conversation."""
    try:
        field = select_form(row)
        content = encode_submission(FORMS[field], row[field])
    except InputError as error:
        raise ForeignFormatError(str(error)) from None
    if FORMS[field] != "patch":
        raise ForeignFormatError(f"its submission is a {field}; patches alone are imported")
    return ForeignRollout(
        instances=_list_row_names(row, path),
        scaffold=UNKNOWN,
        model=str(row.get(MODEL) or UNKNOWN),
        submission=content or b"",
    )


READERS: Mapping[str, Reader] = {
    "atif": read_atif,
    "swe-agent": read_swe_agent,
    "mini-swe-agent": read_mini_swe_agent,
    "messages": read_messages_row,
    PREDICTIONS: read_prediction,
}


def detect_format(document: Document) -> str:
    """Return the format of a document or row by its keys.

    Raises:
        ForeignFormatError: it is none of `READERS`.
    """
    if not document:
        raise ForeignFormatError("it is not a JSON object, or an empty one")
    if str(document.get("schema_version", "")).startswith("ATIF"):
        return "atif"
    if "history" in document and "trajectory" in document:
        return "swe-agent"
    if "messages" in document:
        is_mini = "info" in document or str(document.get("trajectory_format", "")).startswith("mini-swe-agent")
        return "mini-swe-agent" if is_mini else "messages"
    if "model_patch" in document or "patch" in document:
        return PREDICTIONS
    raise ForeignFormatError(f"its keys are of none of {', '.join(READERS)}")


def list_path_names(path: Path) -> list[str]:
    """Return the words that may be a task's name in a path.

    The file's and its folders', without endings and trial numbers.

    Hexadecimal names are left out: they might be taken for beginnings of ids.
    """
    stem = path.name.split(".traj")[0].removesuffix(".json").removesuffix(".jsonl")
    names = [stem, *(part.name for part in path.absolute().parents)]
    return [name for word in names for name in dict.fromkeys((word, word.rpartition("__")[0])) if set(name) - HEX]


def _list_row_names(row: Document, path: Path) -> list[str]:
    named = [str(row[key]) for key in NAMES if row.get(key)]
    return named or list_path_names(path)


def _read_atif_conversation(document: Document) -> ForeignConversation:
    messages: list[Message] = []
    facts: dict[int, AnswerFacts] = {}
    copied = set()
    for step in document["steps"]:
        place = len(messages)
        messages.extend(_read_step(step))
        facts[place] = _read_metrics(step)
        if step.get("is_copied_context"):
            copied.add(place)
    tools = (document.get("agent") or {}).get("tool_definitions") or ()
    return make_conversation(messages, tools, facts=facts, copied=copied)


def _read_step(step: Document) -> Iterator[Message]:
    if step["source"] not in ATIF_ROLES:
        raise ForeignFormatError(f"the source {step['source']!r} of a step is unknown")
    message: Message = {"role": ATIF_ROLES[step["source"]], "content": step.get("message") or ""}
    if step.get("reasoning_content"):
        message["reasoning_content"] = step["reasoning_content"]
    calls = step.get("tool_calls") or ()
    if calls:
        message["tool_calls"] = [_read_call(call) for call in calls]
    yield message
    for result in (step.get("observation") or {}).get("results") or ():
        content = result.get("content") or ""
        if result.get("source_call_id"):
            yield {"role": "tool", "tool_call_id": result["source_call_id"], "content": content}
        else:
            yield {"role": "tool" if calls else "user", "content": content}


def _read_call(call: Document) -> Message:
    arguments = call.get("arguments") or {}
    is_raw = isinstance(arguments, dict) and set(arguments) == {RAW_ARGUMENTS}
    function = {"name": call["function_name"], "arguments": arguments[RAW_ARGUMENTS] if is_raw else arguments}
    return {"id": call["tool_call_id"], "type": "function", "function": function}


def _read_metrics(step: Document) -> AnswerFacts:
    metrics = step.get("metrics") or {}

    def read_list(name: str) -> tuple[Any, ...] | None:
        return tuple(metrics[name]) if metrics.get(name) else None

    return AnswerFacts(
        prompt_tokens=int(metrics.get("prompt_tokens") or 0),
        completion_tokens=int(metrics.get("completion_tokens") or 0),
        started_at=str(step.get("timestamp") or ""),
        prompt_token_ids=read_list("prompt_token_ids"),
        completion_token_ids=read_list("completion_token_ids"),
        logprobs=read_list("logprobs"),
    )


def _read_entry(entry: Document) -> Message:
    """Return a message of SWE-agent's history without its own fields; a result has a list with the id of its call."""
    ids = entry.get("tool_call_ids") or ()
    if len(ids) > 1:
        raise ForeignFormatError("an entry of the history is the result of several calls")
    kept = {name: value for name, value in entry.items() if name not in SWE_AGENT_FIELDS}
    return {**kept, **({"tool_call_id": ids[0]} if ids else {})}


def _is_exit(entry: object) -> bool:
    """Return whether an entry is the end that mini-swe-agent writes, which no model is given."""
    return isinstance(entry, dict) and entry.get("role") == "exit"


def _find_swe_agent_model(document: Document) -> str:
    config = document.get("replay_config") or {}
    if isinstance(config, str):
        config = json.loads(config)
    return str(((config.get("agent") or {}).get("model") or {}).get("name") or UNKNOWN)

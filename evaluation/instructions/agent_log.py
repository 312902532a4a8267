"""Logs of agents in the Agent Trajectory Interchange Format (ATIF 1.0 to 1.8), as Harbor's agents write them."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from evaluation.instructions.actions import ModelAnswer

SCHEMA = "ATIF-v1."
WRITTEN_SCHEMA = "ATIF-v1.6"
"""Version of the logs that are written here: the first with all that they have."""
MAX_DEPTH = 8
"""Sub-agents that start each other, above which a log is none."""


class AgentLogError(ValueError):
    """A log that nothing can be decided on; the message begins with `no-log` or `log-incomplete`."""


@dataclass(frozen=True, kw_only=True)
class AgentLog:
    """Log of an agent."""

    agent: str
    """Name of the agent, as the program that ran it has it."""
    answers: Sequence[ModelAnswer]
    """Answers of the model, each with a number of its own. Texts of sub-agents, which no user reads, are reasoning."""
    given: str
    """Texts of system and user that the agent was given, as far as the log has them."""


def read_agent_log(data: bytes) -> AgentLog:
    """Return the log of a document.

    Raises:
        AgentLogError: it is no log, has no answer, or is continued in files that are not there.
    """
    document = _parse(data)
    messages, given = list[Mapping[str, Any]](), list[str]()
    for message in _iterate_messages(document, depth=0):
        if "given" in message:
            given.append(message["given"])
        else:
            messages.append(message)
    if not messages:
        raise AgentLogError("no-log: no step of the log is an answer of the agent")
    answers = [ModelAnswer(exchange=number, message=message) for number, message in enumerate(messages)]
    agent = document.get("agent")
    name = agent.get("name") if isinstance(agent, Mapping) else None
    return AgentLog(agent=str(name or ""), answers=answers, given="\n".join(given))


def write_agent_log(answers: Iterable[ModelAnswer], *, agent: str, given: Sequence[str] = ()) -> bytes:
    """Return the document of answers; equal answers give equal bytes. A call without arguments in JSON has `input`.

    Args:
        answers: answers in their order.
        agent: name of the agent.
        given: texts of the system that the agent was given.
    """
    steps: list[dict[str, Any]] = [{"source": "system", "message": text} for text in given]
    for answer in answers:
        step: dict[str, Any] = {"source": "agent", "message": _read_text(answer.message.get("content"))}
        if reasoning := answer.message.get("reasoning_content"):
            step["reasoning_content"] = str(reasoning)
        if calls := answer.message.get("tool_calls"):
            step["tool_calls"] = [_write_call(call, len(steps), place) for place, call in enumerate(calls)]
        steps.append(step)
    document = {
        "schema_version": WRITTEN_SCHEMA,
        "session_id": agent,
        "agent": {"name": agent, "version": "1"},
        "steps": [{"step_id": number, **step} for number, step in enumerate(steps, 1)],
    }
    return (json.dumps(document, indent=1) + "\n").encode()


def _parse(data: bytes) -> Mapping[str, Any]:
    try:
        document = json.loads(data)
    except (ValueError, RecursionError) as error:
        raise AgentLogError(f"no-log: the log is no JSON: {error}") from error
    if not isinstance(document, Mapping) or not str(document.get("schema_version")).startswith(SCHEMA):
        raise AgentLogError(f"no-log: the log is no document of {SCHEMA}x")
    return document


def _iterate_messages(document: Mapping[str, Any], *, depth: int) -> Iterator[Mapping[str, Any]]:
    """Yield the answers of a document as messages in OpenAI's form, and texts for the agent as `{"given": TEXT}`."""
    if document.get("continued_trajectory_ref"):
        raise AgentLogError("log-incomplete: the log goes on in another file")
    if depth > MAX_DEPTH:
        raise AgentLogError("no-log: the log is nested too deeply")
    embedded = {str(part.get("trajectory_id")): part for part in _list_mappings(document, "subagent_trajectories")}
    for step in _list_mappings(document, "steps"):
        # A copy of an earlier step, such as after a summary, happened once.
        if step.get("is_copied_context"):
            continue
        if step.get("source") != "agent":
            if not depth and (text := _read_text(step.get("message"))):
                yield {"given": text}
            continue
        extra = step.get("extra")
        is_nested = depth > 0 or (isinstance(extra, Mapping) and bool(extra.get("is_sidechain")))
        yield _make_message(step, is_nested=is_nested)
        for reference in _iterate_references(step):
            # Each sub-agent's work stands where it was called, once.
            part = embedded.pop(str(reference.get("trajectory_id")), None)
            if part is None:
                raise AgentLogError("log-incomplete: the work of a sub-agent is in another file")
            yield from _iterate_messages(part, depth=depth + 1)
    for part in embedded.values():
        yield from _iterate_messages(part, depth=depth + 1)


def _iterate_references(step: Mapping[str, Any]) -> Iterator[Mapping[str, Any]]:
    observation = step.get("observation")
    for result in _list_mappings(observation, "results") if isinstance(observation, Mapping) else ():
        yield from _list_mappings(result, "subagent_trajectory_ref")


def _make_message(step: Mapping[str, Any], *, is_nested: bool) -> Mapping[str, Any]:
    text = _read_text(step.get("message"))
    reasoning = "\n".join(filter(None, (_read_text(step.get("reasoning_content")), text if is_nested else "")))
    calls = [
        {"id": call.get("tool_call_id"), "function": {"name": call.get("function_name"), "arguments": arguments}}
        for call in _list_mappings(step, "tool_calls")
        for arguments in [call.get("arguments") or {}]
    ]
    return {
        "role": "assistant",
        "content": "" if is_nested else text,
        **({"reasoning_content": reasoning} if reasoning else {}),
        **({"tool_calls": calls} if calls else {}),
    }


def _list_mappings(document: Mapping[str, Any], key: str) -> list[Mapping[str, Any]]:
    """Return the list of objects under a key; none for null.

    Raises:
        AgentLogError: it is another value.
    """
    value = document.get(key)
    if value is None:
        return []
    if not isinstance(value, list) or not all(isinstance(item, Mapping) for item in value):
        raise AgentLogError(f"no-log: {key} is no list of objects")
    return value


def _read_text(content: object) -> str:
    """Return the text of a message, which may be a list of parts."""
    if isinstance(content, list):
        return "\n".join(str(part["text"]) for part in content if isinstance(part, Mapping) and part.get("text"))
    return content if isinstance(content, str) else ""


def _write_call(call: Mapping[str, Any], step: int, place: int) -> dict[str, Any]:
    function = call.get("function") or {}
    text = function.get("arguments") or "{}"
    try:
        arguments = json.loads(text)
    except ValueError:
        arguments = None
    return {
        "tool_call_id": str(call.get("id") or f"call_{step}_{place}"),
        "function_name": str(function.get("name") or ""),
        "arguments": arguments if isinstance(arguments, dict) else {"input": str(text)},
    }

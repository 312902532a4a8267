"""Conversations in the Agent Trajectory Interchange Format, 1.8: tool results stand inside the step that called."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from typing import Any

from samplers.exports.conversations import Message, TrainedConversation
from samplers.exports.facts import ExportedTrajectory, build_identity, build_metadata
from samplers.exports.messages import flatten_content
from samplers.trajectories.content import RecordedRequest
from samplers.trajectories.requests import get_text

SCHEMA_VERSION = "ATIF-v1.8"
SOURCES = {"system": "system", "assistant": "agent"}
RAW_ARGUMENTS = "raw_arguments"
"""Key of arguments that are not a JSON object, which the format requires."""


def build_document(item: ExportedTrajectory, conversation: TrainedConversation) -> dict[str, Any]:
    """Return the document of a conversation. Answers that are not trained in it are `is_copied_context`."""
    exchanges = [exchange for exchange in conversation.exchanges if exchange is not None]
    return {
        "schema_version": SCHEMA_VERSION,
        "session_id": item.rollout.id,
        "trajectory_id": f"{item.trajectory.id}-{exchanges[-1]}",
        "agent": {
            "name": item.rollout.scaffold,
            "version": item.rollout.scaffold_version,
            "model_name": item.rollout.model,
            **({"tool_definitions": list(conversation.tools)} if conversation.tools else {}),
        },
        "steps": list(_make_steps(item, conversation)),
        "final_metrics": {
            "total_prompt_tokens": item.trajectory.prompt_tokens,
            "total_completion_tokens": item.trajectory.completion_tokens,
        },
        "extra": {
            **build_identity(item),
            "resolved": item.rollout.resolved,
            "reward": item.trajectory.value,
            **build_metadata(item, exchanges),
        },
    }


def _make_steps(item: ExportedTrajectory, conversation: TrainedConversation) -> Iterator[dict[str, Any]]:
    requests = {request.exchange: request for request in item.content.requests}
    steps: list[dict[str, Any]] = []
    for message, exchange in zip(conversation.messages, conversation.exchanges, strict=True):
        if message["role"] == "tool" and steps and steps[-1]["source"] == "agent":
            _add_result(steps[-1], message)
            continue
        step = {"step_id": len(steps) + 1, "source": SOURCES.get(message["role"], "user")}
        step["message"] = flatten_content(message)
        if message["role"] == "assistant":
            step |= _describe_answer(message)
            step |= {"is_copied_context": True} if exchange is None else _describe_request(requests[exchange])
        steps.append(step)
    yield from steps


def _describe_answer(message: Message) -> dict[str, Any]:
    answer: dict[str, Any] = {}
    if reasoning := get_text(message, "reasoning_content"):
        answer["reasoning_content"] = reasoning
    if calls := message.get("tool_calls"):
        answer["tool_calls"] = [_make_call(call) for call in calls]
    return answer


def _make_call(call: Mapping[str, Any]) -> dict[str, Any]:
    function = call["function"]
    try:
        arguments = json.loads(function.get("arguments") or "{}")
    except ValueError:
        arguments = None
    if not isinstance(arguments, dict):
        arguments = {RAW_ARGUMENTS: str(function.get("arguments"))}
    return {"tool_call_id": str(call.get("id", "")), "function_name": function["name"], "arguments": arguments}


def _describe_request(request: RecordedRequest) -> dict[str, Any]:
    metrics: dict[str, Any] = {
        "prompt_tokens": request.prompt_tokens,
        "completion_tokens": request.completion_tokens,
        "extra": {"exchange": request.exchange, "seconds": request.seconds, "finish_reason": request.finish_reason},
    }
    if request.completion_token_ids is not None:
        metrics["completion_token_ids"] = list(request.completion_token_ids)
    if request.logprobs is not None:
        metrics["logprobs"] = list(request.logprobs)
    timed = {"timestamp": request.started_at} if request.started_at else {}
    return timed | {"metrics": metrics, "llm_call_count": 1}


def _add_result(step: dict[str, Any], message: Message) -> None:
    """Add a tool's result to the step; a result of a call that the step does not have names none."""
    known = {call["tool_call_id"] for call in step.get("tool_calls", ())}
    result: dict[str, Any] = {"content": flatten_content(message)}
    if message.get("tool_call_id") in known:
        result["source_call_id"] = message["tool_call_id"]
    step.setdefault("observation", {"results": []})["results"].append(result)

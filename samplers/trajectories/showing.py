"""A trajectory as people and programs read it."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from samplers.trajectories.content import TrajectoryContent, read_content
from samplers.trajectories.drift import measure_drift
from samplers.trajectories.requests import get_text
from taskdb.artifacts import Artifacts
from taskdb.records import to_json
from taskdb.records.rollouts import Rollout, Trajectory

ROLLOUT_KEYS = ("status", "reason", "resolved", "checkpoint", "scaffold_version", "origin", "cost", "seconds")
"""Facts of the rollout that are shown with its trajectory."""


def describe_trajectory(
    trajectory: Trajectory, rollout: Rollout, artifacts: Artifacts, environment: str
) -> dict[str, Any]:
    """Return the facts of a trajectory, its tools and its conversations: a conversation for each leaf.

    `environment` is that of its task or scenario, which records of earlier versions do not have.

    Raises:
        InputError: its content is missing or damaged.
    """
    content = read_content(artifacts.get(trajectory.content))
    facts = {name: value for name, value in to_json(trajectory).items() if name not in ("parent", "content")}
    return {
        **facts,
        "environment": environment,
        "rollout": rollout.id,
        **{name: getattr(rollout, name) for name in ROLLOUT_KEYS},
        "states": drift.to_json() if (drift := measure_drift(rollout.states)) else None,
        "leaks": [leak.name for leak in rollout.leaks],
        "tools": content.get_tools(content.leaves[-1]),
        "conversations": [list_messages(content, leaf) for leaf in content.leaves],
    }


def list_messages(content: TrajectoryContent, leaf: int) -> list[dict[str, Any]]:
    """Return the messages of a request and its answer."""
    answer = content.get_answer(leaf)
    return content.get_prompt(leaf) + ([answer] if answer is not None else [])


def render_conversation(messages: list[dict[str, Any]]) -> str:
    """Return a conversation as text."""
    return "\n".join(_render_message(message) for message in messages)


def _render_message(message: Mapping[str, Any]) -> str:
    lines = [f"\n--- {message.get('role')}"]
    if thought := get_text(message, "reasoning_content"):
        lines.append(f"[reasoning] {thought}")
    if text := get_text(message):
        lines.append(text)
    for call in message.get("tool_calls") or ():
        function = call.get("function") or {}
        lines.append(f"> {function.get('name')} {function.get('arguments')}")
    return "\n".join(lines)

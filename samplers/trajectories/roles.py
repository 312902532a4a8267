"""Roles of the trajectories of a rollout, by structure alone.

The main conversation is the tree that starts with the task's statement; of several, or where none does, the tree with
tools before a tree without, then the tree with most requests. Of the other trees

- a tree with the same system prompt and tools is main, too, if it starts with the statement or the same messages, or if
  the main conversation had ended before it: its history was edited or summarised;
- any other tree with tools is a sub-agent;
- a tree without tools, whose system prompt differs from the main tree's, is a call outside of the work, such as for a
  title.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from samplers.trajectories.requests import Json, ModelRequest, get_text
from taskdb.records.rollouts import TrajectoryRole

STATEMENT_PART = 200
"""Characters of the task's statement that are looked for; scaffolds wrap and cut it."""


@dataclass(frozen=True, kw_only=True)
class TreeShape:
    """Facts that decide the role of a tree."""

    system: str
    """Text of the system messages its first request begins with."""
    tools: tuple[str, ...]
    opening: str
    """Text of the messages of the user before the first answer."""
    first: int
    """Places of its first and last requests in the rollout."""
    last: int
    n_requests: int

    @property
    def signature(self) -> tuple[str, tuple[str, ...]]:
        """System prompt and tools."""
        return self.system, self.tools


def assign_roles(
    requests: Sequence[ModelRequest], trees: Sequence[Sequence[int]], statement: str = ""
) -> list[TrajectoryRole]:
    """Return the role of each tree (places of its requests in order); `statement`: of the task, empty for unknown."""
    shapes = [_describe_tree(requests, tree) for tree in trees]
    if not shapes:
        return []
    needle = _squeeze(statement)[:STATEMENT_PART]
    main = max(shapes, key=lambda shape: (_contains(shape, needle), bool(shape.tools), shape.n_requests, -shape.first))
    return [_choose_role(shape, main, needle) for shape in shapes]


def _choose_role(shape: TreeShape, main: TreeShape, needle: str) -> TrajectoryRole:
    if shape is main:
        return TrajectoryRole.MAIN
    if shape.signature == main.signature:
        is_same = _contains(shape, needle) or shape.opening == main.opening
        return TrajectoryRole.MAIN if is_same or shape.first > main.last else TrajectoryRole.SUB_AGENT
    return TrajectoryRole.SUB_AGENT if shape.tools else TrajectoryRole.SIDE


def _describe_tree(requests: Sequence[ModelRequest], tree: Sequence[int]) -> TreeShape:
    root = requests[tree[0]]
    return TreeShape(
        system="\n".join(_take_texts(root.messages, "system")),
        tools=tuple(sorted(str((tool.get("function") or tool).get("name", "")) for tool in root.tools)),
        opening="\n".join(_take_texts(root.messages, "user")),
        first=tree[0],
        last=tree[-1],
        n_requests=len(tree),
    )


def _take_texts(messages: Sequence[Json], role: str) -> list[str]:
    """Return the texts of a role before the first answer."""
    texts = []
    for message in messages:
        if message.get("role") == "assistant":
            break
        if message.get("role") == role:
            texts.append(get_text(message))
    return texts


def _contains(shape: TreeShape, needle: str) -> bool:
    return bool(needle) and needle in _squeeze(f"{shape.system}\n{shape.opening}")


def _squeeze(text: str) -> str:
    """Return a text with a blank between its words."""
    return " ".join(text.split())

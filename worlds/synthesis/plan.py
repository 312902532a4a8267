"""Answers of the logic planning: entities, rules, operations."""

from __future__ import annotations

import keyword
from collections import Counter
from typing import Literal

from pydantic import BaseModel, Field

from worlds.program.analysis import ToolKind

MIN_OPERATIONS = 8
MAX_OPERATIONS = 40
"""Bounds of the number of operations; EnvScaler's worlds have 18.6 on average."""
NAME = r"^[a-z][a-z0-9_]{1,60}$"


class PlannedAttribute(BaseModel):
    """An attribute of an entity."""

    name: str = Field(min_length=1)
    type: str = Field(min_length=1)
    meaning: str


class PlannedEntity(BaseModel):
    """A kind of thing that the environment keeps track of, or a single value."""

    name: str = Field(min_length=1)
    role: str
    attributes: list[PlannedAttribute] = Field(min_length=1)


class StatePlan(BaseModel):
    """The state of an environment."""

    analysis: str = Field(min_length=1)
    entities: list[PlannedEntity] = Field(min_length=1)


class RulesPlan(BaseModel):
    """What an agent reads about an environment."""

    introduction: str = Field(min_length=20)
    rules: list[str] = Field(min_length=3)


class PlannedOperation(BaseModel):
    """An operation, which becomes a method."""

    name: str = Field(pattern=NAME)
    kind: Literal["query", "change"]
    summary: str = Field(min_length=5)

    @property
    def tool_kind(self) -> ToolKind:
        """The kind as of tools."""
        return ToolKind(self.kind)


class OperationsPlan(BaseModel):
    """The operations of an environment."""

    analysis: str = Field(min_length=1)
    operations: list[PlannedOperation] = Field(min_length=MIN_OPERATIONS, max_length=MAX_OPERATIONS)


def check_operations(plan: OperationsPlan) -> str:
    """Return the problem with a list of operations, empty where nothing is."""
    names = [operation.name for operation in plan.operations]
    twice = [name for name, number in Counter(names).items() if number > 1]
    if twice:
        return f"two operations have the name {twice[0]}"
    if reserved := [name for name in names if keyword.iskeyword(name)]:
        return f"{reserved[0]} is a keyword of Python"
    if missing := {"query", "change"} - {operation.kind for operation in plan.operations}:
        return f"there is no operation of the kind {missing.pop()}"
    return ""

"""Tools of the agent. A Toolbox contains all tools of a conversation.

A tool consists of a name, a description, a pydantic model of its arguments (its JSON schema is sent to the model and
validates the call) and a function that returns a text. Errors of the model are returned as texts as well.
"""

from __future__ import annotations

import difflib
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

from pydantic import BaseModel, ConfigDict, ValidationError

from backends.llm.base import Tool, ToolCall


class ToolArguments(BaseModel):
    """Base of all arguments; unknown fields are ignored."""

    model_config = ConfigDict(extra="ignore", frozen=True, use_attribute_docstrings=True)


class EndTurn(Exception):  # noqa: N818 - nothing failed
    """End of the model's turn, by the tools `test` and `give_up`, with the model's rationale."""

    def __init__(self, tool: str, rationale: str = "") -> None:
        super().__init__(tool)
        self.tool = tool
        self.rationale = rationale


@dataclass(frozen=True, kw_only=True)
class AgentTool:
    """One tool. `function` may raise EndTurn."""

    name: str
    description: str
    arguments: type[ToolArguments]
    function: Callable[[Any], str]

    def declare(self) -> Tool:
        """Return the declaration that is sent to the model."""
        return Tool(name=self.name, description=self.description, parameters=_build_schema(self.arguments))


@dataclass(frozen=True, kw_only=True)
class ToolResult:
    """Result of a call for the model. `is_valid`: whether the tool exists and its arguments are valid."""

    text: str
    is_valid: bool = True


@dataclass(frozen=True)
class Toolbox:
    """All tools of a conversation."""

    tools: Sequence[AgentTool]
    by_name: dict[str, AgentTool] = field(init=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "by_name", {entry.name: entry for entry in self.tools})

    def declare_tools(self) -> tuple[Tool, ...]:
        """Return the declarations that are sent to the model."""
        return tuple(entry.declare() for entry in self.tools)

    def run_call(self, call: ToolCall) -> ToolResult:
        """Run a call and return its result.

        Raises:
            EndTurn: the tool ends the model's turn.
        """
        entry = self.by_name.get(call.name)
        if entry is None:
            return ToolResult(text=self._format_unknown_tool(call.name, call.problem), is_valid=False)
        if call.arguments is None:
            return ToolResult(text=f"Not done: {call.problem}.", is_valid=False)
        try:
            arguments = entry.arguments.model_validate(dict(call.arguments))
        except ValidationError as error:
            return ToolResult(text=f"Not done: {format_validation_error(error)}.", is_valid=False)
        return ToolResult(text=entry.function(arguments))

    def _format_unknown_tool(self, name: str, problem: str) -> str:
        if problem and not name:
            return f"Not done: {problem}."
        near = difflib.get_close_matches(name, self.by_name, n=1)
        hint = f" Did you mean {near[0]}?" if near else ""
        return f"There is no tool {name!r}; there are {', '.join(self.by_name)}.{hint}"


def format_validation_error(error: ValidationError) -> str:
    """Return the first errors of arguments in one line."""
    errors = error.errors()
    parts = [f"{'.'.join(map(str, problem['loc'])) or 'the arguments'}: {problem['msg']}" for problem in errors[:3]]
    return "; ".join(parts) + (f"; and {len(errors) - 3} more" if len(errors) > 3 else "")


def _build_schema(arguments: type[BaseModel]) -> dict[str, Any]:
    """Return the JSON schema of arguments without titles, which cost tokens without information."""
    return {key: value for key, value in _remove_titles(arguments.model_json_schema()).items() if key != "description"}


def _remove_titles(value: Any) -> Any:
    if isinstance(value, list):
        return [_remove_titles(item) for item in value]
    if isinstance(value, dict):
        # A property may itself be called `title`; then its value is a schema, not a text.
        return {k: _remove_titles(v) for k, v in value.items() if not (k == "title" and isinstance(v, str))}
    return value

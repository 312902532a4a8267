"""The tools a model has. Reading what `toolbox` gathers is reading what it can do.

A tool is a name, a sentence, a pydantic model of its arguments (its JSON schema goes to the model, and what comes back
is checked by it) and a function that gives back a text. Mistakes are texts, too: the model reads them and goes on.
"""

from __future__ import annotations

import difflib
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

from pydantic import BaseModel, ConfigDict, ValidationError

from backends.llm.base import Tool, ToolCall


class Arguments(BaseModel):
    """Base of all arguments: what a tool does not know it passes over."""

    model_config = ConfigDict(extra="ignore", frozen=True, use_attribute_docstrings=True)


class TurnOver(Exception):  # noqa: N818 - nothing failed
    """A tool that ends the model's turn: `test` and `give_up`. `why` is what the model said of it."""

    def __init__(self, tool: str, why: str = "") -> None:
        super().__init__(tool)
        self.tool = tool
        self.why = why


@dataclass(frozen=True, kw_only=True)
class Entry:
    """One tool. `does` may raise TurnOver."""

    name: str
    description: str
    arguments: type[Arguments]
    does: Callable[[Any], str]

    def declared(self) -> Tool:
        """As a model is told of it."""
        return Tool(name=self.name, description=self.description, parameters=_schema(self.arguments))


@dataclass(frozen=True, kw_only=True)
class Used:
    """What a call gave: a text for the model. `understood`: whether tool and arguments made sense."""

    text: str
    understood: bool = True


@dataclass(frozen=True)
class Toolbox:
    """All tools of a conversation."""

    entries: Sequence[Entry]
    by_name: dict[str, Entry] = field(init=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "by_name", {entry.name: entry for entry in self.entries})

    def declared(self) -> tuple[Tool, ...]:
        """As a model is told of them."""
        return tuple(entry.declared() for entry in self.entries)

    def use(self, call: ToolCall) -> Used:
        """Do what a call asks for.

        Raises:
            TurnOver: it ends the model's turn.
        """
        entry = self.by_name.get(call.name)
        if entry is None:
            return Used(text=self._unknown(call.name, call.problem), understood=False)
        if call.arguments is None:
            return Used(text=f"Not done: {call.problem}.", understood=False)
        try:
            arguments = entry.arguments.model_validate(dict(call.arguments))
        except ValidationError as error:
            return Used(text=f"Not done: {wrong(error)}.", understood=False)
        return Used(text=entry.does(arguments))

    def _unknown(self, name: str, problem: str) -> str:
        if problem and not name:
            return f"Not done: {problem}."
        near = difflib.get_close_matches(name, self.by_name, n=1)
        hint = f" Did you mean {near[0]}?" if near else ""
        return f"There is no tool {name!r}; there are {', '.join(self.by_name)}.{hint}"


def wrong(error: ValidationError) -> str:
    """What is wrong with arguments, in a line."""
    found = error.errors()
    parts = [f"{'.'.join(map(str, one['loc'])) or 'the arguments'}: {one['msg']}" for one in found[:3]]
    return "; ".join(parts) + (f"; and {len(found) - 3} more" if len(found) > 3 else "")


def _schema(arguments: type[BaseModel]) -> dict[str, Any]:
    """The JSON schema of arguments without titles, which cost tokens and say nothing."""
    return {key: value for key, value in _untitled(arguments.model_json_schema()).items() if key != "description"}


def _untitled(value: Any) -> Any:
    if isinstance(value, list):
        return [_untitled(one) for one in value]
    if isinstance(value, dict):
        # A property may itself be called `title`; then its value is a schema, not a text.
        return {k: _untitled(v) for k, v in value.items() if not (k == "title" and isinstance(v, str))}
    return value

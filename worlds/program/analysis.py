"""Everything that is read from a world's program, in a single object."""

from __future__ import annotations

import ast
from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum
from functools import lru_cache
from typing import Any

from worlds.definitions import WorldTool
from worlds.program.foreign_keys import ForeignKey, read_foreign_keys
from worlds.program.rules import Violation, find_violations
from worlds.program.schemas import SchemaBuilder, SchemaError, derive_state_schema, derive_tool
from worlds.program.tree import ProgramError, ProgramTree, get_own_attribute, parse_program
from worlds.program.usage import UsageGraph, derive_usage
from worlds.reasons import Reason


class ToolKind(StrEnum):
    """Whether a tool may change the state. A query returns `data`, a change `message`."""

    QUERY = "query"
    CHANGE = "change"


@dataclass(frozen=True, kw_only=True)
class ProgramAnalysis:
    """Facts that a program's text gives. Where there are violations, the rest may be incomplete."""

    violations: tuple[Violation, ...]
    class_name: str = ""
    tools: tuple[WorldTool, ...] = ()
    kinds: Mapping[str, ToolKind]
    usage: UsageGraph
    foreign_keys: tuple[ForeignKey, ...] = ()
    state_schema: Mapping[str, Any]

    def list_tools(self, kind: ToolKind) -> list[str]:
        """Return the names of the tools of a kind, in their order."""
        return [tool.name for tool in self.tools if self.kinds[tool.name] is kind]


@lru_cache(maxsize=128)
def analyse_program(source: str) -> ProgramAnalysis:
    """Read a program: rules, tools, usage, foreign keys, schema of the state. Raises nothing: see `violations`."""
    violations = list(find_violations(source))
    try:
        tree = parse_program(source)
    except ProgramError as error:
        if error.reason is not Reason.SYNTAX_ERROR:  # which the rules report
            violations.append(Violation(reason=error.reason, line=0, detail=str(error)))
        return ProgramAnalysis(
            violations=tuple(violations), kinds={}, usage=UsageGraph(attributes=(), methods={}), state_schema={}
        )
    tools, untyped = _derive_tools(tree)
    usage = derive_usage(tree)
    keys: tuple[ForeignKey, ...] = ()
    state_schema: Mapping[str, Any] = {}
    try:
        state_schema = derive_state_schema(tree)
        keys = read_foreign_keys(tree)
    except SchemaError as error:
        untyped.append(Violation(reason=Reason.UNTYPED_TOOL, line=tree.world.lineno, detail=str(error)))
    except ProgramError as error:
        untyped.append(Violation(reason=error.reason, line=tree.world.lineno, detail=str(error)))
    return ProgramAnalysis(
        violations=(*violations, *untyped),
        class_name=tree.world.name,
        tools=tools,
        kinds={tool.name: _find_kind(tool.name, tree, usage) for tool in tools},
        usage=usage,
        foreign_keys=keys,
        state_schema=state_schema,
    )


def _derive_tools(tree: ProgramTree) -> tuple[tuple[WorldTool, ...], list[Violation]]:
    builder, tools, violations = SchemaBuilder(tree.module), [], []
    for name, method in tree.tools.items():
        try:
            tools.append(derive_tool(name, method, builder))
        except SchemaError as error:
            violations.append(Violation(reason=Reason.UNTYPED_TOOL, line=method.lineno, detail=str(error)))
            continue
        if not tools[-1].description:
            violations.append(
                Violation(reason=Reason.UNDOCUMENTED_TOOL, line=method.lineno, detail=f"{name} has no docstring")
            )
    return tuple(tools), violations


def _find_kind(name: str, tree: ProgramTree, usage: UsageGraph) -> ToolKind:
    """Return the kind of a tool by the keys of the value that it returns, else by the state that it modifies."""
    keys = _collect_result_keys(name, tree, set())
    if "message" in keys:
        return ToolKind.CHANGE
    if "data" in keys:
        return ToolKind.QUERY
    return ToolKind.CHANGE if usage.collect_writes(name) else ToolKind.QUERY


def _collect_result_keys(name: str, tree: ProgramTree, seen: set[str]) -> set[str]:
    """Return the keys of the dicts that a method returns itself or through its helpers."""
    if name in seen or name not in tree.methods:
        return set()
    seen.add(name)
    keys: set[str] = set()
    for statement in ast.walk(tree.methods[name]):
        if isinstance(statement, ast.Return) and statement.value is not None:
            for value in _list_alternatives(statement.value):
                if isinstance(value, ast.Dict):
                    keys |= {str(key.value) for key in value.keys if isinstance(key, ast.Constant)}
                elif isinstance(value, ast.Call) and (helper := get_own_attribute(value.func)):
                    keys |= _collect_result_keys(helper, tree, seen)
    return keys


def _list_alternatives(node: ast.expr) -> list[ast.expr]:
    """Return the expressions that a value may be."""
    if isinstance(node, ast.IfExp):
        return [*_list_alternatives(node.body), *_list_alternatives(node.orelse)]
    if isinstance(node, ast.BoolOp):
        return [alternative for value in node.values for alternative in _list_alternatives(value)]
    return [node]

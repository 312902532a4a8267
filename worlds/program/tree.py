"""Syntax tree of a world's program: its class, attributes, tools and other methods."""

from __future__ import annotations

import ast
import threading
from collections.abc import Mapping
from dataclasses import dataclass

from worlds.reasons import Reason

DATA_BASES = frozenset(("TypedDict", "Enum", "StrEnum", "IntEnum", "NamedTuple", "Exception", "ValueError", "Protocol"))
"""Bases of classes that are not the world."""
_UNPARSABLE = (SyntaxError, ValueError, RecursionError, MemoryError)
_PARSING = threading.Lock()
"""Until Python 3.11.4, two threads that parse at once get a SystemError (python/cpython#106905)."""


class ProgramError(Exception):
    """Program that cannot be read as a world, with the reason."""

    def __init__(self, reason: Reason, detail: str) -> None:
        super().__init__(detail)
        self.reason = reason


@dataclass(frozen=True, kw_only=True)
class ProgramTree:
    """A parsed program. `world` is the only class that is more than a data type."""

    module: ast.Module
    world: ast.ClassDef

    @property
    def methods(self) -> Mapping[str, ast.FunctionDef]:
        """Name -> method of the world's class, in their order."""
        return {node.name: node for node in self.world.body if isinstance(node, ast.FunctionDef)}

    @property
    def tools(self) -> Mapping[str, ast.FunctionDef]:
        """Name -> method that agents may call: public, without decorators."""
        return {
            name: node
            for name, node in self.methods.items()
            if not name.startswith("_") and not node.decorator_list and node.args.args
        }

    @property
    def attributes(self) -> Mapping[str, ast.expr | None]:
        """Name -> annotation of the attributes that make up the state, as `__init__` and the class declare them."""
        expressions: dict[str, ast.expr | None] = {}
        for node in self.world.body:
            if isinstance(node, ast.AnnAssign) and isinstance(node.target, ast.Name) and node.value is None:
                expressions[node.target.id] = node.annotation
        for part in ast.walk(self.methods["__init__"]) if "__init__" in self.methods else ():
            targets = part.targets if isinstance(part, ast.Assign) else [getattr(part, "target", None)]
            for target in targets if isinstance(part, ast.Assign | ast.AnnAssign) else ():
                if (name := get_own_attribute(target)) and expressions.get(name) is None:
                    expressions[name] = part.annotation if isinstance(part, ast.AnnAssign) else None
        return expressions


def parse_program(source: str) -> ProgramTree:
    """Return the tree of a program.

    Raises:
        ProgramError: it is not Python, or has no class or several classes with tools.
    """
    module = parse_module(source)
    classes = [node for node in module.body if isinstance(node, ast.ClassDef) and not is_data_class(node)]
    if len(classes) != 1:
        names = ", ".join(node.name for node in classes) or "none"
        raise ProgramError(Reason.NO_WORLD_CLASS, f"one class of the program has tools; found: {names}")
    tree = ProgramTree(module=module, world=classes[0])
    if not tree.tools:
        raise ProgramError(Reason.NO_WORLD_CLASS, f"{classes[0].name} has no public method")
    return tree


def parse_module(source: str) -> ast.Module:
    """Return the syntax tree of Python; raise ProgramError where it is none."""
    try:
        with _PARSING:
            return ast.parse(source)
    except _UNPARSABLE as error:
        raise ProgramError(Reason.SYNTAX_ERROR, f"{type(error).__name__}: {error}") from None


def parse_expression(source: str) -> ast.expr:
    """Return the syntax tree of an expression; raise ProgramError where it is none."""
    try:
        with _PARSING:
            return ast.parse(source, mode="eval").body
    except _UNPARSABLE as error:
        raise ProgramError(Reason.SYNTAX_ERROR, f"{type(error).__name__}: {error}") from None


def get_own_attribute(node: ast.AST | None) -> str | None:
    """Return NAME of `self.NAME`, else None."""
    match node:
        case ast.Attribute(value=ast.Name(id="self"), attr=name):
            return name
    return None


def is_data_class(node: ast.ClassDef) -> bool:
    """Return whether a class is a mere data type, and no world."""
    bases = {base.attr if isinstance(base, ast.Attribute) else getattr(base, "id", "") for base in node.bases}
    decorators = {ast.unparse(decorator).partition("(")[0].rpartition(".")[2] for decorator in node.decorator_list}
    return bool(bases & DATA_BASES) or "dataclass" in decorators

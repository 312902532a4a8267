"""Foreign keys that a program declares in its class, and their check on a state.

    FOREIGN_KEYS: ClassVar[dict[str, str]] = {
        "loans.book_id": "books",
        "members.favourite_ids[]": "books",
        "settings.main_branch_id": "branches",
    }

The key is a path from an attribute: where it meets a dict without the named field, or a list, it goes on with each of
the entries. `[]` stands for the elements of a list. The value is an attribute that is a dict by id. A field that is
null or absent refers to nothing.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from worlds.definitions import State
from worlds.program.tree import ProgramError, ProgramTree
from worlds.reasons import Reason

NAME = "FOREIGN_KEYS"


@dataclass(frozen=True, kw_only=True)
class ForeignKey:
    """Field whose values are keys of the attribute `target`. `path` is as declared."""

    path: str
    target: str

    @property
    def attribute(self) -> str:
        """Attribute that the path begins with."""
        return self.path.partition(".")[0].removesuffix("[]")


def read_foreign_keys(tree: ProgramTree) -> tuple[ForeignKey, ...]:
    """Return the declared foreign keys.

    Raises:
        ProgramError: the declaration is not a literal dict of strings, or names no attribute.
    """
    node = next((statement for statement in tree.world.body if _is_declaration(statement)), None)
    if node is None:
        return ()
    try:
        declared = ast.literal_eval(node.value)  # type: ignore[attr-defined]
    except ValueError:
        raise ProgramError(Reason.WRONG_FOREIGN_KEY, f"{NAME} is no literal") from None
    if not isinstance(declared, dict) or not all(isinstance(name, str) for pair in declared.items() for name in pair):
        raise ProgramError(Reason.WRONG_FOREIGN_KEY, f"{NAME} is no dict of strings")
    keys = tuple(ForeignKey(path=path, target=target) for path, target in declared.items())
    for key in keys:
        if missing := {key.attribute, key.target} - set(tree.attributes):
            raise ProgramError(Reason.WRONG_FOREIGN_KEY, f"{key.path}: there is no attribute {min(missing)}")
    return keys


def find_dangling_key(state: State, keys: tuple[ForeignKey, ...]) -> str | None:
    """Return a sentence about the first value that refers to nothing, or None."""
    for key in keys:
        targets = state.get(key.target, {})
        for value in _iterate_values(state, key.path.replace("[]", "").split(".")):
            if not isinstance(value, str) or value not in targets:
                return f"{key.path} is {value!r}, which is not in {key.target}"
    return None


def _iterate_values(value: Any, names: list[str]) -> Iterator[Any]:
    """Yield the values at a path."""
    if not names:
        if isinstance(value, list):
            yield from value
        elif value is not None:
            yield value
    elif isinstance(value, Mapping):
        if names[0] in value:
            yield from _iterate_values(value[names[0]], names[1:])
        else:
            for item in value.values():
                if isinstance(item, Mapping | list):
                    yield from _iterate_values(item, names)
    elif isinstance(value, list):
        for item in value:
            yield from _iterate_values(item, names)


def _is_declaration(node: ast.stmt) -> bool:
    match node:
        case ast.Assign(targets=[ast.Name(id=name)]) | ast.AnnAssign(target=ast.Name(id=name), value=ast.expr()):
            return name == NAME
    return False

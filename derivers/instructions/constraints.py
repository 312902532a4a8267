"""Known constraints: a file each in `constraints/`, or in a folder of the user's, whose names take precedence."""

from __future__ import annotations

import re
from collections.abc import Mapping
from functools import cache
from pathlib import Path
from typing import Any

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from core.errors import InputError
from core.files import read_text
from core.toml import parse_toml
from core.validation import describe_invalid
from evaluation.instructions.checks import CHECKS
from taskdb.records.instructions import InstructionSource

SHIPPED = Path(__file__).with_name("constraints")
_FACT = re.compile(r"\{([a-z_]+)\}")


class ConstraintTool(BaseModel):
    """Tool that a constraint is about; its name is drawn."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    description: str
    parameters: dict[str, Any]
    """JSON schema of its arguments."""
    answer: str
    """Text that each call returns."""


class KnownConstraint(BaseModel):
    """A constraint. Texts and arguments may have facts of a task in braces (`derivers.instructions.facts`)."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    name: str = Field(pattern=r"^[a-z][a-z0-9-]*$")
    family: str
    sources: tuple[InstructionSource, ...] = Field(min_length=1)
    """Sources that it may come from."""
    texts: tuple[str, ...] = Field(min_length=1)
    """Wordings; the draw takes any of them."""
    check: str
    arguments: dict[str, Any] = Field(default_factory=dict)
    activates: str
    """Occasion on which the check is active, for people."""
    conflicts: tuple[str, ...] = ()
    """Constraints that cannot be followed together with it."""
    languages: tuple[str, ...] = ()
    """Languages of tasks that it fits; empty for all."""
    comply: str = ""
    """Step of the dutiful script that keeps it: a command, a line, a text."""
    breach: str = ""
    """Step of the careless script that breaks it."""
    tool: ConstraintTool | None = None
    from_turn: int = 1
    """First turn of the user that may bring it."""

    def conflicts_with(self, other: KnownConstraint) -> bool:
        """Return whether both cannot be followed."""
        return other.name in self.conflicts or self.name in other.conflicts


def load_constraints(folder: Path | None = None) -> Mapping[str, KnownConstraint]:
    """Return name -> constraint, sorted by name.

    Args:
        folder: folder of further constraints; None for no others than the shipped.

    Raises:
        InputError: the folder is none, or a file in it is no constraint; the message names file and key.
    """
    if folder is None:
        return _load_shipped()
    if not folder.is_dir():
        raise InputError(f"--constraint-folder {folder} is no folder")
    own = _load_folder(folder)
    constraints = dict(sorted({**_load_shipped(), **own}.items()))
    for constraint in own.values():
        _check_wordings(folder / f"{constraint.name}.toml", constraint, constraints)
    return constraints


@cache
def _load_shipped() -> Mapping[str, KnownConstraint]:
    return _load_folder(SHIPPED)


def _load_folder(folder: Path) -> dict[str, KnownConstraint]:
    constraints = {}
    for path in sorted(folder.glob("*.toml")):
        constraint = _load_file(path)
        constraints[constraint.name] = constraint
    return constraints


def _load_file(path: Path) -> KnownConstraint:
    try:
        constraint = KnownConstraint.model_validate(parse_toml(read_text(path, "the constraint")))
    except ValidationError as error:
        raise InputError(f"{path}: {describe_invalid(error.errors())}") from error
    except ValueError as error:
        raise InputError(f"{path}: {error}") from error
    if constraint.check not in CHECKS:
        raise InputError(f"{path}: check: {constraint.check} is unknown", advice=f"one of {', '.join(CHECKS)}")
    known = CHECKS[constraint.check].model_fields
    if unknown := sorted(constraint.arguments.keys() - known.keys()):
        raise InputError(f"{path}: arguments.{unknown[0]}: {constraint.check} has no such argument")
    return constraint


def _check_wordings(path: Path, constraint: KnownConstraint, others: Mapping[str, KnownConstraint]) -> None:
    """Raise InputError where a wording is part of another's, so that one could be taken for the other."""
    for other in others.values():
        for text in other.texts:
            for own in constraint.texts:
                if other.name != constraint.name and (own in text or text in own):
                    raise InputError(f"{path}: texts: {own!r} and a wording of {other.name} are part of each other")


def list_facts(constraint: KnownConstraint) -> set[str]:
    """Return the names of the facts that a constraint needs."""
    values = [*constraint.texts, constraint.comply, constraint.breach, str(constraint.arguments)]
    return {name for value in values for name in _FACT.findall(value)}


def fill_facts(value: Any, facts: Mapping[str, str], *, as_pattern: bool = False) -> Any:
    """Return a text, a list or a table with facts in the place of their names.

    Args:
        value: the value.
        facts: name -> text.
        as_pattern: whether texts are regular expressions, in which facts stand for themselves.
    """
    if isinstance(value, str):
        return _FACT.sub(lambda match: _get_fact(match, facts, as_pattern=as_pattern), value)
    if isinstance(value, list | tuple):
        return [fill_facts(inner, facts, as_pattern=as_pattern) for inner in value]
    if isinstance(value, dict):
        return {
            key: fill_facts(inner, facts, as_pattern=key in {"pattern", "patterns", "commands"})
            for key, inner in value.items()
        }
    return value


_PATTERN_FACTS = frozenset(("tests", "print"))
"""Facts that are regular expressions themselves."""


def _get_fact(match: re.Match[str], facts: Mapping[str, str], *, as_pattern: bool) -> str:
    if match[1] not in facts:
        return match[0]
    return re.escape(facts[match[1]]) if as_pattern and match[1] not in _PATTERN_FACTS else facts[match[1]]

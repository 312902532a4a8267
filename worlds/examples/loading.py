"""Reading worlds and scenarios from folders."""

from __future__ import annotations

import ast
import json
from pathlib import Path
from typing import Any

from core.errors import InputError
from worlds.definitions import Call, Check, ScenarioDefinition, WorldDefinition
from worlds.program.tree import ProgramError, parse_module

EXAMPLES_FOLDER = Path(__file__).parent


def list_example_worlds() -> list[str]:
    """Return the names of the worlds that ship with this package."""
    return sorted(path.parent.name for path in EXAMPLES_FOLDER.glob("*/program.py"))


def load_example_world(name: str) -> WorldDefinition:
    """Return a world that ships with this package; raise InputError where there is none of that name."""
    return read_world(EXAMPLES_FOLDER / name)


def load_example_scenarios(name: str) -> list[ScenarioDefinition]:
    """Return the scenarios of a world that ships with this package, sorted by name."""
    return read_scenarios(EXAMPLES_FOLDER / name)


def read_world(folder: Path) -> WorldDefinition:
    """Return the world of a folder with `program.py`, `documentation.md` and `states/NAME.json`.

    Raises:
        InputError: a file is missing, or a state is no JSON.
    """
    return WorldDefinition(
        name=folder.name,
        program=_read_text(folder / "program.py"),
        documentation=_read_text(folder / "documentation.md"),
        states={path.stem: _read_json(path) for path in sorted((folder / "states").glob("*.json"))},
    )


def read_scenarios(folder: Path) -> list[ScenarioDefinition]:
    """Return the scenarios of a world's folder, sorted by name.

    Each is a folder of `scenarios` with `task.md`, `checks.py` and `scenario.json` (`state`: name, `solution`: calls).

    Raises:
        InputError: a file is missing or malformed.
    """
    states = read_world(folder).states
    found = []
    for path in sorted(folder.glob("scenarios/*/scenario.json")):
        about = _read_json(path)
        found.append(
            ScenarioDefinition(
                name=f"{folder.name}.{path.parent.name}",
                world=folder.name,
                state=states[about["state"]],
                task=" ".join(_read_text(path.parent / "task.md").split()),
                checks=split_checks(_read_text(path.parent / "checks.py")),
                solution=tuple(Call(**call) for call in about["solution"]) if "solution" in about else None,
            )
        )
    return found


def split_checks(source: str) -> tuple[Check, ...]:
    """Return the public functions of a module as checks, each with the imports, constants and helpers of the module.

    The first line of a function's docstring is the item of the checklist.

    Raises:
        InputError: the source is no Python.
    """
    try:
        module = parse_module(source)
    except ProgramError as error:
        raise InputError(f"checks: {error}") from None
    functions = [node for node in module.body if isinstance(node, ast.FunctionDef) and not node.name.startswith("_")]
    documentation = ast.get_docstring(module, clean=False)
    shared = [
        ast.unparse(node)
        for number, node in enumerate(module.body)
        if node not in functions and not (number == 0 and documentation is not None)
    ]
    return tuple(
        Check(
            item=(ast.get_docstring(node) or node.name).partition("\n")[0],
            function=node.name,
            source="\n\n".join([*shared, ast.get_source_segment(source, node) or ""]) + "\n",
        )
        for node in functions
    )


def _read_text(path: Path) -> str:
    try:
        return path.read_text(encoding="utf-8")
    except OSError as error:
        raise InputError(f"cannot read {path}: {error.strerror}") from error


def _read_json(path: Path) -> dict[str, Any]:
    try:
        value = json.loads(_read_text(path))
    except ValueError as error:
        raise InputError(f"{path} is no JSON: {error}") from None
    if not isinstance(value, dict):
        raise InputError(f"{path} is no object")
    return value

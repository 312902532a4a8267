"""Reading EnvScaler's files, of theirs and of ours. A bad entry is reported, and the others are read.

Fields are JSON values, or texts of JSON as the published data sets have them. The environments are a list, or an object
by `env_id`.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from core.errors import InputError
from guest.world.canonical import NotJsonError, check_json
from worlds.bundles.envscaler import join_documentation
from worlds.bundles.envscaler_checks import FUNCTION, restore_checks
from worlds.definitions import Call, Check, ScenarioDefinition, State, WorldDefinition

IDS = ("env_id", "task_id")
"""Fields that may be numbers."""
MAX_STATES = 5
"""Initial states of a world that are taken from its scenarios, where the environment names none."""


@dataclass(frozen=True, kw_only=True)
class ReadWorld:
    """An environment that was read. `definition` is None where it is malformed; `problem` is a sentence about that."""

    name: str
    definition: WorldDefinition | None = None
    license: str = "NOASSERTION"
    problem: str = ""


@dataclass(frozen=True, kw_only=True)
class ReadScenario:
    """A scenario that was read. `definition` is None where it is malformed; `problem` is a sentence about that."""

    name: str
    world: str
    definition: ScenarioDefinition | None = None
    problem: str = ""


class _MalformedError(Exception):
    """An entry that cannot be read; the text is a sentence about it."""


def read_environments(content: bytes, name: str) -> list[ReadWorld]:
    """Return the environments of a file, in its order.

    Args:
        content: content of the file.
        name: name of the file, for messages.

    Raises:
        InputError: it is not JSON, or neither a list nor an object.
    """
    environments: list[ReadWorld] = []
    seen: set[str] = set()
    for number, (key, entry) in enumerate(_list_entries(content, name)):
        label = _find_name(entry, "env_id", key or f"{name}[{number}]")
        try:
            world = _read_world(entry, key)
            _require_new(world.name, seen, "env_id")
        except _MalformedError as error:
            world = ReadWorld(name=label, problem=str(error))
        environments.append(world)
    return environments


def read_scenarios(content: bytes, name: str) -> list[ReadScenario]:
    """Return the scenarios of a file, in its order; arguments and errors as for `read_environments`."""
    scenarios: list[ReadScenario] = []
    seen: set[str] = set()
    for number, (key, entry) in enumerate(_list_entries(content, name)):
        label = _find_name(entry, "task_id", key or f"{name}[{number}]")
        try:
            scenario = _read_scenario(entry)
            _require_new(scenario.name, seen, "task_id")
        except _MalformedError as error:
            scenario = ReadScenario(name=label, world=_find_name(entry, "env_id", ""), problem=str(error))
        scenarios.append(scenario)
    return scenarios


def add_states(world: WorldDefinition, scenarios: Sequence[ScenarioDefinition]) -> WorldDefinition:
    """Return a world with initial states; a world that has none gets those of its scenarios, each once."""
    if world.states:
        return world
    states: dict[str, State] = {}
    for scenario in scenarios:
        if scenario.state not in states.values() and len(states) < MAX_STATES:
            states[scenario.name] = scenario.state
    return replace(world, states=states)


def _list_entries(content: bytes, name: str) -> Iterator[tuple[str, object]]:
    """Yield (key, entry); the key is empty in a list."""
    try:
        value = json.loads(content)
    except (ValueError, RecursionError) as error:
        # Python's reader raises RecursionError for JSON that is nested too deeply.
        raise InputError(f"{name} is no JSON: {error}") from None
    if isinstance(value, dict):
        return iter(value.items())
    if isinstance(value, list):
        return (("", entry) for entry in value)
    raise InputError(f"{name} is neither a list nor an object")


def _read_world(entry: object, key: str) -> ReadWorld:
    fields = _require_object(entry)
    name = _require_text(fields, "env_id") if "env_id" in fields or not key else key
    program = _require_text(fields, "env_class_code")
    states = _parse(fields.get("initial_states")) or {}
    if not isinstance(states, dict) or not all(isinstance(state, dict) for state in states.values()):
        raise _MalformedError("initial_states is no object of objects")
    _require_json(states, "initial_states")
    documentation = fields.get("documentation")
    if not isinstance(documentation, str):
        rules = _parse(fields.get("constraints_rules")) or []
        documentation = join_documentation(
            str(fields.get("environment_summary") or name),
            str(fields.get("environment_introduction") or ""),
            [str(rule) for rule in rules] if isinstance(rules, list) else [str(rules)],
        )
    definition = WorldDefinition(name=name, program=program, documentation=documentation, states=states)
    given = fields.get("license")
    return ReadWorld(name=name, definition=definition, license=given if isinstance(given, str) else "NOASSERTION")


def _read_scenario(entry: object) -> ReadScenario:
    fields = _require_object(entry)
    name, world, task = (_require_text(fields, key) for key in ("task_id", "env_id", "task"))
    state = _parse(fields.get("init_config"))
    if not isinstance(state, dict):
        raise _MalformedError("init_config is no object")
    _require_json(state, "init_config")
    definition = ScenarioDefinition(
        name=name,
        world=world,
        state=state,
        task=task,
        checks=_read_checks(fields),
        solution=_read_solution(_parse(fields.get("solution"))),
    )
    return ReadScenario(name=name, world=world, definition=definition)


def _read_checks(fields: Mapping[str, Any]) -> tuple[Check, ...]:
    items = _parse(fields.get("checklist_with_func")) or []
    if not isinstance(items, list):
        raise _MalformedError("checklist_with_func is no list")
    checks = []
    for number, item in enumerate(items):
        match item:
            case {"check_item": str(text), "check_func": str(source)}:
                checks.append(Check(item=text, function=FUNCTION, source=source))
            case _:
                raise _MalformedError(f"checklist_with_func[{number}] has no check_item or no check_func")
    return restore_checks(fields.get("checks"), items) or tuple(checks)


def _read_solution(value: object) -> tuple[Call, ...] | None:
    if value is None:
        return None
    if not isinstance(value, list):
        raise _MalformedError("solution is no list of calls")
    calls = []
    for number, step in enumerate(value):
        match step:
            case {"tool": str(tool), **rest} | {"name": str(tool), **rest}:
                arguments = _parse(rest.get("arguments", {}))
                if isinstance(arguments, dict):
                    calls.append(Call(tool=tool, arguments=arguments))
                    continue
        raise _MalformedError(f"solution[{number}] has no tool, or its arguments are no object")
    return tuple(calls)


def _parse(value: object) -> Any:
    """Return a value, of a text of JSON the value that it holds."""
    if not isinstance(value, str):
        return value
    try:
        return json.loads(value)
    except (ValueError, RecursionError):
        return value


def _require_object(entry: object) -> Mapping[str, Any]:
    value = _parse(entry)
    if not isinstance(value, dict):
        raise _MalformedError("it is no object")
    return value


def _require_json(value: object, name: str) -> None:
    """Raise _MalformedError for a value that Python's reader accepts and JSON does not have, such as NaN."""
    try:
        check_json(value)
    except NotJsonError as error:
        raise _MalformedError(str(error).replace("$", name, 1)) from None


def _require_text(fields: Mapping[str, Any], key: str) -> str:
    value = fields.get(key)
    if isinstance(value, int) and not isinstance(value, bool) and key in IDS:
        return str(value)
    if not isinstance(value, str) or not value.strip():
        raise _MalformedError(f"{key} is missing or no text")
    return value


def _require_new(name: str, seen: set[str], key: str) -> None:
    if name in seen:
        raise _MalformedError(f"an earlier entry has this {key}")
    seen.add(name)


def _find_name(entry: object, key: str, otherwise: str) -> str:
    value = entry.get(key) if isinstance(entry, dict) else None
    return value if isinstance(value, str) and value.strip() else otherwise

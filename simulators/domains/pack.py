"""A domain pack: the facts that a simulator must know of a domain, as a folder.

`tools.json`: a list of tools `{name, description, parameters}` (OpenAI's `{type, function}` is read, too), with a JSON
Schema of an object. `policy.md`: the rules of the agent, which become its system prompt. `format.toml`: markers,
parallel calls, where reasoning may stand, how many turns. `validators.toml`: rules for arguments (optional).
`prompts/`: `system.md.j2` and `user.md.j2` in place of the shipped templates (optional).
"""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Any, Literal, TypeVar

import jsonschema
from pydantic import BaseModel, ConfigDict, Field, ValidationError

from core.errors import InputError
from core.files import read_text
from core.toml import parse_toml
from simulators.conversation import MARKERS, TurnRole
from simulators.domains.validators import ArgumentRule

PACKS_FOLDER = Path(__file__).parent
MAX_POLICY_CHARACTERS = 60_000
"""A longer policy leaves a simulator too little room for the conversation."""
T = TypeVar("T", bound=BaseModel)
ADVICE = "see docs/guide/simulate/simulate.md for what a domain pack holds"


class PackFormat(BaseModel):
    """Content of `format.toml`."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    parallel_calls: bool = False
    think: Literal["calls", "never"] = "calls"
    turn_tolerance: float = Field(default=0.6, gt=0, le=10)
    rules: tuple[str, ...] = ()
    """Sentences for the simulator on what makes a conversation of this domain true."""
    markers: dict[TurnRole, str] = Field(default_factory=dict)


class PackRule(BaseModel):
    """One of the `rules` of `validators.toml`."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    argument: str
    prefix: str = ""
    contains: str = ""
    one_of_prefix: tuple[str, ...] = ()
    rewrite: dict[str, str] | None = None
    pattern: str | None = None


class PackValidators(BaseModel):
    """Content of `validators.toml`."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    ids: tuple[str, ...] = ()
    """Arguments that name something which must have been seen before."""
    queries: tuple[str, ...] = ()
    """Tools that change nothing: until another one is called, the same call has the same result."""
    rules: tuple[PackRule, ...] = ()


@dataclass(frozen=True, kw_only=True)
class DomainPack:
    """A domain. Tools are `{name, description, parameters}`, by name."""

    name: str
    tools: Mapping[str, Mapping[str, Any]]
    policy: str
    format: PackFormat = field(default_factory=PackFormat)
    id_arguments: frozenset[str] = frozenset()
    queries: frozenset[str] = frozenset()
    rules: tuple[ArgumentRule, ...] = ()
    prompt_dir: Path | None = None

    @property
    def markers(self) -> Mapping[TurnRole, str]:
        """Role -> beginning of its block."""
        return {**MARKERS, **self.format.markers}

    @cached_property
    def version(self) -> str:
        """Hash of all that the pack holds, but for its prompts."""
        content = [dict(self.tools), self.policy, self.format.model_dump(mode="json"), repr(self.rules)]
        content += [sorted(self.id_arguments), sorted(self.queries)]
        return hashlib.sha256(json.dumps(content, sort_keys=True).encode()).hexdigest()[:16]


def load_pack(word: str) -> DomainPack:
    """Return a shipped pack by its name, or a pack of the user's by its folder.

    Raises:
        InputError: there is none, or it is malformed; the message names the file and the fault that is wrong with it.
    """
    shipped = list_packs()
    folder = PACKS_FOLDER / word if word in shipped else Path(word)
    if not folder.is_dir():
        raise InputError(
            f"there is no domain pack {word}", advice=f"one of {', '.join(shipped)}, or a folder with tools.json"
        )
    validators = _read_table(folder / "validators.toml", PackValidators)
    prompts = folder / "prompts"
    tools = _read_tools(folder / "tools.json")
    return DomainPack(
        name=folder.resolve().name,
        tools=tools,
        policy=_read_policy(folder / "policy.md"),
        format=_check_markers(folder / "format.toml", _read_table(folder / "format.toml", PackFormat)),
        id_arguments=frozenset(validators.ids),
        queries=_check_queries(folder / "validators.toml", validators.queries, tools),
        rules=tuple(_compile_rule(folder / "validators.toml", rule) for rule in validators.rules),
        prompt_dir=_check_prompts(prompts) if prompts.is_dir() else None,
    )


def list_packs() -> list[str]:
    """Return the names of the shipped packs."""
    return sorted(path.parent.name for path in PACKS_FOLDER.glob("*/tools.json"))


def _read_text(path: Path) -> str:
    return read_text(path, f"cannot read {path}", advice=ADVICE)


def _read_tools(path: Path) -> Mapping[str, Mapping[str, Any]]:
    try:
        listed = json.loads(_read_text(path))
    except ValueError as error:
        raise InputError(f"{path} is no JSON: {error}", advice=ADVICE) from error
    if not isinstance(listed, list) or not listed:
        raise InputError(f"{path} is no list of tools", advice=ADVICE)
    tools: dict[str, Mapping[str, Any]] = {}
    for number, entry in enumerate(listed, 1):
        tool = _read_tool(path, number, entry)
        if tool["name"] in tools:
            raise InputError(f"{path}: there are two tools {tool['name']}", advice=ADVICE)
        tools[tool["name"]] = tool
    return tools


def _read_tool(path: Path, number: int, entry: Any) -> Mapping[str, Any]:
    # Tools in OpenAI's form are wrapped in `function`.
    inner = entry.get("function", entry) if isinstance(entry, dict) else None
    if not isinstance(inner, dict) or not isinstance(inner.get("name"), str) or not inner["name"]:
        raise InputError(f"{path}: tool {number} has no name", advice=ADVICE)
    name, schema = inner["name"], inner.get("parameters")
    if not isinstance(schema, dict):
        raise InputError(f"{path}: the tool {name} has no schema of its parameters", advice=ADVICE)
    try:
        jsonschema.Draft202012Validator.check_schema(schema)
    except jsonschema.SchemaError as error:
        raise InputError(f"{path}: the schema of {name} is malformed: {error.message}", advice=ADVICE) from error
    if not isinstance(schema.get("properties", {}), dict) or schema.get("type", "object") != "object":
        raise InputError(f"{path}: the schema of {name} is not that of an object", advice=ADVICE)
    if not isinstance(inner.get("description"), str) or not inner["description"].strip():
        raise InputError(f"{path}: the tool {name} has no description", advice=ADVICE)
    return {"name": name, "description": inner["description"], "parameters": schema}


def _read_policy(path: Path) -> str:
    text = _read_text(path).strip()
    if not text:
        raise InputError(f"{path} is empty", advice=ADVICE)
    if len(text) > MAX_POLICY_CHARACTERS:
        raise InputError(f"{path} has {len(text)} characters, and {MAX_POLICY_CHARACTERS} are allowed", advice=ADVICE)
    return text


def _read_table(path: Path, kind: type[T]) -> T:
    """Return the content of a TOML file, the defaults where there is none."""
    if not path.exists():
        return kind()
    try:
        return kind.model_validate(parse_toml(_read_text(path)))
    except ValidationError as error:
        first = error.errors(include_url=False)[0]
        where = ".".join(map(str, first["loc"]))
        raise InputError(f"{path}: {where}: {first['msg'].lower()}", advice=ADVICE) from error
    except ValueError as error:
        raise InputError(f"{path} is no TOML: {error}", advice=ADVICE) from error


def _check_markers(path: Path, pack_format: PackFormat) -> PackFormat:
    markers = [*{**MARKERS, **pack_format.markers}.values()]
    if not all(markers) or any(
        marker is not other and marker.startswith(other) for marker in markers for other in markers
    ):
        raise InputError(f"{path}: markers: each must be distinct, and none the beginning of another", advice=ADVICE)
    return pack_format


def _check_queries(path: Path, names: tuple[str, ...], tools: Mapping[str, object]) -> frozenset[str]:
    unknown = [name for name in names if name not in tools]
    if unknown:
        raise InputError(f"{path}: queries: there is no tool {unknown[0]}", advice=ADVICE)
    return frozenset(names)


def _compile_rule(path: Path, rule: PackRule) -> ArgumentRule:
    try:
        pattern = re.compile(rule.pattern) if rule.pattern else None
    except re.error as error:
        raise InputError(f"{path}: the pattern of {rule.argument} is malformed: {error}", advice=ADVICE) from error
    return ArgumentRule(
        argument=rule.argument,
        prefix=rule.prefix,
        contains=rule.contains,
        one_of_prefix=rule.one_of_prefix,
        rewrite=rule.rewrite,
        pattern=pattern,
    )


def _check_prompts(folder: Path) -> Path:
    for name in ("system.md.j2", "user.md.j2"):
        if not (folder / name).is_file():
            raise InputError(f"{folder} has no {name}", advice=ADVICE)
    return folder

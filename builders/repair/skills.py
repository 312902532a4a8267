"""Skills: expert knowledge as files, of when it applies, which edits it makes, and what it tells a model.

A file `NAME.md` is YAML between two lines `---`, then text for people and models. docs/skills.md teaches to write them.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

import yaml
from packaging.utils import canonicalize_name
from pydantic import BaseModel, ConfigDict, Field, ValidationError, field_validator

from backends.tree import Tree
from builders.accept import Reason
from builders.repair import edits as known_edits
from builders.repair.edits import AddDependency, AddService, AddSystemPackage, Edit, PinDependency, SetEnv, edits_of
from builders.repair.policy import Observation
from languages.facts import distribution
from languages.registry import all_languages
from mergemill.errors import InputError

OURS = Path(__file__).parent.parent / "skills"
LOOKED_AT = 1_000_000
"""Characters of a log in which patterns are looked for: a fifth from its head, the rest from its end."""
MOST = 12
"""Matches of one skill's pattern in a log that are looked at: a log may name a hundred missing modules."""
_FIELD = re.compile(r"\{(\w+)(?:\|(\w+))?\}")
_TOGETHER = (AddDependency, AddSystemPackage, AddService, PinDependency, SetEnv)


class _Part(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid", use_attribute_docstrings=True)


class When(_Part):
    """When a skill applies: everything that is said must hold."""

    languages: tuple[str, ...] = ()
    """Of the plan; none: any."""
    reasons: tuple[Reason, ...] = ()
    """Why the attempt was refused; none: any that is not hopeless (`timeout` and its like must be named)."""
    log: tuple[str, ...] = ()
    """Regular expressions (Python's, over lines); one must be found in the log or in a failed test's message. Named
    groups are for the edits."""
    packages: tuple[str, ...] = ()
    """One of these is among the draft's dependencies."""
    files: tuple[str, ...] = ()
    """One path of the tree matches one of these shell patterns."""
    versions: tuple[str, ...] = ()
    """Versions of the language for which it holds, such as `3.12`."""
    without_env: str = ""
    """A variable that is not set."""

    @field_validator("languages", "reasons", "log", "packages", "files", "versions", mode="before")
    @classmethod
    def _listed(cls, value: object) -> object:
        return (value,) if isinstance(value, str) else value

    @field_validator("languages")
    @classmethod
    def _known(cls, value: tuple[str, ...]) -> tuple[str, ...]:
        unknown = [name for name in value if name not in all_languages() and name not in PLANNED]
        if unknown:
            raise ValueError(f"{unknown[0]!r} is no language; known: {', '.join(all_languages())}")
        return value

    @field_validator("log")
    @classmethod
    def _compiles(cls, value: tuple[str, ...]) -> tuple[str, ...]:
        for pattern in value:
            try:
                re.compile(pattern, re.MULTILINE)
            except re.error as error:
                raise ValueError(f"{pattern!r} is no regular expression: {error}") from None
        return value


PLANNED = frozenset({"javascript", "typescript", "go", "rust", "java", "kotlin", "scala", "c", "c++", "cpp", "ruby",
                     "php", "csharp", "elixir", "perl"})  # fmt: skip
"""Languages that a skill may name though this installation has no module for them."""


class Header(_Part):
    """What stands between the lines `---`."""

    when: When
    do: tuple[dict[str, Any], ...] = ()
    """Edits; `{group}` is what the pattern's group found, `{group|table}` what the table has for it. None: the skill
    only tells."""
    table: dict[str, str | list[str]] = Field(default_factory=dict)
    """What a group found -> what an edit says; a list makes an edit of each. What the table lacks does not match."""
    order: int = 50
    """Of several that match, the lowest first."""


@dataclass(frozen=True, kw_only=True)
class Skill:
    """One file."""

    name: str
    path: Path
    header: Header
    body: str

    @property
    def goes_together(self) -> bool:
        """Whether its edits are about single packages and variables, so that they can be tried with others'."""
        return all(issubclass(_kind(one), _TOGETHER) for one in self.header.do)

    def __hash__(self) -> int:
        return hash((self.name, self.path))


@dataclass(frozen=True, kw_only=True)
class Match:
    """A skill that applies: its edits, filled in, and the text that says so. No edits: it only tells."""

    skill: Skill
    edits: tuple[Edit, ...]
    why: str


def matching(skills: Sequence[Skill], observation: Observation, tree: Tree) -> list[Match]:
    """The skills that apply to a refused attempt, best first; those with edits before those that only tell."""
    log = observation.log
    if len(log) > LOOKED_AT:
        log = log[: LOOKED_AT // 5] + "\n" + log[-LOOKED_AT * 4 // 5 :]
    text = "\n".join((log, *observation.lines, observation.detail))
    found = [match for skill in skills if (match := _match(skill, observation, tree, text))]
    return sorted(found, key=lambda match: (not match.edits, match.skill.header.order, match.skill.name))


def _applies(when: When, observation: Observation, tree: Tree) -> bool:
    """Whether all that a skill says beside its patterns holds."""
    draft = observation.draft
    return (
        (not when.languages or draft.language in when.languages)
        and observation.reason in (when.reasons or [r for r in Reason if not observation.hopeless])
        and (not when.versions or draft.versions[0].value in when.versions)
        and (not when.without_env or when.without_env not in dict(draft.env))
        and (not when.packages or _has_package(when.packages, observation))
        and (not when.files or any(tree.glob(pattern) for pattern in when.files))
    )


def _match(skill: Skill, observation: Observation, tree: Tree, text: str) -> Match | None:
    when = skill.header.when
    if not _applies(when, observation, tree):
        return None
    if not when.log:
        return Match(skill=skill, edits=tuple(_filled(skill, {})), why=skill.name)
    hits = [hit for pattern in when.log for hit in re.finditer(pattern, text, re.MULTILINE)]
    edits: list[Edit] = []
    told = None
    seen: set[tuple[tuple[str, str], ...]] = set()
    for hit in hits:
        groups = {name: value for name, value in hit.groupdict().items() if value}
        key = tuple(sorted(groups.items()))
        made = [] if key in seen else list(_filled(skill, groups))
        seen.add(key)
        if made or not skill.header.do:
            told = told or hit.group().strip()
            edits += [edit for edit in made if edit not in edits]
        if len(seen) >= MOST * 10 or len(edits) >= MOST:
            break
    return Match(skill=skill, edits=tuple(edits), why=" ".join(told.split())[:200]) if told else None


def _has_package(wanted: Sequence[str], observation: Observation) -> bool:
    have = {canonicalize_name(distribution(d.wanted.text)) for d in observation.draft.dependencies}
    return any(canonicalize_name(name) in have for name in wanted)


def _filled(skill: Skill, groups: Mapping[str, str]) -> Iterator[Edit]:
    """The skill's edits with the groups filled in; none where the table has nothing for a group."""
    found: list[dict[str, Any]] = []
    for one in skill.header.do:
        words = set(_fields(one))
        looked_up = {name: skill.header.table.get(groups.get(name, "")) for name, table in words if table}
        if any(value is None for value in looked_up.values()) or any(n not in groups for n, t in words if not t):
            return
        lists = [value for value in looked_up.values() if isinstance(value, list)]
        for at in range(len(lists[0]) if lists else 1):
            chosen = {name: value[at] if isinstance(value, list) else value for name, value in looked_up.items()}
            found.append({key: _put(value, groups, chosen) for key, value in one.items()})
    try:
        yield from edits_of(found)
    except ValidationError:  # what stood in the log is no name of a package
        return


def _put(value: Any, groups: Mapping[str, str], looked_up: Mapping[str, Any]) -> Any:
    if isinstance(value, list):
        return [_put(each, groups, looked_up) for each in value]
    if not isinstance(value, str):
        return value
    return _FIELD.sub(lambda match: str(looked_up[match[1]] if match[2] else groups[match[1]]), value)


# --------------------------------------------------------------------------------------------------- reading


@cache
def load(*folders: Path) -> tuple[Skill, ...]:
    """All skills of the folders, by name; of two of one name the later folder's counts.

    Raises:
        InputError: a file is no skill; the error names file and line.
    """
    found: dict[str, Skill] = {}
    for folder in folders:
        if not folder.is_dir():
            raise InputError(f"{folder} is no folder of skills", advice="--skills names a folder of files NAME.md")
        for path in sorted(folder.glob("*.md")):
            if path.name != "README.md":
                found[path.stem] = read(path)
    return tuple(found[name] for name in sorted(found))


def read(path: Path) -> Skill:
    """The skill in a file.

    Raises:
        InputError: it is none; the error names file and line.
    """
    text = _text(path)
    match = re.match(r"---\n(.*?)\n---\n?(.*)", text, re.DOTALL)
    if not match:
        raise InputError(f"{path}:1: a skill begins with YAML between two lines ---")
    if not re.fullmatch(r"[a-z0-9][a-z0-9-]*", path.stem):
        raise InputError(f"{path}: a skill's name is lowercase letters, digits and dashes")
    header = _header(path, match[1])
    if not match[2].strip():
        raise InputError(f"{path}: there is no text for people and models below the second ---")
    return Skill(name=path.stem, path=path, header=header, body=match[2].strip())


def _text(path: Path) -> str:
    try:
        return path.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise InputError(f"{path}: cannot be read: {error}") from error


def _header(path: Path, text: str) -> Header:
    try:
        data = yaml.safe_load(text)
    except yaml.YAMLError as error:
        mark = getattr(error, "problem_mark", None)
        line = mark.line + 2 if mark else 1
        raise InputError(f"{path}:{line}: {getattr(error, 'problem', None) or 'not YAML'}") from None
    try:
        header = Header.model_validate(data)
    except ValidationError as error:
        first = error.errors()[0]
        where = [str(part) for part in first["loc"]]
        raise InputError(f"{path}:{_line(text, where)}: {'.'.join(where) or 'the header'}: {first['msg']}") from None
    _check_edits(path, text, header)
    return header


def _check_edits(path: Path, text: str, header: Header) -> None:
    """Whether each edit is one when its fields are filled in, and all fields are groups of every pattern."""
    groups = [set(re.compile(pattern).groupindex) for pattern in header.when.log]
    for one in header.do:
        line = _line(text, ["do", str(one.get("edit", ""))])
        for name, table in _fields(one):
            if not any(name in group for group in groups):
                raise InputError(f"{path}:{line}: {{{name}}} is no group of a pattern in `log`")
            if table and not header.table:
                raise InputError(f"{path}:{line}: {{{name}|{table}}} asks for a `table`, and there is none")
        try:
            known_edits.edit_of(_with_any(one))
        except ValidationError as error:
            first = error.errors()[0]
            raise InputError(f"{path}:{line}: do: {'.'.join(map(str, first['loc']))} {first['msg']}") from None


def _kind(one: Mapping[str, Any]) -> type[Any]:
    return type(known_edits.edit_of(_with_any(one)))


def _fields(one: Mapping[str, Any]) -> list[tuple[str, str]]:
    """(group, `table` or empty) of all fields in an edit's texts."""
    texts = [text for value in one.values() for text in (value if isinstance(value, list) else [value])]
    return [match for text in texts if isinstance(text, str) for match in _FIELD.findall(text)]


def _with_any(one: Mapping[str, Any]) -> dict[str, Any]:
    """An edit with something in place of its fields."""
    anything = dict.fromkeys((name for name, _ in _fields(one)), "x1")
    return {key: _put(value, anything, anything) for key, value in one.items()}


def _line(text: str, where: Sequence[str]) -> int:
    """The file's line (1-based) in which the last of the words in `where` that the header has stands."""
    lines = text.splitlines()
    for word in reversed(where):
        for number, line in enumerate(lines, 2):
            if word and re.search(rf"(^|[\s\-:]){re.escape(word)}\b", line):
                return number
    return 2

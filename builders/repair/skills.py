"""Skills: known build failures as data. A skill has conditions, edits that repair the build, and a text for models.

docs/guide/build/skills.md describes the files; `builders.repair.skill_files` reads them.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from packaging.utils import canonicalize_name
from pydantic import BaseModel, ConfigDict, Field, ValidationError, field_validator

from backends.tree import CommitTree
from builders.acceptance import Reason
from builders.repair.edits import (
    AddDependency,
    AddService,
    AddSystemPackage,
    DraftEdit,
    PinDependency,
    SetEnv,
    parse_edit,
    parse_edits,
)
from builders.repair.policy import Observation
from languages.facts import parse_distribution_name
from languages.registry import LANGUAGES

MAX_LOG_CHARS = 1_000_000
"""Characters of a log that patterns are applied to: one fifth from its start, the rest from its end."""
MAX_MATCHES = 12
"""Limit of edits from one skill's matches in a log, since a log may list a hundred missing modules."""
_FIELD = re.compile(r"\{(\w+)(?:\|(\w+))?\}")
_COMBINABLE_EDITS = (AddDependency, AddSystemPackage, AddService, PinDependency, SetEnv)


class SkillModel(BaseModel):
    """Base of the parts of a skill file: immutable, without unknown keys."""

    model_config = ConfigDict(frozen=True, extra="forbid", use_attribute_docstrings=True)


class SkillCondition(SkillModel):
    """Conditions of a skill; all of them must hold."""

    languages: tuple[str, ...] = ()
    """Languages of the plan; empty: any."""
    reasons: tuple[Reason, ...] = ()
    """Reasons of the rejected attempt; empty: every repairable one (`timeout` and similar ones must be listed)."""
    log: tuple[str, ...] = ()
    """Regular expressions (Python syntax, multi-line mode); one must match the log or a failed test's message. Edits
    refer to their named groups."""
    packages: tuple[str, ...] = ()
    """Packages of which the draft's dependencies contain at least one."""
    files: tuple[str, ...] = ()
    """Shell patterns of which one must match a path of the tree."""
    versions: tuple[str, ...] = ()
    """Versions of the language, such as `3.12`; empty: any."""
    without_env: str = ""
    """A variable that must not be set."""

    @field_validator("languages", "reasons", "log", "packages", "files", "versions", mode="before")
    @classmethod
    def _wrap_in_tuple(cls, value: object) -> object:
        return (value,) if isinstance(value, str) else value

    @field_validator("languages")
    @classmethod
    def _check_languages(cls, value: tuple[str, ...]) -> tuple[str, ...]:
        unknown = [name for name in value if name not in LANGUAGES]
        if unknown:
            raise ValueError(f"{unknown[0]!r} is no language; available: {', '.join(LANGUAGES)}")
        return value

    @field_validator("log")
    @classmethod
    def _check_patterns(cls, value: tuple[str, ...]) -> tuple[str, ...]:
        for pattern in value:
            try:
                re.compile(pattern, re.MULTILINE)
            except re.error as error:
                raise ValueError(f"{pattern!r} is no regular expression: {error}") from None
        return value


class SkillHeader(SkillModel):
    """The YAML part of a skill, between the lines `---`."""

    when: SkillCondition
    do: tuple[dict[str, Any], ...] = ()
    """Edits as plain data; `{group}` is replaced by the match of the pattern's group, `{group|table}` by its entry in
    the table. Empty: the skill only provides its text."""
    table: dict[str, str | list[str]] = Field(default_factory=dict)
    """Matched text of a group -> value for an edit; a list makes one edit of each element. A text without an entry
    does not match."""
    order: int = 50
    """Of several matching skills the lowest comes first."""


@dataclass(frozen=True, kw_only=True)
class Skill:
    """One skill: a file, or a row of a table."""

    name: str
    path: Path
    header: SkillHeader
    body: str

    @property
    def is_combinable(self) -> bool:
        """Whether all edits concern single packages and variables, so that they can be tried with other skills'."""
        return all(isinstance(parse_edit(fill_with_placeholder(edit)), _COMBINABLE_EDITS) for edit in self.header.do)

    def __hash__(self) -> int:
        return hash((self.name, self.path))


@dataclass(frozen=True, kw_only=True)
class SkillMatch:
    """A skill that matches, with its completed edits (possibly none) and the matched text."""

    skill: Skill
    edits: tuple[DraftEdit, ...]
    rationale: str


def find_matches(skills: Sequence[Skill], observation: Observation, tree: CommitTree) -> list[SkillMatch]:
    """Return the skills that match a rejected attempt, best first; those with edits come before those without."""
    log = observation.log
    if len(log) > MAX_LOG_CHARS:
        log = log[: MAX_LOG_CHARS // 5] + "\n" + log[-MAX_LOG_CHARS * 4 // 5 :]
    text = "\n".join((log, *observation.lines, observation.detail))
    matches = [match for skill in skills if (match := _match_skill(skill, observation, tree, text))]
    return sorted(matches, key=lambda match: (not match.edits, match.skill.header.order, match.skill.name))


def _applies(when: SkillCondition, observation: Observation, tree: CommitTree) -> bool:
    """Return whether all conditions but the patterns hold."""
    draft = observation.draft
    return (
        (not when.languages or draft.language in when.languages)
        and observation.reason in (when.reasons or [r for r in Reason if not observation.is_unrepairable])
        and (not when.versions or draft.versions[0].value in when.versions)
        and (not when.without_env or when.without_env not in dict(draft.env))
        and (not when.packages or _has_package(when.packages, observation))
        and (not when.files or any(tree.glob(pattern) for pattern in when.files))
    )


def _match_skill(skill: Skill, observation: Observation, tree: CommitTree, text: str) -> SkillMatch | None:
    when = skill.header.when
    if not _applies(when, observation, tree):
        return None
    if not when.log:
        return SkillMatch(skill=skill, edits=tuple(_fill_edits(skill, {})), rationale=skill.name)
    hits = [hit for pattern in when.log for hit in re.finditer(pattern, text, re.MULTILINE)]
    edits: list[DraftEdit] = []
    first_hit = None
    seen: set[tuple[tuple[str, str], ...]] = set()
    for hit in hits:
        groups = {name: value for name, value in hit.groupdict().items() if value}
        key = tuple(sorted(groups.items()))
        filled = [] if key in seen else list(_fill_edits(skill, groups))
        seen.add(key)
        if filled or not skill.header.do:
            first_hit = first_hit or hit.group().strip()
            edits += [edit for edit in filled if edit not in edits]
        # A log may match thousands of times without any edit, so the number of different matches is limited, too.
        if len(seen) >= MAX_MATCHES * 10 or len(edits) >= MAX_MATCHES:
            break
    return (
        SkillMatch(skill=skill, edits=tuple(edits), rationale=" ".join(first_hit.split())[:200]) if first_hit else None
    )


def _has_package(names: Sequence[str], observation: Observation) -> bool:
    installed = {canonicalize_name(parse_distribution_name(d.source.text)) for d in observation.draft.dependencies}
    return any(canonicalize_name(name) in installed for name in names)


def _fill_edits(skill: Skill, groups: Mapping[str, str]) -> Iterator[DraftEdit]:
    """Yield the skill's edits with the groups filled in; none where the table has no entry for a group."""
    filled: list[dict[str, Any]] = []
    for edit in skill.header.do:
        fields = set(find_fields(edit))
        entries = {name: skill.header.table.get(groups.get(name, "")) for name, table in fields if table}
        if any(value is None for value in entries.values()) or any(n not in groups for n, t in fields if not t):
            return
        lists = [value for value in entries.values() if isinstance(value, list)]
        for at in range(len(lists[0]) if lists else 1):
            chosen = {name: value[at] if isinstance(value, list) else value for name, value in entries.items()}
            filled.append({key: _fill_value(value, groups, chosen) for key, value in edit.items()})
    try:
        yield from parse_edits(filled)
    except ValidationError:
        # The matched text is not the name of a package, so the skill has nothing to add.
        return


def _fill_value(value: Any, groups: Mapping[str, str], entries: Mapping[str, Any]) -> Any:
    if isinstance(value, list):
        return [_fill_value(each, groups, entries) for each in value]
    if not isinstance(value, str):
        return value
    return _FIELD.sub(lambda match: str(entries[match[1]] if match[2] else groups[match[1]]), value)


def find_fields(edit: Mapping[str, Any]) -> list[tuple[str, str]]:
    """Return (group, `table` or empty) of each field in the texts of an edit."""
    texts = [text for value in edit.values() for text in (value if isinstance(value, list) else [value])]
    return [match for text in texts if isinstance(text, str) for match in _FIELD.findall(text)]


def fill_with_placeholder(edit: Mapping[str, Any]) -> dict[str, Any]:
    """Return an edit with a placeholder in each field."""
    placeholders = dict.fromkeys((name for name, _ in find_fields(edit)), "x1")
    return {key: _fill_value(value, placeholders, placeholders) for key, value in edit.items()}

"""Skill files: a skill is a file `NAME.md`, or a row of a table, a file `*.yaml`. See docs/guide/build/skills.md.

A `.md` file is YAML between two lines `---`, then text for people and models. The rows of a table share a form.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any, TypeVar

import yaml
from pydantic import Field, ValidationError, field_validator

from builders.repair.edits import parse_edit
from builders.repair.skills import Skill, SkillHeader, SkillModel, fill_with_placeholder, find_fields
from core.errors import InputError

BUILTIN_SKILLS = Path(__file__).parent.parent / "skills"
_Model = TypeVar("_Model", bound=SkillModel)
_LOADER = getattr(yaml, "CSafeLoader", yaml.SafeLoader)
"""That of libyaml, where PyYAML was built with it: each run reads all skills, and it takes a sixth of the time."""


class SkillRow(SkillModel):
    """A row of a table: the part that distinguishes a skill from the others."""

    when: dict[str, Any] = Field(default_factory=dict)
    """Conditions in addition to the table's."""
    match: tuple[str, ...] = ()
    """Regular expressions, each put in place of `{match}` in the table's pattern."""
    log: tuple[str, ...] = ()
    """Further regular expressions."""
    install: tuple[str, ...] = Field(min_length=1)
    """Values, each put in place of `{install}` in the table's edit."""
    text: str = Field(min_length=1)
    """Text for people and models."""

    @field_validator("match", "log", "install", mode="before")
    @classmethod
    def _wrap_in_tuple(cls, value: object) -> object:
        return (value,) if isinstance(value, str) else value


class SkillTable(SkillModel):
    """A file of skills that share their form."""

    when: dict[str, Any] = Field(default_factory=dict)
    """Conditions of all rows."""
    pattern: tuple[str, ...] = ()
    """Regular expressions with `{match}`."""
    do: dict[str, Any]
    """The edit of all rows, with `{install}`."""
    skills: dict[str, SkillRow]
    """Rows by skill name."""

    @field_validator("pattern", mode="before")
    @classmethod
    def _wrap_in_tuple(cls, value: object) -> object:
        return (value,) if isinstance(value, str) else value

    def expand(self, name: str) -> dict[str, Any]:
        """Return the header of a row as plain data.

        All its patterns become a single pattern, alternatives in the row's order.
        """
        row = self.skills[name]
        patterns = [pattern.replace("{match}", each) for each in row.match for pattern in self.pattern]
        log = {"log": "|".join((*patterns, *row.log))} if patterns or row.log else {}
        edits = [{key: _replace(value, "{install}", each) for key, value in self.do.items()} for each in row.install]
        return {"when": self.when | row.when | log, "do": edits}


@dataclass(frozen=True)
class SkillSource:
    """YAML text of a file, with the number of its first line for error messages."""

    path: Path
    text: str
    first_line: int

    def build_error(self, where: Sequence[str], message: str) -> InputError:
        """Return an error that names the file and the line of the last of the keys `where` that the text contains."""
        return InputError(f"{self.path}:{self._find_line(where)}: {message}")

    def narrow(self, key: str) -> SkillSource:
        """Return the part of the text from a key on."""
        line = self._find_line([key])
        text = "\n".join(self.text.splitlines()[line - self.first_line :])
        return SkillSource(self.path, text, line)

    def load(self) -> Any:
        """Return the parsed YAML.

        Raises:
            InputError: the text is not YAML.
        """
        try:
            return yaml.load(self.text, Loader=_LOADER)  # noqa: S506 - a safe one
        except yaml.YAMLError as error:
            mark = getattr(error, "problem_mark", None)
            line = mark.line + self.first_line if mark else 1
            raise InputError(f"{self.path}:{line}: {getattr(error, 'problem', None) or 'not YAML'}") from None

    def validate(self, model: type[_Model], data: Any) -> _Model:
        """Return the data as a model.

        Raises:
            InputError: the data do not fit; the error names the line of the first mistake.
        """
        try:
            return model.model_validate(data)
        except ValidationError as error:
            first = error.errors()[0]
            where = [str(part) for part in first["loc"]]
            raise self.build_error(where, f"{'.'.join(where) or 'the header'}: {first['msg']}") from None

    def _find_line(self, where: Sequence[str]) -> int:
        lines = self.text.splitlines()
        for word in reversed(where):
            # The innermost key comes first, as the outer keys stand in lines above the mistake.
            for number, line in enumerate(lines, self.first_line):
                if word and re.search(rf"(^|[\s\-:]){re.escape(word)}\b", line):
                    return number
        return self.first_line


@cache
def load_skills(*folders: Path) -> tuple[Skill, ...]:
    """Return all skills of the folders, sorted by name; of two with the same name that of the later folder.

    Raises:
        InputError: a file is not a valid skill; the error names file and line.
    """
    skills: dict[str, Skill] = {}
    for folder in folders:
        if not folder.is_dir():
            raise InputError(f"{folder} is no folder of skills", advice="--skills names a folder of files NAME.md")
        skills |= _read_folder(folder)
    return tuple(skills[name] for name in sorted(skills))


def _read_folder(folder: Path) -> dict[str, Skill]:
    skills: dict[str, Skill] = {}
    for path in list_skill_files(folder):
        for skill in read_skills(path):
            if other := skills.get(skill.name):
                # Only a skill of another folder is replaced: within a folder, the choice would depend on file names.
                raise InputError(f"{path}: the skill {skill.name} is in {other.path.name} as well")
            skills[skill.name] = skill
    return skills


def list_skill_files(folder: Path) -> list[Path]:
    """Return the files of skills and of tables in a folder, sorted."""
    return sorted([*(path for path in folder.glob("*.md") if path.name != "README.md"), *folder.glob("*.yaml")])


def read_skills(path: Path) -> tuple[Skill, ...]:
    """Return the skills of a file: that of a `.md` file, the rows of a table.

    Raises:
        InputError: the file is not valid; the error names file and line.
    """
    return _read_table(path) if path.suffix == ".yaml" else (_read_skill(path),)


def format_skill(skill: Skill) -> str:
    """Return a skill in the form of a file `NAME.md`, also where it is a row of a table."""
    if skill.path.suffix == ".md":
        return _read_text(skill.path).rstrip()
    header = skill.header.model_dump(mode="json", exclude_defaults=True)
    data = yaml.safe_dump(header, sort_keys=False, allow_unicode=True, width=10_000, default_flow_style=None)
    return f"---\n{data}---\n{skill.body}"


def _read_skill(path: Path) -> Skill:
    match = re.match(r"---\n(.*?)\n---\n?(.*)", _read_text(path), re.DOTALL)
    if not match:
        raise InputError(f"{path}:1: a skill begins with YAML between two lines ---")
    source = SkillSource(path, match[1], 2)
    return _build_skill(source, path.stem, source.load(), match[2])


def _read_table(path: Path) -> tuple[Skill, ...]:
    source = SkillSource(path, _read_text(path), 1)
    table = source.validate(SkillTable, source.load())
    return tuple(
        _build_skill(source.narrow(name), name, table.expand(name), row.text) for name, row in table.skills.items()
    )


def _build_skill(source: SkillSource, name: str, data: Any, text: str) -> Skill:
    if not re.fullmatch(r"[a-z0-9][a-z0-9-]*", name):
        raise source.build_error([name], "a skill's name is lowercase letters, digits and dashes")
    header = source.validate(SkillHeader, data)
    _check_edits(source, header)
    if not text.strip():
        raise InputError(f"{source.path}: there is no text for people and models below the second ---")
    return Skill(name=name, path=source.path, header=header, body=text.strip())


def _check_edits(source: SkillSource, header: SkillHeader) -> None:
    """Raise InputError unless each edit is valid once filled in and its fields are groups of a pattern."""
    groups = [set(re.compile(pattern).groupindex) for pattern in header.when.log]
    for edit in header.do:
        where = ["do", str(edit.get("edit", ""))]
        for name, table in find_fields(edit):
            if not any(name in group for group in groups):
                raise source.build_error(where, f"{{{name}}} is no group of a pattern in `log`")
            if table and not header.table:
                raise source.build_error(where, f"{{{name}|{table}}} refers to a `table`, and there is none")
        try:
            parse_edit(fill_with_placeholder(edit))
        except ValidationError as error:
            first = error.errors()[0]
            raise source.build_error(where, f"do: {'.'.join(map(str, first['loc']))} {first['msg']}") from None


def _replace(value: Any, field: str, text: str) -> Any:
    return value.replace(field, text) if isinstance(value, str) else value


def _read_text(path: Path) -> str:
    try:
        return path.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise InputError(f"{path}: cannot be read: {error}") from error

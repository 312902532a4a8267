"""Rows of OctoCodingBench (arXiv 2601.10343): an instance with a checklist, whose items stand below their sources.

::

    {"instance_id", "user_query": [TEXT, ...], "system_prompt", "category", "image", "workspace_abs_path",
     "scaffold": {"name", "version"},
     "checklist": {SOURCE: {"description", "checks": [{"check_id", "description", "check_type"}]}}}

Rows that mergemill writes have the key OWN_KEY first, with all that the others cannot carry. Further keys are kept.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from core.errors import InputError
from core.json_files import JsonRow, read_rows
from taskdb.records.instructions import InstructionSource

OWN_KEY = "mergemill"
"""Key of a row with all that its other keys cannot carry."""
SOURCES: Mapping[str, InstructionSource] = {
    "SP": InstructionSource.SYSTEM,
    "System reminder": InstructionSource.REMINDER,
    "User query": InstructionSource.TURN,
    "Agents.md": InstructionSource.REPOSITORY,
    "Tool schema": InstructionSource.TOOL,
    "Skill": InstructionSource.SKILL,
    "Memory": InstructionSource.MEMORY,
}
"""Name of a source in rows -> the source."""
OTHER_SOURCES: Mapping[str, InstructionSource] = {
    "Skill.md": InstructionSource.SKILL,
    "Memory bank": InstructionSource.MEMORY,
    "Memory bank (project-specific rules)": InstructionSource.MEMORY,
    "testing": InstructionSource.TURN,
}
"""Further names in published rows. Items of `testing` are the annotators' own; they are about the user's request."""
CHECK_TYPES = ("compliance", "understanding", "implementation", "testing", "modification", "configuration")
"""Types of checks; the last three are in published rows and not in their description."""
DEFAULT_WORKDIR = "/app"
"""Folder of a row without `workspace_abs_path`, as the benchmark's own harness has it."""


@dataclass(frozen=True, kw_only=True)
class OctoItem:
    """Item of a checklist."""

    name: str
    """`check_id`; unique in a row."""
    source: InstructionSource
    text: str
    type: str


@dataclass(frozen=True, kw_only=True)
class OctoRow:
    """Content of a row."""

    place: str
    """File and row, for messages."""
    name: str
    """`instance_id`."""
    messages: tuple[str, ...]
    """Messages of the user, the first included."""
    system: str
    image: str
    workdir: str
    items: tuple[OctoItem, ...]
    published: Mapping[str, Any]
    """The row without OWN_KEY."""
    own: Mapping[str, Any] | None
    """Value of OWN_KEY; None without it."""


def read_octo_rows(path: Path) -> list[OctoRow]:
    """Return the rows of a file, in any form of `core.json_files`.

    Raises:
        InputError: the file cannot be read or is empty, a row has not the keys of the format, or two have one name; the
            message names file, row and key.
    """
    rows: dict[str, OctoRow] = {}
    for json_row in read_rows(path, _is_row, noun="the rows"):
        row = parse_octo_row(json_row, f"{path}, {json_row.place}")
        if earlier := rows.get(row.name):
            raise InputError(f"{row.place}: instance_id: {row.name} is also in {earlier.place}")
        rows[row.name] = row
    if not rows:
        raise InputError(f"{path} has no row")
    return list(rows.values())


def _is_row(document: Mapping[str, Any]) -> bool:
    return "instance_id" in document or "checklist" in document


def parse_octo_row(row: JsonRow, place: str) -> OctoRow:
    """Return the content of a row.

    Args:
        row: the row.
        place: file and row, for messages.

    Raises:
        InputError: it is no row of the format; the message names the key.
    """
    if row.problem or not isinstance(row.value, dict):
        raise InputError(f"{place}: {row.problem or 'it is not a JSON object'}")
    reader = _RowReader(place, row.value)
    own = row.value.get(OWN_KEY)
    if own is not None and not isinstance(own, dict):
        raise reader.make_error(OWN_KEY, "is no object")
    return OctoRow(
        place=place,
        name=reader.read_name(),
        messages=reader.read_messages(),
        system=reader.read_text("system_prompt"),
        image=reader.read_text("image"),
        workdir=reader.read_text("workspace_abs_path") or DEFAULT_WORKDIR,
        items=tuple(reader.iterate_items()),
        published={key: value for key, value in row.value.items() if key != OWN_KEY},
        own=own,
    )


class _RowReader:
    """Reader of the keys of a row."""

    def __init__(self, place: str, row: Mapping[str, Any]) -> None:
        self._place, self._row = place, row

    def make_error(self, key: str, problem: str, advice: str = "") -> InputError:
        """Return the error of a key."""
        return InputError(f"{self._place}: {key}: {problem}", advice=advice)

    def read_name(self) -> str:
        """Return `instance_id`."""
        name = self._row.get("instance_id")
        if not isinstance(name, str) or not name.strip() or not name.isprintable() or "/" in name:
            problem = "is missing" if name is None else f"{str(name)[:60]!r} is no name"
            raise self.make_error("instance_id", problem)
        return name

    def read_text(self, key: str) -> str:
        """Return a text; empty where it is missing or null."""
        value = self._row.get(key)
        if not isinstance(value, str | None):
            raise self.make_error(key, "is not a text")
        return value or ""

    def read_messages(self) -> tuple[str, ...]:
        """Return `user_query`, at least one message."""
        messages = self._row.get("user_query")
        if not isinstance(messages, list) or not messages:
            raise self.make_error("user_query", "is not a list of messages")
        if not all(isinstance(message, str) and message.strip() for message in messages):
            raise self.make_error("user_query", "a message is empty or no text")
        return tuple(messages)

    def iterate_items(self) -> Iterator[OctoItem]:
        """Yield the items of the checklist."""
        checklist = self._row.get("checklist")
        if not isinstance(checklist, dict):
            raise self.make_error("checklist", "is missing" if checklist is None else "is no table of sources")
        seen: dict[str, str] = {}
        for name, group in checklist.items():
            key = f"checklist[{name!r}]"
            # Published rows do not agree on capitals.
            source = _NAMES.get(name.casefold())
            if source is None:
                raise self.make_error(key, "the source is unknown", f"one of {', '.join(SOURCES)}")
            checks = group.get("checks") if isinstance(group, dict) else None
            if not isinstance(checks, list):
                raise self.make_error(key, "has no list `checks`")
            for number, check in enumerate(checks, 1):
                item = self._read_item(f"{key}.checks[{number}]", check, source)
                if item.name in seen:
                    raise self.make_error(f"{key}.checks[{number}]", f"{item.name} is also in {seen[item.name]}")
                seen[item.name] = f"{key}.checks[{number}]"
                yield item
        if not seen:
            raise self.make_error("checklist", "has no check")

    def _read_item(self, key: str, check: object, source: InstructionSource) -> OctoItem:
        if not isinstance(check, dict):
            raise self.make_error(key, "is no object")
        texts = {}
        for name in ("check_id", "description", "check_type"):
            text = check.get(name)
            if not isinstance(text, str) or not text.strip():
                raise self.make_error(f"{key}.{name}", "is missing" if text is None else "is no text, or an empty one")
            texts[name] = text
        if texts["check_type"] not in CHECK_TYPES:
            problem = f"{texts['check_type'][:60]!r} is unknown"
            raise self.make_error(f"{key}.check_type", problem, f"one of {', '.join(CHECK_TYPES)}")
        return OctoItem(name=texts["check_id"], source=source, text=texts["description"], type=texts["check_type"])


_NAMES = {name.casefold(): source for name, source in {**SOURCES, **OTHER_SOURCES}.items()}

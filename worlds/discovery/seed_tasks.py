"""Seed tasks: texts of the tasks that somebody wants done, from a file."""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from core.errors import InputError

MAX_BYTES = 512 * 1024 * 1024
MAX_TASK_CHARS = 20_000
"""A longer text is not a task."""
_USER_LINE = re.compile(r"^User:\s*(.+)$", re.MULTILINE)


@dataclass(frozen=True, kw_only=True)
class SeedTask:
    """A task in the words of a user. `source` is where it stands; `license` an SPDX expression, or empty."""

    text: str
    source: str
    license: str = ""

    @property
    def id(self) -> str:
        """Hash of the text: the same task from two places is a single task."""
        return hashlib.sha256(self.text.encode(errors="replace")).hexdigest()


@dataclass(frozen=True, kw_only=True)
class SeedTasks:
    """The tasks of a file, and a line for each entry that holds none."""

    tasks: tuple[SeedTask, ...]
    problems: tuple[InputError, ...] = ()


def read_seed_tasks(path: Path) -> SeedTasks:
    """Read a file of seed tasks.

    `.txt` has a task a line, `.jsonl` a JSON value, `.json` a list of them. A value is a text or an object in the
    form of API-Bank (`input` with lines `User: ..`), ToolACE (`conversations`), OpenAI messages (`messages`), or with
    any of the fields of `TEXT_FIELDS`. The task of a conversation is the user's first turn.

    Raises:
        InputError: the file cannot be read, is not such a file, or holds no task.
    """
    text = _read_text(path)
    problems: list[InputError] = []
    tasks: list[SeedTask] = []
    for number, value in _iterate_values(path, text, problems):
        task_text = _find_text(value)
        if not task_text or len(task_text) > MAX_TASK_CHARS:
            what = f"a text of {len(task_text)} characters, which is no task" if task_text else "no task"
            problems.append(InputError(f"{path}: entry {number} holds {what}"))
            continue
        license_id = value.get("license") if isinstance(value, dict) else ""
        licensed = license_id if isinstance(license_id, str) else ""
        tasks.append(SeedTask(text=task_text, source=f"{path.name}:{number}", license=licensed))
    if not tasks:
        detail = f": {problems[0]}" if problems else ""
        raise InputError(
            f"{path} holds no seed tasks{detail}",
            advice="one a line in a .txt, or rows of API-Bank, ToolACE or {'task': ..} in a .json or .jsonl",
        )
    return SeedTasks(tasks=tuple(tasks), problems=tuple(problems))


def _read_text(path: Path) -> str:
    try:
        if path.stat().st_size > MAX_BYTES:
            raise InputError(f"{path} has more than {MAX_BYTES >> 20} MB", advice="split it")
        return path.read_text(encoding="utf-8-sig")
    except OSError as error:
        raise InputError(f"cannot read {path}: {error.strerror}", advice="name a file of seed tasks, or swe") from error
    except UnicodeDecodeError:
        raise InputError(f"{path} is no text in UTF-8", advice="convert it") from None


def _iterate_values(path: Path, text: str, problems: list[InputError]) -> Iterator[tuple[int, Any]]:
    """Yield number and value of each entry."""
    if path.suffix == ".json":
        try:
            value = json.loads(text)
        except (ValueError, RecursionError) as error:
            raise InputError(f"{path} is no JSON: {error}", advice="one JSON value a line is a .jsonl") from None
        yield from enumerate(value if isinstance(value, list) else [value], 1)
        return
    for number, line in enumerate(text.splitlines(), 1):
        if not line.strip():
            continue
        if path.suffix != ".jsonl":
            yield number, line
            continue
        try:
            yield number, json.loads(line)
        except (ValueError, RecursionError) as error:
            problems.append(InputError(f"{path}: line {number} is no JSON: {error}"))


def _find_text(value: Any) -> str:
    """Return the task in an entry, its white space joined; empty where there is none."""
    if isinstance(value, str):
        return " ".join(value.split())
    if not isinstance(value, Mapping):
        return ""
    return next((text for find in _FORMS if (text := " ".join(find(value).split()))), "")


def _find_api_bank(row: Mapping[str, Any]) -> str:
    """Return the first line of the user in API-Bank's training rows (`instruction`, `input`, `output`)."""
    given = row.get("input")
    is_row = isinstance(given, str) and ("output" in row or "expected_output" in row)
    match = _USER_LINE.search(given) if is_row and isinstance(given, str) else None
    return match[1] if match else ""


def _find_turn(row: Mapping[str, Any]) -> str:
    """Return the user's first turn: `conversations` as of ToolACE, `messages` as of OpenAI."""
    for name, speaker, content in (("conversations", "from", "value"), ("messages", "role", "content")):
        turns = row.get(name)
        for turn in turns if isinstance(turns, list) else ():
            if isinstance(turn, Mapping) and str(turn.get(speaker)).lower() in ("user", "human"):
                return turn[content] if isinstance(turn.get(content), str) else ""
    return ""


TEXT_FIELDS = ("task", "seed_task", "query", "question", "instruction", "prompt", "text")


def _find_field(row: Mapping[str, Any]) -> str:
    """Return the first of TEXT_FIELDS that holds a text; also a line of API-Bank's dialogues (`role`, `text`)."""
    if isinstance(row.get("role"), str) and row["role"].lower() not in ("user", "human"):
        return ""
    return next((row[name] for name in TEXT_FIELDS if isinstance(row.get(name), str) and row[name].strip()), "")


_FORMS: tuple[Callable[[Mapping[str, Any]], str], ...] = (_find_api_bank, _find_turn, _find_field)

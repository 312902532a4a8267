"""Mutations of a final state: wrong ends that checks should notice.

A field that the solution changed gets another value, or its first value back; an entry that it made is left out, or
made once more under another id. A mutation is *named* where the task names the value that it changes: then checks can
be expected to notice it. The task names a field of an entry if it contains the field's value, or the words of the
field's name and something of the entry (its id or another of its texts).
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from datetime import date, timedelta
from enum import StrEnum
from typing import Any

from guest.world.canonical import copy_json
from worlds.definitions import State

Path = tuple[str | int, ...]
_MISSING = object()
MIN_STEM = 4
"""Letters of a word that must be equal; shorter words must be equal as a whole."""


class MutationKind(StrEnum):
    """Change that a mutation does to a final state."""

    FIELD = "field"
    REVERTED = "reverted"
    """A field has its initial value."""
    LEFT_OUT = "left-out"
    ADDED = "added"


@dataclass(frozen=True, kw_only=True)
class StateMutation:
    """A wrong final state. `is_named`: the task names the value that differs."""

    kind: MutationKind
    path: Path
    is_named: bool
    state: State

    def __str__(self) -> str:
        return f"{self.kind.value} {'.'.join(map(str, self.path))}"


class TaskWords:
    """Words of a task, compared without endings."""

    def __init__(self, task: str) -> None:
        self._text = task.casefold()
        self._words = re.findall(r"[^\W_]+", self._text)

    def has_value(self, value: Any) -> bool:
        """Return whether the task contains a value: a number or a text as a whole, or the words of a text."""
        if value is None or isinstance(value, bool | list | dict):
            return False
        text = str(value).casefold()
        if not text:
            return False
        if re.search(rf"(?<![\w.-]){re.escape(text)}(?![\w-]|\.\w)", self._text):
            return True
        words = re.findall(r"[^\W_]+", text)
        return isinstance(value, str) and len(words) == 1 and text.isalpha() and self._has_word(text)

    def has_name(self, name: str) -> bool:
        """Return whether the task contains the words of a field's name, `id` and `is` apart."""
        words = [word for word in name.casefold().split("_") if word not in ("id", "ids", "is", "has", "on", "at")]
        return bool(words) and all(self._has_word(word) for word in words)

    def _has_word(self, word: str) -> bool:
        stem = word[: max(MIN_STEM, len(word) - 3)]
        return any(known.startswith(stem) if len(word) >= MIN_STEM else known == word for known in self._words)


def list_mutations(initial: State, final: State, task: str) -> list[StateMutation]:
    """Return the mutations of a final state, in the order of the state.

    Args:
        initial: initial state.
        final: state after the solution.
        task: text of the task.
    """
    words = TaskWords(task)
    mutations = []
    for path in _iterate_changed_leaves(initial, final, ()):
        is_named = _is_named(path, final, words)
        before, after = _get(initial, path), _get(final, path)
        other = _make_other(after)
        mutations.append(_replace(MutationKind.FIELD, final, path, other, is_named))
        if before is not _MISSING and before != other:
            mutations.append(_replace(MutationKind.REVERTED, final, path, before, is_named))
    for path in _iterate_new_entries(initial, final):
        leaves = [(*path, *rest) for rest in _iterate_leaves(_get(final, path))]
        is_named = any(words.has_value(_get(final, leaf)) for leaf in leaves)
        mutations.append(_remove(final, path, is_named))
        mutations.append(_add(final, path))
    return mutations


def _iterate_changed_leaves(initial: Any, final: Any, path: Path) -> Iterator[Path]:
    """Yield the paths of values that differ from those of the initial state or are not in it."""
    if isinstance(final, dict) and final:
        for key, item in final.items():
            before = initial.get(key, _MISSING) if isinstance(initial, dict) else _MISSING
            yield from _iterate_changed_leaves(before, item, (*path, key))
    elif isinstance(final, list) and final and any(isinstance(item, dict | list) for item in final):
        for number, item in enumerate(final):
            known = isinstance(initial, list) and item in initial
            yield from () if known else _iterate_changed_leaves(_MISSING, item, (*path, number))
    elif final != initial or isinstance(final, bool) is not isinstance(initial, bool):
        yield path


def _iterate_new_entries(initial: State, final: State) -> Iterator[Path]:
    """Yield the paths of entries, dicts in a dict or a list, that the initial state does not have."""
    for name, container in final.items():
        before = initial.get(name)
        if isinstance(container, dict) and isinstance(before, dict):
            yield from ((name, key) for key in container if key not in before and isinstance(container[key], dict))
        elif isinstance(container, list) and isinstance(before, list):
            yield from ((name, number) for number, item in enumerate(container) if item not in before)


def _iterate_leaves(value: Any) -> Iterator[Path]:
    if isinstance(value, dict):
        for key, item in value.items():
            yield from ((key, *rest) for rest in _iterate_leaves(item))
    else:
        yield ()


def _is_named(path: Path, final: State, words: TaskWords) -> bool:
    value = _get(final, path)
    if any(words.has_value(item) for item in (value if isinstance(value, list) else [value])):
        return True
    name = next(part for part in reversed(path) if isinstance(part, str))
    if not words.has_name(name) or value in path[:-1]:  # an entry's own id, which the world made
        return False
    entry = _get(final, path[:2]) if len(path) > 2 else None
    texts = [text for text in entry.values() if isinstance(text, str)] if isinstance(entry, dict) else []
    return len(path) == 1 or any(words.has_value(text) for text in (str(path[1]), *texts))


def _make_other(value: Any) -> Any:
    """Return another value of the same type."""
    match value:
        case bool():
            return not value
        case int() | float():
            return value + 1
        case list():
            return value[:-1] if value else ["other"]
        case str():
            return _make_other_text(value)
    return {"other": "other"} if isinstance(value, dict) else "other"


def _make_other_text(value: str) -> str:
    try:
        return (date.fromisoformat(value) + timedelta(days=1)).isoformat()
    except ValueError:
        return f"{value} other".strip()


def _replace(kind: MutationKind, final: State, path: Path, value: Any, is_named: bool) -> StateMutation:
    state = copy_json(final)
    _get(state, path[:-1])[path[-1]] = copy_json(value)
    return StateMutation(kind=kind, path=path, is_named=is_named, state=state)


def _remove(final: State, path: Path, is_named: bool) -> StateMutation:
    state = copy_json(final)
    del _get(state, path[:-1])[path[-1]]
    return StateMutation(kind=MutationKind.LEFT_OUT, path=path, is_named=is_named, state=state)


def _add(final: State, path: Path) -> StateMutation:
    """Return the state with an entry once more; the task does not name the entry that it did not want."""
    state = copy_json(final)
    container, key = _get(state, path[:-1]), path[-1]
    if isinstance(container, list):
        container.append(copy_json(container[int(key)]))
    else:
        other = f"{key}-other"
        container[other] = {name: other if value == key else value for name, value in copy_json(container[key]).items()}
    return StateMutation(kind=MutationKind.ADDED, path=path, is_named=False, state=state)


def _get(value: Any, path: Path) -> Any:
    for part in path:
        is_key = isinstance(value, Mapping) and part in value
        is_index = isinstance(value, list) and isinstance(part, int) and part < len(value)
        if not is_key and not is_index:
            return _MISSING
        value = value[part]
    return value

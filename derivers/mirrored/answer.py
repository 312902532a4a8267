"""Answer of the model: a bug as replacements in source files, new test files, and the issue for this project."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from pydantic import BaseModel, ConfigDict

_STRICT = ConfigDict(frozen=True, use_attribute_docstrings=True, json_schema_extra={"additionalProperties": False})


class MirroredEdit(BaseModel):
    """A replacement in a source file."""

    model_config = _STRICT
    path: str
    """Path of a source file that exists."""
    search: str
    """Whole lines of the file, copied character by character, that occur in it exactly once."""
    replace: str
    """The lines that take their place."""


class MirroredTestFile(BaseModel):
    """A new test file."""

    model_config = _STRICT
    path: str
    """Path relative to the root of the repository; the file does not exist yet."""
    content: str
    """The whole file."""


class MirrorAnswer(BaseModel):
    """An issue of another project, made again in this one."""

    model_config = _STRICT
    edits: list[MirroredEdit]
    """The bug. Empty where the issue has no counterpart in this project."""
    title: str
    """Title of the issue, as a user of this project would write it."""
    text: str
    """Text of the issue, Markdown."""
    files: list[MirroredTestFile]
    """One to three new test files that fail with the bug and pass without it."""


class EditError(Exception):
    """An edit cannot be made; the text is the reason."""


def apply_edits(edits: Sequence[MirroredEdit], sources: Mapping[str, bytes]) -> dict[str, bytes]:
    """Return path -> content after the edits, of the files that they change.

    Args:
        edits: replacements, made one after the other.
        sources: path -> content of the files before.

    Raises:
        EditError: a text does not occur in its file exactly once.
    """
    changed: dict[str, bytes] = {}
    for edit in edits:
        content, search = changed.get(edit.path, sources[edit.path]), edit.search.encode()
        number = content.count(search) if search.strip() else 0
        if number != 1:
            beginning = edit.search.strip().partition("\n")[0][:80]
            raise EditError(f"{edit.path}: the text of `search` occurs {number} times, not once: {beginning!r}")
        changed[edit.path] = content.replace(search, edit.replace.encode(errors="replace"))
    return changed


def join_statement(answer: MirrorAnswer) -> str:
    """Return the problem statement: title, empty line, text."""
    return f"{answer.title.strip()}\n\n{answer.text.strip()}\n"

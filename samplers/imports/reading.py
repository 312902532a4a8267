"""Files of rollouts of others: a JSON document, or one row a line."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

from core.errors import InputError
from core.files import read_input
from samplers.imports.foreign import ForeignFormatError, ForeignRollout
from samplers.imports.formats import READERS, Document, detect_format

AUTO = "auto"


def read_foreign_file(
    path: Path, format_name: str = AUTO
) -> Iterator[tuple[int, str, ForeignRollout | ForeignFormatError]]:
    """Yield line (0 for the whole file), format, and a rollout or why it is none.

    Raises:
        InputError: the file cannot be read.
    """
    try:
        text = read_input(path).decode("utf-8-sig")
    except (OSError, UnicodeDecodeError) as error:
        raise InputError(f"cannot read {path}: {getattr(error, 'strerror', None) or 'it is no text'}") from error
    whole = _parse_object(text)
    rows = [(0, whole)] if whole is not None else list(_split_lines(text))
    for line, document in rows:
        name = format_name
        try:
            name = detect_format(document) if format_name == AUTO else format_name
            yield line, name, replace(_read(document, name, path), line=line)
        except ForeignFormatError as error:
            yield line, name, error


def _read(document: Document, format_name: str, path: Path) -> ForeignRollout:
    try:
        return READERS[format_name](document, path)
    except KeyError as error:
        raise ForeignFormatError(f"it is not what {format_name} requires: `{error.args[0]}` is missing") from error
    except (TypeError, ValueError, AttributeError, IndexError) as error:
        reason = "a field has another type"
        raise ForeignFormatError(f"it is not what {format_name} requires: {reason}") from error


def _parse_object(text: str) -> Document | None:
    try:
        value = json.loads(text)
    except (ValueError, RecursionError):
        return None
    return value if isinstance(value, dict) else None


def _split_lines(text: str) -> Iterator[tuple[int, Document]]:
    """Yield the rows by line; a row that is not a JSON object is an empty row, which is of no format."""
    for number, line in enumerate(text.split("\n"), 1):
        if line.strip():
            yield number, _parse_object(line) or {}

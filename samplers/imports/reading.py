"""Files of rollouts of others: a JSON document, or rows in any form of `core.json_files`."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import replace
from itertools import chain, islice
from pathlib import Path
from typing import Any

from core.json_files import JsonRow, read_documents, split_document
from samplers.imports.foreign import ForeignFormatError, ForeignRollout
from samplers.imports.formats import PREDICTIONS, READERS, Document, detect_format
from samplers.imports.predictions import is_prediction, name_prediction

AUTO = "auto"
_PATCH_MARKS = ("diff --git ", "--- ", "Index: ")
"""Beginnings of a patch."""


def read_foreign_file(
    path: Path, format_name: str = AUTO
) -> Iterator[tuple[int, str, ForeignRollout | ForeignFormatError]]:
    """Yield line or position in a list (0 for the whole file), format, and a rollout or why it is none.

    Raises:
        InputError: the file cannot be read.
    """
    for line, row in _read_rows(path, format_name):
        name = format_name
        if row.problem:
            yield line, name, ForeignFormatError(row.problem)
            continue
        try:
            name = detect_format(row.value) if format_name == AUTO else format_name
            yield line, name, replace(_read(row.value, name, path), line=line)
        except ForeignFormatError as error:
            yield line, name, error


def _read_rows(path: Path, format_name: str) -> Iterator[tuple[int, JsonRow]]:
    """Yield the rows of a file, each an object or a problem, with their numbers; 0 for one that is the whole file."""

    def is_document(value: dict[str, Any]) -> bool:
        if format_name == PREDICTIONS:
            return is_prediction(value)
        return format_name != AUTO or not _are_predictions(value)

    documents = read_documents(path)
    first = list(islice(documents, 2))
    for document in chain(first, documents):
        for row in split_document(document, is_document):
            is_whole = len(first) == 1 and not row.position and isinstance(row.value, dict)
            yield 0 if is_whole else row.number, name_prediction(row)


def _are_predictions(document: Mapping[str, Any]) -> bool:
    """Return whether each value of an object is a prediction: a row, a patch or null."""
    return not is_prediction(document) and all(
        is_prediction(value)
        if isinstance(value, dict)
        else value is None or (isinstance(value, str) and (not value.strip() or value.startswith(_PATCH_MARKS)))
        for value in document.values()
    )


def _read(document: Document, format_name: str, path: Path) -> ForeignRollout:
    try:
        return READERS[format_name](document, path)
    except KeyError as error:
        raise ForeignFormatError(f"it is not what {format_name} requires: `{error.args[0]}` is missing") from error
    except (TypeError, ValueError, AttributeError, IndexError) as error:
        reason = "a field has another type"
        raise ForeignFormatError(f"it is not what {format_name} requires: {reason}") from error

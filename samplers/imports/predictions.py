"""Rows of predictions in any form of their files: the task that each of them names, and its submission.

A file has JSON lines, a list, or an object of rows or patches by instance id (`preds.json` of SWE-agent and
mini-swe-agent); see `core.json_files`.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from core.errors import InputError
from core.json_files import JsonRow, read_rows
from core.text import encode_json_text

FORMS: Mapping[str, str] = {
    "model_patch": "patch",
    "patch": "patch",
    "tests": "tests",
    "review": "review",
    "rollout": "rollout",
}
"""Field of a row -> form of the submission."""
DOCUMENTS: Mapping[str, Mapping[str, Any]] = {
    "review": {},
    "rollout": {"sort_keys": True, "separators": (",", ":")},  # as `evaluation.instructions.submission` writes them
}
"""Form of submissions that may be JSON instead of a text -> arguments of `json.dumps` that make the text of it."""
NAMES = ("instance_id", "task")
"""Fields that may name the task, in their order."""
MODEL = "model_name_or_path"


@dataclass(frozen=True, kw_only=True)
class PredictionFields:
    """Content of a row. `instance`: the task as the row names it; `content`: None for the no-op."""

    instance: str
    model: str
    form: str
    content: bytes | None


def read_prediction_rows(path: Path) -> Iterator[JsonRow]:
    """Yield the rows of a file of predictions, each an object that names its task if its key does; or a problem.

    Raises:
        InputError: the file cannot be read, or a line or document is too long.
    """
    return map(name_prediction, read_rows(path, is_prediction, noun="the predictions"))


def is_prediction(document: Mapping[str, Any]) -> bool:
    """Return whether an object has a field of a prediction itself, and is no object of rows by name."""
    given = [name for name in (*NAMES, *FORMS, MODEL) if name in document]
    return any(name in DOCUMENTS or not isinstance(document[name], dict) for name in given)


def name_prediction(row: JsonRow) -> JsonRow:
    """Return a row as an object with the name that is its key; a text or null is the patch of its key."""
    if row.problem or (row.key is None and isinstance(row.value, dict)):
        return row
    if row.key is not None and (row.value is None or isinstance(row.value, str)):
        return replace(row, value={NAMES[0]: row.key, "model_patch": row.value})
    if row.key is None or not isinstance(row.value, dict):
        what = "it is" if row.key is None else f"the value of {row.key[:200]!r} is"
        return replace(row, value=None, problem=f"{what} not a JSON object")
    named = {name: row.value[name] for name in NAMES if row.value.get(name) is not None}
    if NAMES[0] in named and row.key not in named.values():
        return replace(row, value=None, problem=f"its key is {row.key[:200]!r}, but it has another instance_id")
    return replace(row, value=row.value if named else {**row.value, NAMES[0]: row.key})


def read_fields(row: Mapping[str, Any]) -> PredictionFields:
    """Return the content of a row.

    Raises:
        InputError: it names no task, or does not have one submission.
    """
    name = next((row[field] for field in NAMES if row.get(field) is not None), None)
    if not isinstance(name, str) or not name:
        raise InputError(f"it has no text {' or '.join(NAMES)}")
    field = select_form(row)
    model = row.get(MODEL)
    content = encode_submission(FORMS[field], row[field])
    return PredictionFields(
        instance=name, model=model if isinstance(model, str) else "", form=FORMS[field], content=content
    )


def select_form(row: Mapping[str, Any]) -> str:
    """Return the field of a row with its submission: the one that is not null, else the only one.

    Raises:
        InputError: there is none, or there are several.
    """
    given = [field for field in FORMS if field in row]
    fields = [field for field in given if row[field] is not None] or given
    if len({(FORMS[field], json.dumps(row[field])) for field in fields}) != 1:
        raise InputError(f"it needs exactly one of {', '.join(list(FORMS)[:-1])} and {list(FORMS)[-1]}")
    return fields[0]


def encode_submission(form: str, value: object) -> bytes | None:
    """Return the content of a submission in JSON; None for the no-op. A review or rollout may be JSON.

    Raises:
        InputError: the value is neither a text nor null.
    """
    if form in DOCUMENTS and isinstance(value, dict | list):
        value = json.dumps(value, **DOCUMENTS[form])
    if value is not None and not isinstance(value, str):
        raise InputError(f"the {form} is not a text")
    return encode_json_text(value) if value and value.strip() else None

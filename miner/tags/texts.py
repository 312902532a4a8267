"""Tag the texts in a file: commit messages, pull requests or issues, a row each."""

from __future__ import annotations

import csv
import io
import json
import sys
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from core.errors import InputError
from core.files import open_input
from miner.tags.issues import extract_issue_features
from miner.tags.tag import tag_text
from miner.tags.weights import load_model
from miner.tags.words import split_message

ISSUE_KINDS = ("bug", "feature", "question")
ID_FIELDS = ("id", "instance_id", "sha", "commit", "number")
"""Fields that name a row; the first field present is used."""
_REQUIRED_FIELDS = "a row needs message, or title (with body and labels, if there are any)"


def tag_file(path: Path) -> Iterator[dict[str, Any] | InputError]:
    """Yield the tags of each row of a CSV file with a header, or of a file with a JSON object on each line.

    Args:
        path: fields read are `message` (a whole commit message), else `title`, `body` and `labels` (a list, or words
            separated by commas). Others are ignored.

    Yields:
        `row` (1-based, the header not counted), `name`, `change_kinds` (with confidence and evidence), `activities`,
        and for rows with a title `issue`: the kind of issue it would be; for an unusable row, the error.

    Raises:
        InputError: the file cannot be read.
    """
    try:
        rows = list(_read_rows(path))
    except (OSError, UnicodeDecodeError, csv.Error) as error:
        raise InputError(f"cannot read {path}: {error}") from error
    for number, row in enumerate(rows, 1):
        if not isinstance(row, Mapping) or not (row.get("message") or row.get("title")):
            yield InputError(f"{path}, row {number}: no text", advice=_REQUIRED_FIELDS)
        else:
            yield {"row": number, "name": next((row[key] for key in ID_FIELDS if row.get(key)), None), **_tag_row(row)}


def classify_issue(title: str, body: str) -> tuple[str, dict[str, float]]:
    """Return bug, feature or question by an issue's words, and the log odds of each."""
    features = extract_issue_features(title, body)
    odds = {name: round(load_model(f"issue-{name}").compute_log_odds(features), 3) for name in ISSUE_KINDS}
    return max(odds, key=lambda name: odds[name]), odds


def _tag_row(row: Mapping[str, Any]) -> dict[str, Any]:
    if row.get("message"):
        title, body = split_message(str(row["message"]))
    else:
        title, body = str(row["title"]), str(row.get("body") or "")
    labels = row.get("labels") or ()
    kinds, activities = tag_text(title, body, labels.split(",") if isinstance(labels, str) else [*map(str, labels)])
    tags: dict[str, Any] = {
        "change_kinds": [kind.model_dump(mode="json") for kind in kinds],
        "activities": [activity.value for activity in activities],
    }
    if not row.get("message"):
        kind, odds = classify_issue(title, body)
        tags["issue"] = {"kind": kind, "odds": odds}
    return tags


def _read_rows(path: Path) -> Iterator[Any]:
    with io.TextIOWrapper(open_input(path), encoding="utf-8", newline="") as lines:
        if path.suffix.lower() != ".csv":
            yield from (_parse_line(line) for line in lines if line.strip())
            return
        csv.field_size_limit(sys.maxsize)
        yield from csv.DictReader(lines)


def _parse_line(line: str) -> Any:
    try:
        return json.loads(line)
    except json.JSONDecodeError:
        return None

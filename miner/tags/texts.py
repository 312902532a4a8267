"""Tags of texts in a file of somebody else's: commit messages, pull requests or issues, one a row."""

from __future__ import annotations

import csv
import json
import sys
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from mergemill.errors import InputError
from miner.tags.issues import issue_features
from miner.tags.tag import tag_text
from miner.tags.weights import learned
from miner.tags.words import message_parts

ISSUE_KINDS = ("bug", "feature", "question")
NAMES = ("id", "instance_id", "sha", "commit", "number")
"""Fields that name a row, the first that is there."""
_NEEDED = "a row needs message, or title (with body and labels, if there are any)"


def tag_file(path: Path) -> Iterator[dict[str, Any] | InputError]:
    """The tags of each row of a CSV file with a header, or of a file with a JSON object on each line.

    Args:
        path: fields read are `message` (a whole commit message), else `title`, `body` and `labels` (a list, or words
            with commas between them). Others are left alone.

    Yields:
        `row` (1-based, the header not counted), `name`, `kinds` (each with confidence and signs), `activities`, and for
        rows with a title `issue`: what kind of issue it would be; for a row that cannot be used, the error.

    Raises:
        InputError: the file cannot be read.
    """
    try:
        rows = list(_rows(path))
    except (OSError, UnicodeDecodeError, csv.Error) as error:
        raise InputError(f"cannot read {path}: {error}") from error
    for number, row in enumerate(rows, 1):
        if not isinstance(row, Mapping) or not (row.get("message") or row.get("title")):
            yield InputError(f"{path}, row {number}: no text", advice=_NEEDED)
        else:
            yield {"row": number, "name": next((row[key] for key in NAMES if row.get(key)), None), **_tags_of(row)}


def issue_kind(title: str, body: str) -> tuple[str, dict[str, float]]:
    """Bug, feature or question, by an issue's words, and the logarithm of the odds of each."""
    found = issue_features(title, body)
    odds = {name: round(learned(f"issue-{name}").odds(found), 3) for name in ISSUE_KINDS}
    return max(odds, key=lambda name: odds[name]), odds


def _tags_of(row: Mapping[str, Any]) -> dict[str, Any]:
    if row.get("message"):
        title, body = message_parts(str(row["message"]))
    else:
        title, body = str(row["title"]), str(row.get("body") or "")
    labels = row.get("labels") or ()
    kinds, activities = tag_text(title, body, labels.split(",") if isinstance(labels, str) else [*map(str, labels)])
    told: dict[str, Any] = {
        "kinds": [one.model_dump(mode="json") for one in kinds], "activities": [one.value for one in activities],
    }  # fmt: skip
    if not row.get("message"):
        kind, odds = issue_kind(title, body)
        told["issue"] = {"kind": kind, "odds": odds}
    return told


def _rows(path: Path) -> Iterator[Any]:
    with path.open(encoding="utf-8", newline="") as lines:
        if path.suffix.lower() != ".csv":
            yield from (_parsed(line) for line in lines if line.strip())
            return
        csv.field_size_limit(sys.maxsize)
        yield from csv.DictReader(lines)


def _parsed(line: str) -> Any:
    try:
        return json.loads(line)
    except json.JSONDecodeError:
        return None

"""Rows of questions are read again: a walk and a first question each, which wait for the gates."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from core.files import read_text
from core.validation import describe_invalid
from explorers.corpora.pages import PageProblem
from taskdb.records.questions import AnswerType, Clue


class ImportedQuestion(BaseModel):
    """A row of the format `jsonl`; fields that it does not need are ignored."""

    model_config = ConfigDict(extra="ignore")

    name: str = ""
    question: str = Field(min_length=1)
    answer: str = Field(min_length=1)
    aliases: list[str] = Field(default_factory=list)
    answer_type: AnswerType = AnswerType.NAME
    answer_page: str
    clues: list[Clue] = Field(min_length=1)


def read_question_rows(path: Path) -> Iterator[ImportedQuestion | PageProblem]:
    """Yield the rows of a file of JSON lines, and the problems of those that are no question.

    Raises:
        InputError: the file cannot be read.
    """
    lines = read_text(path, f"the questions {path} cannot be read").split("\n")
    for number, line in enumerate(lines, 1):
        if line.strip():
            yield _read_row(line, f"{path.name}:{number}")


def _read_row(line: str, place: str) -> ImportedQuestion | PageProblem:
    try:
        row: Any = json.loads(line)
    except ValueError:
        return PageProblem(place=place, detail="no JSON")
    try:
        return ImportedQuestion.model_validate(row)
    except ValidationError as error:
        return PageProblem(place=place, detail=describe_invalid(error.errors(), "the row"))

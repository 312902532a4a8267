"""Card of a data set (`README.md`): front matter for the Hugging Face hub, a title, and sections of Markdown.

The content that the sections hold is specific to a source, so each stage makes a Card of its own facts and
`render_card` writes it.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import yaml

from core.text import format_count
from training_data import hub

ENGLISH = ("en",)


@dataclass(frozen=True)
class Section:
    """A section: its heading, empty for the text that stands below the title, and its paragraphs.

    Empty ones are skipped.
    """

    heading: str
    paragraphs: Sequence[str]


@dataclass(frozen=True, kw_only=True)
class Card:
    """Content that a card holds."""

    title: str
    tags: Sequence[str]
    licenses: Iterable[str]
    """SPDX ids of the rows."""
    rows: int
    sections: Sequence[Section]
    languages: Sequence[str] = ENGLISH
    """Languages of the text; empty where they are not known."""
    environment: str | Sequence[str] | None = None
    """Where the tools of the rows ran; None where the card has no such entry."""
    data_files: Mapping[str, str] | None = None
    """Split -> files of its rows; None where the folder is not a data set."""


def render_card(card: Card) -> str:
    """Return the text of a card."""
    front: dict[str, Any] = {
        "pretty_name": card.title,
        "license": hub.name_licenses(list(card.licenses) or [""]),
        "task_categories": ["text-generation"],
    }
    if card.languages:
        front["language"] = list(card.languages)
    front["tags"] = list(card.tags)
    if card.environment is not None:
        front["environment"] = card.environment if isinstance(card.environment, str) else list(card.environment)
    front["size_categories"] = [hub.name_size(card.rows)]
    if card.data_files is not None:
        files = [{"split": split, "path": path} for split, path in card.data_files.items()]
        front["configs"] = [{"config_name": "default", "data_files": files}]
    blocks = [f"# {card.title}"]
    for section in card.sections:
        paragraphs = [paragraph for paragraph in section.paragraphs if paragraph]
        if paragraphs:
            blocks += [f"## {section.heading}"] if section.heading else []
            blocks += paragraphs
    body = "\n\n".join(blocks)
    return f"---\n{yaml.safe_dump(front, sort_keys=False)}---\n{body}\n"


def render_table(header: Sequence[str], rows: Iterable[Sequence[object]], *, numbers: Sequence[str] = ()) -> str:
    """Return a Markdown table.

    Args:
        header: titles of the columns.
        rows: cells; text that is not the program's own must be made harmless before.
        numbers: titles of the columns that are aligned to the right.
    """
    rule = ["---:" if title in numbers else "---" for title in header]
    return "\n".join(f"| {' | '.join(map(str, cells))} |" for cells in (header, rule, *rows))


def make_left_out_section(left_out: Mapping[str, int], noun: str) -> Section:
    """Return the section of the rows that a format does not hold; `left_out`: reason -> number of `noun`."""
    lines = [f"- {format_count(number, noun)} left out: {reason}" for reason, number in left_out.items()]
    return Section("Left out", ["\n".join(lines)])

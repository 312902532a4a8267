"""Readers: a folder of documents or a file of rows -> pages. Each file or row without a page is a problem."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any

from core.errors import InputError
from core.files import open_input
from explorers.corpora.markup import Document, clean_text, read_html, read_markdown, read_text
from explorers.corpora.pages import NO_ASSERTION, Page, PageProblem

READERS: Mapping[str, Callable[[str], Document]] = {
    ".html": read_html,
    ".htm": read_html,
    ".md": read_markdown,
    ".markdown": read_markdown,
    ".txt": read_text,
}
"""Suffix of a file -> its reader."""
ROWS_SUFFIX = ".jsonl"


def read_pages(path: Path, license_id: str = NO_ASSERTION) -> Iterator[Page | PageProblem]:
    """Yield the pages of a folder (files by path) or of a file of rows, and the problems of those without a page.

    Args:
        path: folder, or file of JSON lines.
        license_id: SPDX expression of pages that name no licence.

    Raises:
        InputError: there is no such folder or file, or it cannot be read.
    """
    if path.is_dir():
        yield from _read_folder(path, license_id)
    elif path.suffix == ROWS_SUFFIX and path.exists():
        yield from _read_rows(path, license_id)
    else:
        raise InputError(f"{path} is no folder and no file {ROWS_SUFFIX}", advice="name a folder, rows, or `changes`")


def _read_folder(folder: Path, license_id: str) -> Iterator[Page | PageProblem]:
    for path in sorted(path for path in folder.rglob("*") if path.is_file()):
        name = path.relative_to(folder).as_posix()
        if path.name.startswith("."):
            continue
        if path.suffix.lower() == ROWS_SUFFIX:
            yield from _read_rows(path, license_id, name)
        elif reader := READERS.get(path.suffix.lower()):
            yield _read_document(path, name, reader, license_id)
        else:
            yield PageProblem(place=name, detail=f"no page: {path.suffix or 'a file without a suffix'} is not read")


def _read_document(path: Path, name: str, reader: Callable[[str], Document], license_id: str) -> Page | PageProblem:
    try:
        document = reader(path.read_bytes().decode("utf-8"))
    except UnicodeDecodeError:
        return PageProblem(place=name, detail="not UTF-8")
    except OSError as error:
        return PageProblem(place=name, detail=f"cannot be read: {error.strerror}")
    if not document.text:
        return PageProblem(place=name, detail="a page without text")
    return Page(
        id=name,
        url=document.url or name,
        title=document.title or path.stem,
        text=document.text,
        links=document.links,
        date=document.date,
        license=document.license or license_id,
    )


def _read_rows(path: Path, license_id: str, name: str = "") -> Iterator[Page | PageProblem]:
    try:
        with open_input(path) as lines:
            for number, line in enumerate(lines, 1):
                if line.strip():
                    yield _read_row(line, f"{name or path.name}:{number}", license_id)
    except OSError as error:
        raise InputError(f"{path} cannot be read: {error.strerror}") from error


def _read_row(line: bytes, place: str, license_id: str) -> Page | PageProblem:
    """Return the page of a row; `title`, `url`, `links`, `date`, `license` and `attributes` may be missing."""
    try:
        row = json.loads(line)
    except ValueError:
        return PageProblem(place=place, detail="no JSON")
    if problem := _find_row_problem(row):
        return PageProblem(place=place, detail=problem)
    text = clean_text(row["text"])
    if not text:
        return PageProblem(place=place, detail="a page without text")
    return Page(
        id=str(row["id"]),
        url=row.get("url") or str(row["id"]),
        title=row.get("title") or text.partition("\n")[0][:200],
        text=text,
        links=tuple(row.get("links") or ()),
        date=row.get("date") or "",
        license=row.get("license") or license_id,
        attributes={name: tuple(values) for name, values in (row.get("attributes") or {}).items()},
    )


def _find_row_problem(row: Any) -> str:
    """Return the problem with the fields of a row; empty for none."""
    if not isinstance(row, dict):
        return "no JSON object"
    if not isinstance(row.get("id"), str | int) or isinstance(row.get("id"), bool) or row["id"] == "":
        return "no id"
    return _find_field_problem(row) if isinstance(row.get("text"), str) else "no text"


def _find_field_problem(row: Mapping[str, Any]) -> str:
    texts = [row[name] for name in ("url", "title", "date", "license") if row.get(name) is not None]
    links = row.get("links") or []
    if not all(isinstance(text, str) for text in texts):
        return "url, title, date and license are texts"
    if not isinstance(links, list) or not all(isinstance(link, str) for link in links):
        return "links is no list of texts"
    attributes = row.get("attributes") or {}
    if not isinstance(attributes, dict) or not all(
        isinstance(values, list) and all(isinstance(value, str) for value in values) for values in attributes.values()
    ):
        return "attributes is no object of lists of texts"
    return ""

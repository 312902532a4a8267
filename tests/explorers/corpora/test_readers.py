"""Readers of HTML, Markdown, text and rows; files and rows without a page are named, the others are kept."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from core.errors import InputError
from explorers.corpora.corpus import write_corpus
from explorers.corpora.pages import Page, PageProblem
from explorers.corpora.readers import read_pages
from explorers.search.tokens import Tokenizer

HTML = """<html><head><title>Ada  Lovelace</title><meta name="date" content="2021-05-01">
<link rel="license" href="https://creativecommons.org/licenses/by-sa/4.0/"></head>
<body><script>var x = 1;</script><p>Ada Lovelace was born in 1815 in London &amp; died in 1852.</p>
<p>She wrote about <a href="engine.md">the engine</a>.</p></body></html>"""
MARKDOWN = """---
title: The engine
license: MIT
---
# Heading

The *Analytical* Engine, see [Ada](ada.html).

| year | step |
|---|---|
| 1837 | plan |

```
code
```
"""


def read_folder(folder: Path) -> dict[str, Page | PageProblem]:
    return {page.id if isinstance(page, Page) else page.place: page for page in read_pages(folder)}


def test_a_folder_gives_a_page_for_each_readable_file(tmp_path: Path) -> None:
    (tmp_path / "sub").mkdir()
    (tmp_path / "ada.html").write_text(HTML)
    (tmp_path / "sub" / "engine.md").write_text(MARKDOWN)
    (tmp_path / "note.txt").write_text("First line\nmore\n")
    (tmp_path / "photo.png").write_bytes(b"\x89PNG")
    (tmp_path / "empty.txt").write_text(" \n")
    (tmp_path / "latin.txt").write_bytes(b"caf\xe9")
    pages = read_folder(tmp_path)
    ada, engine, note = pages["ada.html"], pages["sub/engine.md"], pages["note.txt"]
    assert isinstance(ada, Page)
    assert isinstance(engine, Page)
    assert isinstance(note, Page)
    assert (ada.title, ada.license, ada.date, ada.links) == (
        "Ada Lovelace",
        "CC-BY-SA-4.0",
        "2021-05-01",
        ("engine.md",),
    )
    assert "born in 1815 in London & died in 1852." in ada.text
    assert "var x" not in ada.text
    assert (engine.title, engine.license, engine.links) == ("The engine", "MIT", ("ada.html",))
    assert engine.text == "Heading\n\nThe Analytical Engine, see Ada.\n\nyear | step\n\n1837 | plan\n\ncode"
    assert (note.title, note.license) == ("First line", "NOASSERTION")
    problems = {name: page.detail for name, page in pages.items() if isinstance(page, PageProblem)}
    assert problems == {
        "empty.txt": "a page without text",
        "latin.txt": "not UTF-8",
        "photo.png": "no page: .png is not read",
    }


@pytest.mark.parametrize(
    ("row", "problem"),
    [
        ("{", "no JSON"),
        ("[]", "no JSON object"),
        ('{"text": "a"}', "no id"),
        ('{"id": "", "text": "a"}', "no id"),
        ('{"id": true, "text": "a"}', "no id"),
        ('{"id": "a"}', "no text"),
        ('{"id": "a", "text": ["b"]}', "no text"),
        ('{"id": "a", "text": " "}', "a page without text"),
        ('{"id": "a", "text": "b", "title": 3}', "url, title, date and license are texts"),
        ('{"id": "a", "text": "b", "links": "c"}', "links is no list of texts"),
        ('{"id": "a", "text": "b", "attributes": {"c": "d"}}', "attributes is no object of lists of texts"),
    ],
)
def test_a_bad_row_is_named_and_the_others_are_kept(row: str, problem: str, tmp_path: Path) -> None:
    path = tmp_path / "pages.jsonl"
    path.write_text(f'{row}\n\n{{"id": 7, "text": "kept words"}}\n')
    bad, kept = read_pages(path, "MIT")
    assert bad == PageProblem(place="pages.jsonl:1", detail=problem)
    assert isinstance(kept, Page)
    assert (kept.id, kept.url, kept.title, kept.license) == ("7", "7", "kept words", "MIT")


def test_pages_come_back_from_their_lines() -> None:
    page = Page(id="a", url="u", title="t", text="x\ny", links=("b",), date="2020", attributes={"type": ("issue",)})
    assert Page.from_json(json.loads(page.format_line())) == page
    assert "attributes" not in Page(id="a", url="u", title="t", text="x").to_json()


def test_a_duplicate_id_and_a_page_without_words_are_problems(tmp_path: Path) -> None:
    path = tmp_path / "pages.jsonl"
    rows = [{"id": "a", "text": "first"}, {"id": "a", "text": "second"}, {"id": "b", "text": "!!!"}]
    path.write_text("".join(json.dumps(row) + "\n" for row in rows))
    written = write_corpus(read_pages(path), tmp_path / "store", Tokenizer())
    assert written.n_pages == 1
    assert [problem.format_line() for problem in written.problems] == [
        "a: a duplicate id: its first page is kept",
        "b: a page without words",
    ]


@pytest.mark.parametrize("name", ["missing", "file.txt"])
def test_what_is_neither_folder_nor_rows_is_refused(name: str, tmp_path: Path) -> None:
    (tmp_path / "file.txt").write_text("x")
    with pytest.raises(InputError, match="no folder and no file"):
        list(read_pages(tmp_path / name))


def test_a_corpus_without_a_page_is_refused_with_its_first_problem(tmp_path: Path) -> None:
    (tmp_path / "in").mkdir()
    (tmp_path / "in" / "a.txt").write_text("")
    with pytest.raises(InputError, match=r"no page: a\.txt: a page without text"):
        write_corpus(read_pages(tmp_path / "in"), tmp_path / "store", Tokenizer())

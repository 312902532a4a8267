"""Title, text and links of a document in HTML, Markdown or plain text."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from html.parser import HTMLParser

from markdown_it import MarkdownIt
from markdown_it.token import Token

_BLANK_LINES = re.compile(r"\n{3,}")
_FRONT_MATTER = re.compile(r"\A---\n(.*?)\n---\n", re.DOTALL)
_FIELD = re.compile(r"^(title|date|license|url):\s*[\"']?(.*?)[\"']?\s*$", re.MULTILINE)


@dataclass(frozen=True, kw_only=True)
class Document:
    """Parts of a document; all but the text may be empty."""

    title: str
    text: str
    links: tuple[str, ...] = ()
    date: str = ""
    license: str = ""
    url: str = ""


class _HeadParser(HTMLParser):
    """Collects what the extraction of the text drops: title, links, language of the head."""

    def __init__(self) -> None:
        super().__init__()
        self.title = ""
        self.links: list[str] = []
        self.fields: dict[str, str] = {}
        self._is_title = False

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        given = {name: value or "" for name, value in attrs}
        self._is_title = tag == "title" and not self.title
        if tag == "a" and given.get("href"):
            self.links.append(given["href"])
        elif tag == "link" and given.get("rel") in ("canonical", "license"):
            self.fields[given["rel"]] = given.get("href", "")
        elif tag == "meta" and given.get("name", "").lower() in ("date", "license", "dcterms.date"):
            self.fields.setdefault(given["name"].lower().rpartition(".")[2], given.get("content", ""))

    def handle_data(self, data: str) -> None:
        if self._is_title:
            self.title += data

    def handle_endtag(self, tag: str) -> None:
        if tag == "title":
            self._is_title = False


def read_html(content: str) -> Document:
    """Return the parts of a page of HTML: its main text by trafilatura, links in their order."""
    import trafilatura  # noqa: PLC0415 - half a second, for pages of HTML alone

    parser = _HeadParser()
    parser.feed(content)
    extracted = trafilatura.extract(content, include_comments=False, include_tables=True, favor_recall=True)
    # It finds no main text in very short pages: then all of the text is the page's.
    text = extracted or trafilatura.html2txt(content) or ""
    license_link = parser.fields.get("license", "")
    return Document(
        title=" ".join(parser.title.split()),
        text=clean_text(text),
        links=tuple(dict.fromkeys(parser.links)),
        date=parser.fields.get("date", ""),
        license=_name_license(license_link),
        url=parser.fields.get("canonical", ""),
    )


def _name_license(address: str) -> str:
    """Return the SPDX expression of a licence's address or name; empty for unknown addresses."""
    match = re.search(r"creativecommons\.org/(?:licenses/([a-z-]+)|publicdomain/(zero))/(\d\.\d)", address)
    if match:
        return f"CC-{match[1].upper()}-{match[3]}" if match[1] else f"CC0-{match[3]}"
    return "" if "/" in address else address


def read_markdown(content: str) -> Document:
    """Return the parts of a page of Markdown: title of the front matter or first heading, text without marks."""
    front = _FRONT_MATTER.match(content.replace("\r\n", "\n"))
    fields = dict(_FIELD.findall(front[1])) if front else {}
    body = content.replace("\r\n", "\n")[front.end() if front else 0 :]
    tokens = MarkdownIt("commonmark").enable("table").parse(body)
    blocks = list(_iterate_blocks(tokens))
    heading = next((text for kind, text in blocks if kind == "heading"), "")
    links = [str(child.attrs["href"]) for child in _iterate_children(tokens) if child.type == "link_open"]
    return Document(
        title=fields.get("title") or heading,
        text=clean_text("\n\n".join(text for _, text in blocks)),
        links=tuple(dict.fromkeys(links)),
        date=fields.get("date", ""),
        license=fields.get("license", ""),
        url=fields.get("url", ""),
    )


def _iterate_blocks(tokens: list[Token]) -> Iterator[tuple[str, str]]:
    """Yield each block with a text, with the kind of the block around it; a row of a table is a block."""
    kind = ""
    cells: list[str] = []
    for token in tokens:
        if token.nesting == 1:
            kind = token.type.removesuffix("_open")
        elif token.type == "tr_close":
            yield "row", " | ".join(cells)
            cells = []
        elif token.type == "inline" and kind in ("th", "td"):
            cells.append(_write_inline(token))
        elif token.type in ("inline", "fence", "code_block"):
            yield kind, _write_inline(token)


def _write_inline(token: Token) -> str:
    """Return the text of a block as a reader sees it."""
    if token.type != "inline":
        return token.content.rstrip("\n")
    parts = []
    for child in token.children or ():
        if child.type in ("text", "code_inline"):
            parts.append(child.content)
        elif child.type in ("softbreak", "hardbreak"):
            parts.append("\n")
    return "".join(parts)


def _iterate_children(tokens: list[Token]) -> Iterator[Token]:
    for token in tokens:
        yield from token.children or ()


def read_text(content: str) -> Document:
    """Return the parts of a plain text: its first line is the title."""
    text = clean_text(content)
    return Document(title=text.partition("\n")[0].strip()[:200], text=text)


def clean_text(text: str) -> str:
    """Return a text without blanks at the ends of lines, with at most one empty line between two others."""
    lines = "\n".join(line.rstrip() for line in text.replace("\r\n", "\n").replace("\0", " ").split("\n"))
    return _BLANK_LINES.sub("\n\n", lines).strip()

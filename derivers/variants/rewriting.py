"""Statements rewritten by rules: every sentence and code block of a variant is from the original."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence

from markdown_it import MarkdownIt
from markdown_it.token import Token

TERSE_WORDS = 40
"""Words from which a terse statement gets no further sentence."""
MAX_CRITERIA = 12
"""Acceptance criteria of a user story."""
_MARKDOWN = MarkdownIt("commonmark").disable(["autolink", "emphasis", "entity", "escape", "link", "reference"])
"""Parser of blocks, inline code, images and HTML; other markup stays in the text as it is."""
_HIDDEN_HTML = re.compile(r"<!--|<img\b", re.IGNORECASE)
_OPEN_COMMENT = re.compile(r"<!--(?!.*-->).*", re.DOTALL)
"""Matches a comment that nothing ends, and all that follows."""
_SENTENCE = re.compile(r"(?<=[.!?:])\s+(?=[A-Z`\"'(])")
_TEMPLATE = re.compile(
    r"^\W*(?:\[[ xX]\]|steps to reproduce|expected behaviou?r|actual behaviou?r|description|environment|"
    r"checklist|additional context)\W*$",
    re.IGNORECASE,
)
_EXPECTATION = re.compile(
    r"\b(?:should|must|expect\w*|instead|shall|ought|want\w*|need\w*|allow\w*|support\w*|raises?|returns?|now)\b",
    re.IGNORECASE,
)


def shorten_statement(statement: str) -> str:
    """Return title and first sentences of a statement, without code blocks, up to about TERSE_WORDS words."""
    title, *sentences = [*split_sentences(statement), ""]
    chosen, n_words = [title], len(title.split())
    for sentence in filter(None, sentences):
        if n_words >= TERSE_WORDS:
            break
        chosen.append(sentence)
        n_words += len(sentence.split())
    body = " ".join(chosen[1:])
    return f"{title}\n\n{body}".strip()


def write_user_story(statement: str, project: str) -> str:
    """Return the statement as a user story: who wants what, what happens now, and acceptance criteria.

    Sentences about expectations are criteria; the others, and all code blocks, describe the situation.

    Args:
        statement: Markdown, the title first.
        project: name of the project.
    """
    title, *sentences = [*split_sentences(statement), ""]
    criteria = [sentence for sentence in sentences if sentence and _EXPECTATION.search(sentence)][:MAX_CRITERIA]
    situation = [sentence for sentence in sentences if sentence and sentence not in criteria]
    blocks = [
        f"{token.markup or '```'}{token.info}\n{token.content}{token.markup or '```'}"
        for token in _MARKDOWN.parse(statement)
        if token.type in {"fence", "code_block"}
    ]
    parts = [
        f"As a user of {project}, I want this resolved: {title}",
        *([f"Today: {' '.join(situation)}"] if situation else []),
        *blocks,
        "Acceptance criteria:\n" + "\n".join(f"- {criterion}" for criterion in criteria or [title]),
    ]
    return "\n\n".join(parts)


def split_sentences(statement: str) -> list[str]:
    """Return the sentences of the prose of a statement in order; headings of templates and code blocks are no prose."""
    sentences: list[str] = []
    for paragraph in _iter_paragraphs(statement):
        lines = [line.strip() for line in paragraph.splitlines()]
        text = " ".join(line for line in lines if line and not _TEMPLATE.match(line))
        sentences += [sentence.strip() for sentence in _SENTENCE.split(text) if sentence.strip()]
    return sentences


def _iter_paragraphs(statement: str) -> Iterator[str]:
    """Yield the texts of headings, list items and paragraphs, without images and comments."""
    for token in _MARKDOWN.parse(statement):
        if token.type == "inline":
            yield _render_inline(token.children or ())
        elif token.type == "html_block":
            closed = _OPEN_COMMENT.sub("", token.content)
            yield _render_inline(_MARKDOWN.parseInline(closed)[0].children or ())


def _render_inline(tokens: Sequence[Token]) -> str:
    """Return the text of a paragraph as it was written, without images and comments."""
    parts = []
    for token in tokens:
        if token.type == "code_inline":
            parts.append(f"{token.markup}{token.content}{token.markup}")
        elif token.type in {"softbreak", "hardbreak"}:
            parts.append("\n")
        elif token.type == "image" or (token.type == "html_inline" and _HIDDEN_HTML.match(token.content)):
            parts.append(" ")
        else:
            parts.append(token.content)
    return "".join(parts)

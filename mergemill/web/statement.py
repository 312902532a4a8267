"""Problem statements as HTML: markdown without raw HTML and images, quotes of findings marked."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from typing import Any
from urllib.parse import urlsplit

from markdown_it import MarkdownIt
from markdown_it.token import Token
from markupsafe import Markup, escape

from mergemill.web.syntax import highlight_code
from mergemill.web.visible_text import make_visible

MAX_RENDERED_CHARACTERS = 100_000
"""Longer statements are shown as source."""
_MARKED_TYPES = ("text", "code_inline", "fence", "code_block", "html_inline")
_BREAKS = ("softbreak", "hardbreak")
_MARKUP = re.compile(r"[`*_~>#]+")
_MIN_QUOTE_CHARACTERS = 3


def _make_parser() -> MarkdownIt:
    parser = MarkdownIt("commonmark", {"html": False}).enable(["table", "strikethrough"])
    parser.validateLink = _is_safe_link  # type: ignore[method-assign]
    parser.add_render_rule("text", _render_marked)
    parser.add_render_rule("code_inline", _render_code)
    parser.add_render_rule("code_block", _render_block)
    parser.add_render_rule("fence", _render_block)
    parser.add_render_rule("image", _render_image)
    parser.add_render_rule("link_open", _render_link)
    parser.add_render_rule("th_open", _render_header)
    parser.add_render_rule("td_open", _render_cell)
    return parser


def render_statement(text: str, quotes: Sequence[str] = ()) -> Markup:
    """Return a statement as HTML with the quotes in `<mark>`, wherever the rendered text contains them."""
    if len(text) > MAX_RENDERED_CHARACTERS:
        return mark_source(text, quotes)
    tokens = _PARSER.parse(make_visible(text))
    wanted = [quote for quote in map(make_visible, quotes) if len(quote.strip()) >= _MIN_QUOTE_CHARACTERS]
    for block in tokens:
        parts = [part for part in block.children or [block] if part.type in (*_MARKED_TYPES, *_BREAKS)]
        _mark_parts(parts, wanted)
    return Markup(_PARSER.renderer.render(tokens, _PARSER.options, {}))  # noqa: S704 - each rule escapes its text


def mark_source(text: str, quotes: Sequence[str] = ()) -> Markup:
    """Return a statement as it was written, escaped, with the quotes in `<mark>`."""
    source = make_visible(text)
    marks = [span for quote in quotes if quote.strip() for span in _find_quote(source, make_visible(quote))]
    return Markup('<pre class="source">{}</pre>').format(_wrap_marks(source, marks))


# ------------------------------------------------------------------------------------------------------- quotes


def _mark_parts(parts: Sequence[Token], quotes: Iterable[str]) -> None:
    """Set `meta["marks"]` of the tokens of a block: spans of their content that belong to a quote."""
    flat = "".join(" " if part.type in _BREAKS else part.content for part in parts)
    for quote in quotes:
        for start, end in _find_quote(flat, quote) or _find_quote(flat, _MARKUP.sub("", quote)):
            at = 0
            for part in parts:
                length = 1 if part.type in _BREAKS else len(part.content)
                inside = (max(start - at, 0), min(end - at, length))
                if inside[0] < inside[1] and part.type not in _BREAKS:
                    part.meta.setdefault("marks", []).append(inside)
                at += length


def _find_quote(text: str, quote: str) -> list[tuple[int, int]]:
    """Return the spans of a quote in a text; any white space matches any other."""
    words = quote.split()
    if not words:
        return []
    pattern = re.compile(r"\s+".join(map(re.escape, words)))
    return [match.span() for match in pattern.finditer(text)][:20]


def _wrap_marks(text: str, marks: Iterable[tuple[int, int]]) -> Markup:
    """Return the escaped text with the spans in `<mark>`; overlapping spans are joined."""
    html, at = Markup(), 0
    for start, end in _join_spans(marks):
        html += escape(text[at:start]) + Markup("<mark>{}</mark>").format(text[start:end])
        at = end
    return html + escape(text[at:])


def _join_spans(spans: Iterable[tuple[int, int]]) -> Iterator[tuple[int, int]]:
    joined: list[tuple[int, int]] = []
    for start, end in sorted(spans):
        if joined and start <= joined[-1][1]:
            joined[-1] = (joined[-1][0], max(end, joined[-1][1]))
        else:
            joined.append((start, end))
    return iter(joined)


# ------------------------------------------------------------------------------------------------ render rules


def _is_safe_link(url: str) -> bool:
    """Whether a link may be followed: http(s) and mail addresses alone."""
    try:
        return urlsplit(url.strip()).scheme.lower() in ("http", "https", "mailto")
    except ValueError:
        return False


def _render_marked(self: Any, tokens: Sequence[Token], index: int, options: Any, env: Any) -> str:
    del self, options, env
    return str(_wrap_marks(tokens[index].content, tokens[index].meta.get("marks", ())))


def _render_code(self: Any, tokens: Sequence[Token], index: int, options: Any, env: Any) -> str:
    return f"<code>{_render_marked(self, tokens, index, options, env)}</code>"


def _render_block(self: Any, tokens: Sequence[Token], index: int, options: Any, env: Any) -> str:
    token = tokens[index]
    if token.meta.get("marks"):
        content = _render_marked(self, tokens, index, options, env)
    else:
        content = str(highlight_code(token.content, token.info.split(" ")[0] if token.info else ""))
    return f'<pre class="code" tabindex="0"><code>{content}</code></pre>\n'


def _render_image(self: Any, tokens: Sequence[Token], index: int, options: Any, env: Any) -> str:
    """Return an image as a link to it: a page loads nothing from other hosts."""
    del self, options, env
    url = str(tokens[index].attrGet("src") or "")
    words = tokens[index].content or url
    link = Markup('<a class="image" href="{}" rel="noopener noreferrer nofollow" target="_blank">[image: {}]</a>')
    return str(link.format(url, words))


def _render_link(self: Any, tokens: Sequence[Token], index: int, options: Any, env: Any) -> str:
    tokens[index].attrSet("rel", "noopener noreferrer nofollow")
    tokens[index].attrSet("target", "_blank")
    return str(self.renderToken(tokens, index, options, env))


def _render_header(self: Any, tokens: Sequence[Token], index: int, options: Any, env: Any) -> str:
    tokens[index].attrs = {"scope": "col"}  # without the style attribute of an alignment, which the policy forbids
    return str(self.renderToken(tokens, index, options, env))


def _render_cell(self: Any, tokens: Sequence[Token], index: int, options: Any, env: Any) -> str:
    tokens[index].attrs = {}
    return str(self.renderToken(tokens, index, options, env))


_PARSER = _make_parser()

"""Find the issues that a change links to, with the words that do so.

A closing keyword counts in every text written by a person: GitHub itself reads a pull request's text only when its base
is the default branch, takes a single issue per keyword, and does not read changelogs. Code, quotes and HTML comments
(pull request templates) are ignored.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from urllib.parse import urlsplit

from taskdb.records.discussion import IssueLink, LinkOrigin

GITHUB = "https://github.com/"

_REPO = r"[A-Za-z0-9][\w-]{0,38}/[\w.-]{1,100}"
_REFERENCE = (
    rf"(?:https?://(?P<host>[\w.:-]+)/(?P<url>{_REPO})/(?:issues|pull)/(?P<urlno>\d{{1,9}})(?:\#[\w-]+)?"
    rf"|(?<![\w/.-])(?P<repo>{_REPO})\#(?P<repono>\d{{1,9}})|(?<![\w/&])(?:\#|GH-|gh-)(?P<number>\d{{1,9}}))(?!\w)"
)
_ANONYMOUS = re.sub(r"\?P<\w+>", "?:", _REFERENCE)
_CLOSES = re.compile(
    rf"(?<![\w/-])(?<!not )(?<!n't )(?<!never )(?:clos(?:e[sd]?|ing)|fix(?:e[sd]|ing)?|resolv(?:e[sd]?|ing)):?\s+"
    rf"(?:(?:issues?|bugs?)\s+)?\[?{_ANONYMOUS}(?:\s*(?:,\s*(?:and\s+)?|and\s+|&\s*)"
    rf"(?:(?:issues?|bugs?)\s+)?\[?{_ANONYMOUS})*",
    re.IGNORECASE,
)
_SINGLE_REFERENCE = re.compile(_REFERENCE)
_ROLE = re.compile(r":(?:issue|bug|gh|ghissue|iss):`(?:[^`<]*<)?#?(?P<number>\d{1,9})>?`", re.IGNORECASE)
_PULL_ROLE = re.compile(r":(?:pull|pr|ghpull|user):`[^`]*`", re.IGNORECASE)
_BLOCKS = re.compile(
    r"<!--.*?(?:-->|\Z)|^ {0,3}(?P<fence>```+|~~~+)[^\n]*\n.*?(?:^ {0,3}(?P=fence)[`~]*[ \t]*$|\Z)|"
    r"<(?P<tag>pre|code|blockquote)\b[^>]*>.*?</(?P=tag)>",
    re.DOTALL | re.MULTILINE | re.IGNORECASE,
)
_INLINE = re.compile(r"(?P<ticks>`+)(?!`).+?(?<!`)(?P=ticks)(?!`)")
_FRAGMENT = re.compile(
    r"(^|/)(news|newsfragments?|changes|changelog(\.d)?|changelogs?|towncrier)/[+\w/-]*?"
    r"(?P<number>\d+)\.[a-z][\w.-]*$",
    re.IGNORECASE,
)
_FIX_LINE = re.compile(r"^\W*(?:\w+: )?\W*(?:bug ?)?(?:fix(?:e[sd])?|resolve[sd]?|correct(?:s|ed)?)\b", re.IGNORECASE)
_MAX_QUOTE_LENGTH = 120  # characters of a quote


@dataclass(frozen=True, slots=True)
class ChangeText:
    """A text of a change and its origin. `markdown`: whether it marks code and quotes."""

    origin: LinkOrigin
    text: str
    markdown: bool = True


def find_links(texts: Iterable[ChangeText], repo: str, own: int, *, server: str = GITHUB) -> tuple[IssueLink, ...]:
    """Find the issues that texts close by keywords, and that changelog entries name.

    Args:
        texts: the texts, in the order of `LinkOrigin`.
        repo: `owner/name` of the change, to which a bare `#12` refers.
        own: the change's own number, which is not a link.
        server: a URL on the forge's host: addresses on other hosts are ignored, except GitHub's own.
    """
    links: dict[tuple[str, LinkOrigin], IssueLink] = {}
    hosts = {urlsplit(url).netloc.lower() for url in (GITHUB, server)}
    for text in texts:
        for link in _find_in_text(text, repo, hosts):
            if link.issue.lower() == f"{repo}#{own}".lower():
                continue
            before = links.get((link.issue.lower(), link.origin))
            if before is None or (link.closes and not before.closes):
                links[link.issue.lower(), link.origin] = link
    return tuple(links.values())


def parse_fragment_number(path: str) -> int | None:
    """Return the issue that a news fragment is named after: 12 for `changes/12.bugfix.rst`."""
    match = _FRAGMENT.search(path)
    return int(match["number"]) if match else None


def blank_out_code_and_quotes(text: str) -> str:
    """Replace code, quotes and comments in a Markdown text by blanks; the length stays the same."""
    if not any(mark in text for mark in ("`", "~~~", ">", "<", "    ", "\t")):
        return text
    plain = _INLINE.sub(_replace_with_blanks, _BLOCKS.sub(_replace_with_blanks, text.replace("\r", " ")))
    return "\n".join(_blank_out_quotes(plain.split("\n"), text.split("\n")))


def _blank_out_quotes(lines: list[str], written: list[str]) -> Iterator[str]:
    """Return the lines, emptied where the `written` lines are a quote or an indented code block."""
    free, in_list = True, False  # whether an indented block may begin, and whether it would belong to a list
    for line, as_written in zip(lines, written, strict=True):
        indented = as_written.startswith(("    ", "\t")) and not in_list
        if line.lstrip().startswith(">") or (indented and free and line.strip()):
            yield " " * len(line)
            continue
        yield line
        if line.strip():
            in_list = re.match(r"\s*([-*+]|\d+[.)])\s", line) is not None or (in_list and line.startswith(" "))
        free = not line.strip()


def _find_in_text(source: ChangeText, repo: str, hosts: set[str]) -> Iterator[IssueLink]:
    text = blank_out_code_and_quotes(source.text) if source.markdown else source.text
    if "#" in text or "://" in text or "gh-" in text.lower():
        for phrase in _CLOSES.finditer(text):
            yield from _find_reference(phrase[0], source.origin, repo, hosts, quote=phrase[0], closes=True)
    if source.origin is LinkOrigin.CHANGELOG:
        for line in text.split("\n"):
            bare, fixes = _PULL_ROLE.sub(" ", line), _FIX_LINE.match(line) is not None
            yield from _find_reference(bare, source.origin, repo, hosts, quote=line, closes=fixes)
            for role in _ROLE.finditer(bare):
                yield _build_link(f"{repo}#{int(role['number'])}", source.origin, line, closes=fixes)


def _find_reference(
    text: str, origin: LinkOrigin, repo: str, hosts: set[str], *, quote: str, closes: bool
) -> Iterator[IssueLink]:
    for match in _SINGLE_REFERENCE.finditer(text):
        if match["host"] and match["host"].lower() not in hosts:
            continue
        owner = match["url"] or match["repo"] or repo
        number = int(match["urlno"] or match["repono"] or match["number"])
        if number:
            yield _build_link(f"{owner}#{number}", origin, quote, closes=closes)


def _build_link(issue: str, origin: LinkOrigin, quote: str, *, closes: bool) -> IssueLink:
    plain = " ".join(quote.split())
    return IssueLink(
        issue=issue,
        origin=origin,
        closes=closes,
        quote=plain if len(plain) <= _MAX_QUOTE_LENGTH else f"{plain[:_MAX_QUOTE_LENGTH]}...",
    )


def _replace_with_blanks(match: re.Match[str]) -> str:
    return re.sub(r"[^\n]", " ", match[0])

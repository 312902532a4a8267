"""Which issues a change speaks of, and in which words.

A closing keyword counts wherever a person wrote it: GitHub itself looks at a pull request's text only when its base is
the default branch, takes one issue per keyword, and knows nothing of changelogs. What stands in code, quotes and HTML
comments (pull request templates) is not said by the change and does not count.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from urllib.parse import urlsplit

from taskdb.discussion import IssueLink, LinkOrigin

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
_ONE = re.compile(_REFERENCE)
_ROLE = re.compile(r":(?:issue|bug|gh|ghissue|iss):`(?:[^`<]*<)?#?(?P<number>\d{1,9})>?`", re.IGNORECASE)
_PULL_ROLE = re.compile(r":(?:pull|pr|ghpull|user):`[^`]*`", re.IGNORECASE)
_BLOCKS = re.compile(
    r"<!--.*?(?:-->|\Z)|^ {0,3}(?P<fence>```+|~~~+)[^\n]*\n.*?(?:^ {0,3}(?P=fence)[`~]*[ \t]*$|\Z)|"
    r"<(?P<tag>pre|code|blockquote)\b[^>]*>.*?</(?P=tag)>",
    re.DOTALL | re.MULTILINE | re.IGNORECASE,
)
_INLINE = re.compile(r"(?P<ticks>`+)(?!`).+?(?<!`)(?P=ticks)(?!`)")
_FRAGMENT = re.compile(r"(^|/)(news|newsfragments?|changes|changelog(\.d)?|changelogs?|towncrier)/[+\w/-]*?"
                       r"(?P<number>\d+)\.[a-z][\w.-]*$", re.IGNORECASE)  # fmt: skip
_FIXES = re.compile(r"^\W*(?:\w+: )?\W*(?:bug ?)?(?:fix(?:e[sd])?|resolve[sd]?|correct(?:s|ed)?)\b", re.IGNORECASE)
_LONGEST = 120  # characters of a quote


@dataclass(frozen=True, slots=True)
class Said:
    """One text of a change and where it stands. `markdown`: whether code and quotes are marked in it."""

    origin: LinkOrigin
    text: str
    markdown: bool = True


def links(said: Iterable[Said], repo: str, own: int, *, server: str = GITHUB) -> tuple[IssueLink, ...]:
    """The links that texts make by closing keywords, and changelog entries by naming an issue.

    Args:
        said: the texts, in the order of `LinkOrigin`.
        repo: `owner/name` of the change, which a bare `#12` means.
        own: the change's own number, which is no link.
        server: a URL on the forge's host: addresses on others are no links, but for GitHub's own.
    """
    found: dict[tuple[str, LinkOrigin], IssueLink] = {}
    hosts = {urlsplit(url).netloc.lower() for url in (GITHUB, server)}
    for text in said:
        for link in _of(text, repo, hosts):
            if link.issue.lower() == f"{repo}#{own}".lower():
                continue
            before = found.get((link.issue.lower(), link.origin))
            if before is None or (link.closes and not before.closes):
                found[link.issue.lower(), link.origin] = link
    return tuple(found.values())


def fragment_number(path: str) -> int | None:
    """The issue that a news fragment is named after: 12 for `changes/12.bugfix.rst`."""
    found = _FRAGMENT.search(path)
    return int(found["number"]) if found else None


def spoken(text: str) -> str:
    """A Markdown text without what stands in code, quotes and comments; of the same length."""
    if not any(mark in text for mark in ("`", "~~~", ">", "<", "    ", "\t")):
        return text
    plain = _INLINE.sub(_blank, _BLOCKS.sub(_blank, text.replace("\r", " ")))
    return "\n".join(_without_quotes(plain.split("\n"), text.split("\n")))


def _without_quotes(lines: list[str], written: list[str]) -> Iterator[str]:
    """The lines, empty where those as `written` are of a quotation or of an indented block of code."""
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


def _of(said: Said, repo: str, hosts: set[str]) -> Iterator[IssueLink]:
    text = spoken(said.text) if said.markdown else said.text
    if "#" in text or "://" in text or "gh-" in text.lower():
        for phrase in _CLOSES.finditer(text):
            yield from _named(phrase[0], said.origin, repo, hosts, quote=phrase[0], closes=True)
    if said.origin is LinkOrigin.CHANGELOG:
        for line in text.split("\n"):
            bare, fixes = _PULL_ROLE.sub(" ", line), _FIXES.match(line) is not None
            yield from _named(bare, said.origin, repo, hosts, quote=line, closes=fixes)
            for role in _ROLE.finditer(bare):
                yield _link(f"{repo}#{int(role['number'])}", said.origin, line, closes=fixes)


def _named(
    text: str, origin: LinkOrigin, repo: str, hosts: set[str], *, quote: str, closes: bool
) -> Iterator[IssueLink]:
    for one in _ONE.finditer(text):
        if one["host"] and one["host"].lower() not in hosts:
            continue
        owner = one["url"] or one["repo"] or repo
        number = int(one["urlno"] or one["repono"] or one["number"])
        if number:
            yield _link(f"{owner}#{number}", origin, quote, closes=closes)


def _link(issue: str, origin: LinkOrigin, quote: str, *, closes: bool) -> IssueLink:
    plain = " ".join(quote.split())
    return IssueLink(
        issue=issue, origin=origin, closes=closes, quote=plain if len(plain) <= _LONGEST else f"{plain[:_LONGEST]}..."
    )


def _blank(found: re.Match[str]) -> str:
    return re.sub(r"[^\n]", " ", found[0])

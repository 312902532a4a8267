from __future__ import annotations

import pytest

from miner.github.links import ChangeText, find_links, parse_fragment_number
from taskdb.records.discussion import LinkOrigin


def list_linked_issues(text: str, origin: LinkOrigin = LinkOrigin.BODY) -> list[str]:
    markdown = origin is not LinkOrigin.CHANGELOG
    return [link.issue for link in find_links([ChangeText(origin, text, markdown)], "a/b", 7)]


@pytest.mark.parametrize(
    ("text", "issues"),
    [
        ("Fixes #1, fixes #2", ["a/b#1", "a/b#2"]),
        ("Fixes #1, #2 and #3.", ["a/b#1", "a/b#2", "a/b#3"]),
        ("closes: own-er/re.po#3", ["own-er/re.po#3"]),
        ("Resolves https://github.com/x/y/issues/12#issuecomment-1", ["x/y#12"]),
        ("FIXED GH-4 & gh-5", ["a/b#4", "a/b#5"]),
        ("Fixes issue #6", ["a/b#6"]),
        ("- item\n\n    fixes #9", ["a/b#9"]),
        ("`x` fixes #1 `y`", ["a/b#1"]),
    ],
)
def test_every_issue_behind_a_closing_keyword_is_a_link(text: str, issues: list[str]) -> None:
    assert list_linked_issues(text) == issues


@pytest.mark.parametrize(
    "text",
    [
        "See #1",
        "prefix #1",
        "fixes #1abc",
        "Fixes #7",
        "does not fix #1",
        "closes https://gitlab.com/a/b/issues/5",
        "```\nfixes #1\n```",
        "~~~~\nfixes #1",
        "> fixes #1",
        "`fixes #1`",
        "<!-- fixes #1 -->",
        "<pre>\nfixes #1</pre>",
        "Text\n\n    fixes #1\n",
        "fixes #0",
        "https://github.com/a/b/issues/5",
    ],
)
def test_other_words_and_quotes_are_no_links(text: str) -> None:
    assert list_linked_issues(text) == []


def test_a_changelog_links_by_naming_and_closes_by_its_verb() -> None:
    entry = "- Fixed a crash (#12, :pr:`13`)\n- New words :issue:`14`\n- Ours (#7)"
    links = find_links([ChangeText(LinkOrigin.CHANGELOG, entry, markdown=False)], "a/b", 7)
    assert [(link.issue, link.closes) for link in links] == [("a/b#12", True), ("a/b#14", False)]
    assert links[1].quote == "- New words :issue:`14`"


@pytest.mark.parametrize(
    ("path", "number"),
    [("changes/12.bugfix.rst", 12), ("newsfragments/core/12.rst", 12), ("docs/changes/3.4.rst", None), ("12.md", None)],
)
def test_a_news_fragment_is_named_after_its_issue(path: str, number: int | None) -> None:
    assert parse_fragment_number(path) == number

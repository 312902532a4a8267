"""Evidence for kinds in texts, labels, paths and diffs."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from miner.tags.diffs import differ_only_in_annotations, find_line_signs, list_source_lines
from miner.tags.labels import SPELLINGS, parse_conventional_title, parse_label
from miner.tags.lexicon import GROUP_WEIGHTS, GROUPS, QUALIFIED_GROUPS
from miner.tags.paths import classify_path, find_path_signs
from miner.tags.routes import ROUTES, find_route
from miner.tags.tag import tag_text
from miner.tags.words import extract_features, split_message, stem
from taskdb.records.tags import Activity, ChangeKind

K = ChangeKind


@pytest.mark.parametrize(
    ("label", "kind"),
    [
        ("bug", K.BUGFIX),
        ("type: bug", K.BUGFIX),
        ("kind/bug", K.BUGFIX),
        ("C-bug", K.BUGFIX),
        ("Bug fix", K.BUGFIX),
        (":bug: Bug", K.BUGFIX),
        ("T: enhancement", K.FEATURE),
        ("feature request", K.FEATURE),
        ("Type - Documentation", K.DOCUMENTATION),
        ("dependencies", K.DEPENDENCY),
        ("github_actions", K.CI),
        ("breaking change", K.BREAKING),
        ("semver-major", K.BREAKING),
        ("i18n", K.LOCALISATION),
        ("not a bug", None),
        ("good first issue", None),
        ("needs tests", None),
        ("python", None),
        ("", None),
    ],
)
def test_labels_are_recognised_in_their_many_spellings(label: str, kind: ChangeKind | None) -> None:
    assert parse_label(label) is kind


@pytest.mark.parametrize(
    ("title", "kinds"),
    [
        ("fix(core): off by one", [K.BUGFIX]),
        ("feat!: a parser", [K.FEATURE, K.BREAKING]),
        ("BUG: no", [K.BUGFIX]),
        ("[DOC] spelling", [K.DOCUMENTATION]),
        ("ENH/TST: faster", [K.FEATURE]),
        ("build(deps): bump x", [K.BUILD]),
        ("DOC fix a typo", [K.DOCUMENTATION]),
        ("core: a note", []),
        ("Fix the parser", []),
    ],
)
def test_conventional_titles_name_kinds(title: str, kinds: list[ChangeKind]) -> None:
    assert [kind for kind, _ in parse_conventional_title(title)] == kinds


@pytest.mark.parametrize(
    ("path", "expected"),
    [
        ("tests/test_a.py", K.TEST),
        ("docs/a.py", K.DOCUMENTATION),
        ("pkg/core.py", "source"),
        ("setup.py", K.BUILD),
        (".github/workflows/test.yml", K.CI),
        ("requirements-dev.txt", K.DEPENDENCY),
        ("README.md", K.DOCUMENTATION),
        ("pkg/locale/de/LC_MESSAGES/pkg.po", K.LOCALISATION),
        ("pkg/_version.py", K.RELEASE),
        ("LICENSE", K.LICENCE),
        ("examples/a.py", K.EXAMPLE),
        ("tox.ini", K.CI),
        ("pkg/core.pyi", K.TYPING),
        ("pkg/logo.svg", K.DATA),
        ("benches/speed.rs", "source"),
    ],
)
def test_each_file_has_a_class(path: str, expected: str) -> None:
    assert classify_path(path) == expected


def test_a_changelog_beside_tests_leaves_them_alone_and_source_beside_them_does_not() -> None:
    rules = {(kind, rule) for kind, rule, _, _ in find_path_signs(["CHANGES.rst", "tests/test_a.py"])}
    assert (K.TEST, "paths-only") in rules
    assert (K.TEST, "paths-some") in {(k, rule) for k, rule, _, _ in find_path_signs(["pkg/a.py", "tests/test_a.py"])}


def diff(path: str, *lines: str) -> str:
    return f"diff --git a/{path} b/{path}\n--- a/{path}\n+++ b/{path}\n@@ -1,2 +1,2 @@\n" + "\n".join(lines) + "\n"


def test_changed_annotations_differ_from_changed_code_and_moved_lines() -> None:
    annotated = diff("pkg/a.py", "-def f(a, b=1):", "+def f(a: int, b: int = 1) -> str:", "+from typing import Any")
    assert differ_only_in_annotations(list_source_lines(annotated))
    changed = diff("pkg/a.py", "-def f(a, b=1):", "+def f(a: int, b: int = 2) -> str:")
    assert not differ_only_in_annotations(list_source_lines(changed))
    swapped = diff("pkg/a.py", "-    first()", "     second()", "+    first()", " ")
    assert not differ_only_in_annotations(list_source_lines(swapped))


def test_a_diff_gives_signs_for_names_and_lines() -> None:
    patch = diff("pkg/a.py", "-def old():", "+def new():", "+    raise ValueError", "+    logger.warning('x')")
    signs = {(kind, rule): quote for kind, rule, quote, _ in find_line_signs(list_source_lines(patch))}
    assert signs[K.FEATURE, "diff:new-name"] == "new"
    assert signs[K.REMOVAL, "diff:lost-name"] == "old"
    assert signs[K.ERROR_HANDLING, "diff:raises"] == "raise ValueError"
    assert (K.LOGGING, "diff:logs") in signs
    assert list_source_lines(diff("docs/a.rst", "+def new():")) == []


@pytest.mark.parametrize(
    ("title", "primary"),
    [
        ("Fix crash on start", K.BUGFIX),
        ("Add a --colour option", K.FEATURE),
        ("Refactor the parser", K.REFACTOR),
        ("Speed up parsing", K.PERFORMANCE),
        ("docs: fix a typo", K.DOCUMENTATION),
        ("chore: x", K.CHORE),
        ("Bump x from 2.0 to 2.1", K.DEPENDENCY),
        ("Revert 'Add a cache'", K.REVERT),
        ("Release 1.2.3", K.RELEASE),
        ("Drop support for Python 3.6", K.REMOVAL),
        ("Deprecate the old name", K.DEPRECATION),
        ("qqq", K.OTHER),
        ("Add type annotations, run mypy", K.TYPING),
        ("Update German translations", K.LOCALISATION),
    ],
)
def test_a_title_alone_gives_a_primary_kind(title: str, primary: ChangeKind) -> None:
    kinds, _ = tag_text(title, "")
    assert kinds[0].change_kind is primary


def test_every_sign_has_a_quote() -> None:
    kinds, activities = tag_text("fix(io): crash on empty input", "It raised IndexError.", ["kind/bug"])
    assert {(sign.rule, sign.quote) for sign in kinds[0].evidence} >= {
        ("convention", "fix(io):"),
        ("label", "kind/bug"),
    }
    assert activities[0] is Activity.CORRECTIVE


def test_words_are_compared_without_endings() -> None:
    assert len({stem(word) for word in ("fix", "fixes", "fixed", "fixing")}) == 1
    assert {"0:fix", "T:repair", "T:repair+prose", "T:prose", "no-text"} <= extract_features(
        "Fixed the docs", ""
    ).keys()


def test_a_message_is_parsed_without_frame_and_trailers() -> None:
    message = "Merge pull request #3 from ada/x\n\nAdd y\n\nIt is z.\n\nSigned-off-by: A <a@b.c>\n"
    assert split_message(message) == ("Add y", "It is z.")


def test_the_tables_are_consistent() -> None:
    assert set(ROUTES) == set(ChangeKind)
    assert all(bool(route.tasks) != bool(route.rejection) for route in ROUTES.values())
    assert set(GROUP_WEIGHTS) | set(QUALIFIED_GROUPS) <= set(GROUPS)
    words = [word for spellings in SPELLINGS.values() for word in spellings.split()]
    assert len(words) == len(set(words))


def test_a_change_of_source_and_tests_has_a_route_unless_behaviour_is_equal() -> None:
    assert "bugfix" in find_route([K.CHORE], source_and_tests=True, same_program=False).tasks
    assert find_route([K.STYLE], source_and_tests=True, same_program=True).rejection
    assert find_route([K.BUGFIX], source_and_tests=False, same_program=False).rejection
    assert find_route([K.BUGFIX], source_and_tests=False, same_program=False, source_alone=True).rejection
    assert find_route([K.PERFORMANCE], source_and_tests=False, same_program=False).rejection
    speed = find_route([K.PERFORMANCE, K.BUGFIX], source_and_tests=False, same_program=False, source_alone=True)
    assert speed.tasks == ("performance", "review", "injected", "rebuild")
    assert find_route([K.TEST], source_and_tests=False, same_program=False).tasks == ("test-writing",)


def test_the_documented_routes_are_those_of_the_code() -> None:
    text = (Path(__file__).parents[3] / "docs/guide/mine/tags.md").read_text(encoding="utf-8")
    documented = dict(re.findall(r"^\| `([\w-]+)` \| [^|]+ \| ([^|]+) \|$", text, re.MULTILINE))
    for kind, route in ROUTES.items():
        assert documented[kind.value] == (", ".join(route.tasks) or f"rejected: {route.rejection}")

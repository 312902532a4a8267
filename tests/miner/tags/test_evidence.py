"""What a text, a label, a path or a diff says of a change."""

from __future__ import annotations

import pytest

from miner.tags.diffs import lines_of, same_but_for_annotations, signs_of_lines
from miner.tags.labels import SPELLINGS, kind_of_label, kinds_of_convention
from miner.tags.lexicon import GROUPS, QUALIFYING, SPEAKS_FOR
from miner.tags.paths import class_of, signs_of_paths
from miner.tags.routes import ROUTES, route_of
from miner.tags.tag import tag_text
from miner.tags.words import features, message_parts, stem
from taskdb.tags import Activity, ChangeKind

K = ChangeKind


@pytest.mark.parametrize(
    ("label", "kind"),
    [
        ("bug", K.BUGFIX), ("type: bug", K.BUGFIX), ("kind/bug", K.BUGFIX), ("C-bug", K.BUGFIX), ("Bug fix", K.BUGFIX),
        (":bug: Bug", K.BUGFIX), ("T: enhancement", K.FEATURE), ("feature request", K.FEATURE),
        ("Type - Documentation", K.DOCUMENTATION), ("dependencies", K.DEPENDENCY), ("github_actions", K.CI),
        ("breaking change", K.BREAKING), ("semver-major", K.BREAKING), ("i18n", K.LOCALISATION),
        ("not a bug", None), ("good first issue", None), ("needs tests", None), ("python", None), ("", None),
    ],
)  # fmt: skip
def test_labels_are_known_in_their_many_spellings(label: str, kind: ChangeKind | None) -> None:
    assert kind_of_label(label) is kind


@pytest.mark.parametrize(
    ("title", "kinds"),
    [
        ("fix(core): off by one", [K.BUGFIX]), ("feat!: a parser", [K.FEATURE, K.BREAKING]), ("BUG: no", [K.BUGFIX]),
        ("[DOC] spelling", [K.DOCUMENTATION]), ("ENH/TST: faster", [K.FEATURE]), ("build(deps): bump x", [K.BUILD]),
        ("DOC fix a typo", [K.DOCUMENTATION]), ("core: a note", []), ("Fix the parser", []),
    ],
)  # fmt: skip
def test_conventional_titles_name_kinds(title: str, kinds: list[ChangeKind]) -> None:
    assert [kind for kind, _ in kinds_of_convention(title)] == kinds


@pytest.mark.parametrize(
    ("path", "found"),
    [
        ("tests/test_a.py", K.TEST), ("docs/a.py", K.DOCUMENTATION), ("pkg/core.py", "source"), ("setup.py", K.BUILD),
        (".github/workflows/test.yml", K.CI), ("requirements-dev.txt", K.DEPENDENCY), ("README.md", K.DOCUMENTATION),
        ("pkg/locale/de/LC_MESSAGES/pkg.po", K.LOCALISATION), ("pkg/_version.py", K.RELEASE), ("LICENSE", K.LICENCE),
        ("examples/a.py", K.EXAMPLE), ("tox.ini", K.CI), ("pkg/core.pyi", K.TYPING), ("pkg/logo.svg", K.DATA),
    ],
)  # fmt: skip
def test_each_file_has_a_class(path: str, found: str) -> None:
    assert class_of(path) == found


def test_a_changelog_beside_tests_leaves_them_alone_and_source_beside_them_does_not() -> None:
    rules = {(kind, rule) for kind, rule, _, _ in signs_of_paths(["CHANGES.rst", "tests/test_a.py"])}
    assert (K.TEST, "paths-only") in rules
    assert (K.TEST, "paths-some") in {(k, rule) for k, rule, _, _ in signs_of_paths(["pkg/a.py", "tests/test_a.py"])}


def diff(path: str, *lines: str) -> str:
    return f"diff --git a/{path} b/{path}\n--- a/{path}\n+++ b/{path}\n@@ -1,2 +1,2 @@\n" + "\n".join(lines) + "\n"


def test_only_annotations_are_told_from_code_and_from_lines_that_change_places() -> None:
    annotated = diff("pkg/a.py", "-def f(a, b=1):", "+def f(a: int, b: int = 1) -> str:", "+from typing import Any")
    assert same_but_for_annotations(lines_of(annotated))
    changed = diff("pkg/a.py", "-def f(a, b=1):", "+def f(a: int, b: int = 2) -> str:")
    assert not same_but_for_annotations(lines_of(changed))
    swapped = diff("pkg/a.py", "-    first()", "     second()", "+    first()", " ")
    assert not same_but_for_annotations(lines_of(swapped))


def test_a_diff_tells_new_and_lost_names_and_what_its_lines_are_for() -> None:
    patch = diff("pkg/a.py", "-def old():", "+def new():", "+    raise ValueError", "+    logger.warning('x')")
    said = {(kind, rule): quote for kind, rule, quote, _ in signs_of_lines(lines_of(patch))}
    assert said[K.FEATURE, "diff:new-name"] == "new"
    assert said[K.REMOVAL, "diff:lost-name"] == "old"
    assert said[K.ERROR_HANDLING, "diff:raises"] == "raise ValueError"
    assert (K.LOGGING, "diff:logs") in said
    assert lines_of(diff("docs/a.rst", "+def new():")) == []


@pytest.mark.parametrize(
    ("title", "primary"),
    [
        ("Fix crash on start", K.BUGFIX), ("Add a --colour option", K.FEATURE), ("Refactor the parser", K.REFACTOR),
        ("Speed up parsing", K.PERFORMANCE), ("docs: fix a typo", K.DOCUMENTATION), ("chore: x", K.CHORE),
        ("Bump x from 2.0 to 2.1", K.DEPENDENCY), ("Revert 'Add a cache'", K.REVERT), ("Release 1.2.3", K.RELEASE),
        ("Drop support for Python 3.6", K.REMOVAL), ("Deprecate the old name", K.DEPRECATION), ("qqq", K.OTHER),
        ("Add type annotations, run mypy", K.TYPING), ("Update German translations", K.LOCALISATION),
    ],
)  # fmt: skip
def test_a_title_alone_gives_a_primary_kind(title: str, primary: ChangeKind) -> None:
    kinds, _ = tag_text(title, "")
    assert kinds[0].kind is primary


def test_every_sign_quotes_what_it_saw() -> None:
    kinds, activities = tag_text("fix(io): crash on empty input", "It raised IndexError.", ["kind/bug"])
    assert {(sign.rule, sign.quote) for sign in kinds[0].signs} >= {("convention", "fix(io):"), ("label", "kind/bug")}
    assert activities[0] is Activity.CORRECTIVE


def test_words_fall_together_without_their_endings() -> None:
    assert len({stem(word) for word in ("fix", "fixes", "fixed", "fixing")}) == 1
    assert {"0:fix", "T:repair", "T:repair+prose", "T:prose", "no-text"} <= features("Fixed the docs", "").keys()


def test_a_message_is_read_without_frame_and_trailers() -> None:
    message = "Merge pull request #3 from ada/x\n\nAdd y\n\nIt is z.\n\nSigned-off-by: A <a@b.c>\n"
    assert message_parts(message) == ("Add y", "It is z.")


def test_the_tables_speak_of_each_other() -> None:
    assert set(ROUTES) == set(ChangeKind)
    assert all(bool(route.tasks) != bool(route.stops) for route in ROUTES.values())
    assert set(SPEAKS_FOR) | set(QUALIFYING) <= set(GROUPS)
    words = [word for told in SPELLINGS.values() for word in told.split()]
    assert len(words) == len(set(words))


def test_source_and_tests_lead_on_whatever_the_title_says_unless_the_program_is_the_same() -> None:
    assert "bugfix" in route_of([K.CHORE], source_and_tests=True, same_program=False).tasks
    assert route_of([K.STYLE], source_and_tests=True, same_program=True).stops
    assert route_of([K.BUGFIX], source_and_tests=False, same_program=False).stops
    assert route_of([K.BUGFIX], source_and_tests=False, same_program=False, source_alone=True).stops
    assert route_of([K.PERFORMANCE], source_and_tests=False, same_program=False).stops
    speed = route_of([K.PERFORMANCE, K.BUGFIX], source_and_tests=False, same_program=False, source_alone=True)
    assert speed.tasks == ("performance", "review", "injected")
    assert route_of([K.TEST], source_and_tests=False, same_program=False).tasks == ("test-writing",)

"""Clean changes: tracing of their lines through later commits."""

from __future__ import annotations

import json
import os
from pathlib import Path
from unittest import mock

import pytest

from derivers.base import KindRejection
from derivers.review.clean import LaterCommit, LineEdit, find_first_fix, parse_edits
from derivers.review.construction import Reason
from taskdb.records import Task
from taskdb.records.tags import ChangeKind
from tests.derivers.review_helpers import PADDING, RIGHT, create_services, derive_forms, derive_reviews, get_oracle
from tests.helpers import TinyRepo

BEFORE = PADDING.lstrip()
AFTER = BEFORE + "\n\n" + RIGHT + PADDING


class DatedHistory(TinyRepo):
    """A repository whose commits have chosen years."""

    def later(self, year: int, message: str, files: dict[str, str | None]) -> str:
        with mock.patch.dict(os.environ):
            when = f"{year}-06-01T12:00:00+0000"
            self.write(files)
            self.git("add", "-A")
            self.git("commit", "-q", "-m", message, env={"GIT_AUTHOR_DATE": when, "GIT_COMMITTER_DATE": when})
        return self.git("rev-parse", "HEAD")


def feature(folder: Path) -> tuple[DatedHistory, str, str]:
    """Return a repository with a change of March 2024 that adds a function, its base and its merge."""
    repo = DatedHistory(folder / "shop")
    base = repo.commit("Begin", {"shop/sums.py": BEFORE})
    return repo, base, repo.commit("Add totals", {"shop/sums.py": AFTER, "tests/test_sums.py": "def test(): pass\n"})


def derive_feature_reviews(
    repo: TinyRepo, folder: Path, base: str, merge: str, **fields: object
) -> list[Task] | KindRejection:
    return derive_reviews(repo, folder, base, merge, change_kind=ChangeKind.FEATURE, **fields)


def test_a_change_without_a_later_fix_is_clean(tmp_path: Path) -> None:
    repo, base, merge = feature(tmp_path)
    repo.later(2024, "Fix something else", {"shop/other.py": "X = 1\n"})
    repo.later(2026, "Fix a far line", {"shop/sums.py": AFTER.replace("x + 2", "x - 2", 1)})
    task = derive_forms(derive_feature_reviews(repo, tmp_path, base, merge))["clean"]
    oracle, artifacts = get_oracle(task), create_services(tmp_path).artifacts
    assert (oracle.defects, oracle.tree, oracle.others) == ((), merge, ())
    assert json.loads(artifacts.get_text(oracle.files)) == {"shop/sums.py": AFTER}
    diff = artifacts.get_text(oracle.diff or "")
    assert "+def total(items):" in diff
    assert "test_sums" not in diff
    assert "\nindex " not in diff


@pytest.mark.parametrize(
    ("message", "with_tests", "is_clean"),
    [
        ("Count all items of a list", True, False),
        ("Count all items of a list", False, True),
        ("Add counting of all items", True, True),
    ],
    ids=["tests show it", "no tests", "another kind of work"],
)
def test_a_later_commit_that_replaces_the_lines_and_changes_tests_is_a_fix(
    message: str, with_tests: bool, is_clean: bool, tmp_path: Path
) -> None:
    repo, base, merge = feature(tmp_path)
    changed: dict[str, str | None] = {"shop/sums.py": AFTER.replace("range(len(items))", "range(0, len(items))")}
    repo.later(2025, message, changed | ({"tests/test_sums.py": "def test_all(): pass\n"} if with_tests else {}))
    repo.later(2027, "More", {"README.md": "# shop\n"})
    assert ("clean" in derive_forms(derive_feature_reviews(repo, tmp_path, base, merge))) == is_clean


@pytest.mark.parametrize(
    ("message", "fixed"),
    [
        ("Fix totals of nothing", "    for i in range(max(len(items), 0)):"),
        ("Correct it\n\nThis was a bug.", "    if not items:\n        return 0\n    for i in range(len(items)):"),
    ],
    ids=["a line was changed", "a line was added between"],
)
def test_a_change_with_a_later_fix_is_not_clean(tmp_path: Path, message: str, fixed: str) -> None:
    repo, base, merge = feature(tmp_path)
    moved = repo.later(2024, "Move things down", {"shop/sums.py": "# Sums.\n\n\n" + AFTER})
    assert moved
    repo.later(
        2025, message, {"shop/sums.py": "# Sums.\n\n\n" + AFTER.replace("    for i in range(len(items)):", fixed)}
    )
    repo.later(2027, "More", {"README.md": "# shop\n"})
    rejection = derive_feature_reviews(repo, tmp_path, base, merge)
    assert isinstance(rejection, KindRejection)
    assert f"touches its lines: {message.splitlines()[0]}" in rejection.detail


def test_a_later_change_that_is_no_fix_is_ignored(tmp_path: Path) -> None:
    repo, base, merge = feature(tmp_path)
    repo.later(2025, "Use sum()", {"shop/sums.py": BEFORE + "\n\ndef total(items):\n    return sum(items)\n" + PADDING})
    repo.later(2026, "Fix the new totals", {"shop/sums.py": BEFORE + PADDING})
    assert set(derive_forms(derive_feature_reviews(repo, tmp_path, base, merge))) == {"clean"}


def test_a_change_with_less_than_a_year_of_history_is_not_clean(tmp_path: Path) -> None:
    repo, base, merge = feature(tmp_path)
    repo.later(2024, "More", {"README.md": "# shop\n"})
    rejection = derive_feature_reviews(repo, tmp_path, base, merge)
    assert isinstance(rejection, KindRejection)
    assert "clean: the history continues for 91 days, 365 are required" in rejection.detail


@pytest.mark.parametrize("source", ["pypi:shop", "instances:tasks.jsonl"])
def test_sources_without_commit_messages_give_no_clean_reviews(tmp_path: Path, source: str) -> None:
    from derivers.review.clean import review_clean_change  # noqa: PLC0415
    from derivers.review.construction import NotReviewableError  # noqa: PLC0415
    from derivers.review.history import ReviewHistory as Read  # noqa: PLC0415
    from derivers.review.subject import ReviewSubject  # noqa: PLC0415 - this test alone asks one form directly
    from tests.derivers.review_helpers import create_lineage  # noqa: PLC0415

    repo, base, merge = feature(tmp_path)
    services = create_services(tmp_path)
    lineage = create_lineage(repo, services, base, merge)
    candidate = lineage.candidate.model_copy(update={"source": source})
    with pytest.raises(NotReviewableError) as caught:
        review_clean_change(
            ReviewSubject(candidate, Read(services.clones.open(f"git:{repo.path}")), services.artifacts)
        )
    assert caught.value.reason == Reason.NO_LATER_HISTORY


def test_a_change_outside_the_default_branch_is_rejected(tmp_path: Path) -> None:
    repo, base, merge = feature(tmp_path)
    repo.git("checkout", "-q", "-b", "side", base)
    repo.later(2026, "Another world", {"README.md": "# shop\n"})
    rejection = derive_feature_reviews(repo, tmp_path, base, merge)
    assert isinstance(rejection, KindRejection)
    assert "is not on the default branch" in rejection.detail


def test_a_change_of_comments_alone_gives_no_clean_review(tmp_path: Path) -> None:
    repo = DatedHistory(tmp_path / "shop")
    base = repo.commit("Begin", {"shop/sums.py": BEFORE})
    merge = repo.commit("Explain", {"shop/sums.py": "# Sums.\nimport os\n" + BEFORE})
    repo.later(2027, "More", {"README.md": "# shop\n"})
    rejection = derive_feature_reviews(repo, tmp_path, base, merge)
    assert isinstance(rejection, KindRejection)
    assert "only comments, imports" in rejection.detail


# ------------------------------------------------------------------------------------------------------ line tracing


def commit(message: str, *edits: tuple[int, int, int], gone: bool = False) -> LaterCommit:
    changes = {"a.py": [LineEdit(*edit) for edit in edits]} if edits else {}
    return LaterCommit("c" * 40, message, changes, frozenset({"a.py"} if gone else ()))


@pytest.mark.parametrize(
    ("later", "fixed"),
    [
        ([commit("Fix", (10, 1, 1))], True),
        ([commit("Fix", (9, 0, 2))], True),  # directly before the first line
        ([commit("Fix", (12, 0, 1))], True),  # directly after the last
        ([commit("Fix", (8, 0, 2))], False),
        ([commit("Fix", (13, 2, 0))], False),
        ([commit("More", (1, 0, 5)), commit("Fix", (15, 1, 1))], True),
        ([commit("More", (1, 0, 5)), commit("Fix", (10, 1, 1))], False),
        ([commit("More", (1, 3, 0)), commit("Fix", (7, 1, 1))], True),
        ([commit("More", (10, 3, 0)), commit("Fix", (10, 1, 1))], False),  # no line is left
        ([commit("More", (2, 1, 3), (11, 1, 0)), commit("Fix", (13, 1, 0))], True),  # the third line is now the second
        ([commit("Fix", gone=True)], True),
        ([commit("Move files", gone=True), commit("Fix", (10, 1, 1))], False),
    ],
)
def test_lines_are_traced_through_later_commits(later: list[LaterCommit], fixed: bool) -> None:
    assert (find_first_fix({"a.py": [10, 11, 12]}, later) is not None) == fixed


def test_edits_are_parsed_from_any_diff() -> None:
    diff = """\
diff --git a/a.sql b/a.sql
--- a/a.sql
+++ b/a.sql
@@ -3 +3,2 @@ create
--- a/b.sql
+++ b/c.sql
+@@ -1 +1 @@
\\ No newline at end of file
@@ -9,0 +11 @@
+x
diff --git a/old.py b/old.py
deleted file mode 100644
--- a/old.py
+++ /dev/null
@@ -1 +0,0 @@
-x
diff --git a/new.py b/new.py
new file mode 100644
--- /dev/null
+++ b/new.py
@@ -0,0 +1 @@
+x
"""
    edits, gone = parse_edits(diff)
    assert edits["a.sql"] == [LineEdit(3, 1, 2), LineEdit(9, 0, 1)]
    assert gone == {"old.py"}

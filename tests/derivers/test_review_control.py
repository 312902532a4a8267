"""When a change counts as clean: its lines are followed through what came later."""

from __future__ import annotations

import json
import os
from pathlib import Path
from unittest import mock

import pytest

from derivers.base import Refusal
from derivers.review.control import Edit, Later, edits_of, first_fix
from derivers.review.material import Reason
from taskdb.records import Task
from taskdb.tags import ChangeKind
from tests.derivers.reviewed import PADDING, RIGHT, forms_of, oracle_of, reviews_of, services_at
from tests.helpers import TinyRepo

BEFORE = PADDING.lstrip()
AFTER = BEFORE + "\n\n" + RIGHT + PADDING


class History(TinyRepo):
    """Commits of which each may be made in another year."""

    def later(self, year: int, message: str, files: dict[str, str | None]) -> str:
        with mock.patch.dict(os.environ):
            when = f"{year}-06-01T12:00:00+0000"
            self.write(files)
            self.git("add", "-A")
            self.git("commit", "-q", "-m", message, env={"GIT_AUTHOR_DATE": when, "GIT_COMMITTER_DATE": when})
        return self.git("rev-parse", "HEAD")


def feature(folder: Path) -> tuple[History, str, str]:
    """A repository with a change that adds a function, made in March 2024; its base and merge."""
    repo = History(folder / "shop")
    base = repo.commit("Begin", {"shop/sums.py": BEFORE})
    return repo, base, repo.commit("Add totals", {"shop/sums.py": AFTER, "tests/test_sums.py": "def test(): pass\n"})


def made(repo: TinyRepo, folder: Path, base: str, merge: str, **fields: object) -> list[Task] | Refusal:
    return reviews_of(repo, folder, base, merge, kind=ChangeKind.FEATURE, **fields)


def test_a_change_that_nobody_had_to_mend_is_a_control(tmp_path: Path) -> None:
    repo, base, merge = feature(tmp_path)
    repo.later(2024, "Fix something else", {"shop/other.py": "X = 1\n"})
    repo.later(2026, "Fix a far line", {"shop/sums.py": AFTER.replace("x + 2", "x - 2", 1)})
    task = forms_of(made(repo, tmp_path, base, merge))["clean"]
    oracle, artifacts = oracle_of(task), services_at(tmp_path).artifacts
    assert oracle.defects == ()
    assert json.loads(artifacts.text(oracle.files)) == {"shop/sums.py": AFTER}
    diff = artifacts.text(oracle.diff or "")
    assert "+def total(items):" in diff
    assert "test_sums" not in diff
    assert "\nindex " not in diff


@pytest.mark.parametrize(
    ("message", "mended"),
    [
        ("Fix totals of nothing", "    for i in range(max(len(items), 0)):"),
        ("Correct it\n\nThis was a bug.", "    if not items:\n        return 0\n    for i in range(len(items)):"),
    ],
    ids=["a line was changed", "a line was added between"],
)
def test_a_change_that_was_mended_later_is_none(tmp_path: Path, message: str, mended: str) -> None:
    repo, base, merge = feature(tmp_path)
    moved = repo.later(2024, "Move things down", {"shop/sums.py": "# Sums.\n\n\n" + AFTER})
    assert moved
    repo.later(
        2025, message, {"shop/sums.py": "# Sums.\n\n\n" + AFTER.replace("    for i in range(len(items)):", mended)}
    )  # fmt: skip
    repo.later(2027, "More", {"README.md": "# shop\n"})
    refused = made(repo, tmp_path, base, merge)
    assert isinstance(refused, Refusal)
    assert f"touches its lines: {message.splitlines()[0]}" in refused.detail


def test_a_later_change_of_its_lines_that_is_no_fix_does_not_matter(tmp_path: Path) -> None:
    repo, base, merge = feature(tmp_path)
    repo.later(2025, "Use sum()", {"shop/sums.py": BEFORE + "\n\ndef total(items):\n    return sum(items)\n" + PADDING})
    repo.later(2026, "Fix the new totals", {"shop/sums.py": BEFORE + PADDING})
    assert set(forms_of(made(repo, tmp_path, base, merge))) == {"clean"}


def test_nobody_knows_what_becomes_of_a_young_change(tmp_path: Path) -> None:
    repo, base, merge = feature(tmp_path)
    repo.later(2024, "More", {"README.md": "# shop\n"})
    refused = made(repo, tmp_path, base, merge)
    assert isinstance(refused, Refusal)
    assert "clean: the history goes on for 91 days, 365 are asked for" in refused.detail


@pytest.mark.parametrize("source", ["pypi:shop", "instances:tasks.jsonl"])
def test_where_the_history_tells_no_fixes_there_are_no_controls(tmp_path: Path, source: str) -> None:
    from derivers.review.change import Under  # noqa: PLC0415 - this test alone asks one form directly
    from derivers.review.control import clean  # noqa: PLC0415
    from derivers.review.history import History as Read  # noqa: PLC0415
    from derivers.review.material import Unfit  # noqa: PLC0415
    from tests.derivers.reviewed import lineage_of  # noqa: PLC0415

    repo, base, merge = feature(tmp_path)
    services = services_at(tmp_path)
    lineage = lineage_of(repo, services, base, merge)
    candidate = lineage.candidate.model_copy(update={"source": source})
    with pytest.raises(Unfit) as caught:
        clean(Under(candidate, Read(services.clones.open(f"git:{repo.path}")), services.artifacts))
    assert caught.value.reason == Reason.NO_LATER_HISTORY


def test_a_change_of_another_branch_is_not_followed(tmp_path: Path) -> None:
    repo, base, merge = feature(tmp_path)
    repo.git("checkout", "-q", "-b", "side", base)
    repo.later(2026, "Another world", {"README.md": "# shop\n"})
    refused = made(repo, tmp_path, base, merge)
    assert isinstance(refused, Refusal)
    assert "is not in the default line" in refused.detail


def test_a_change_of_comments_alone_is_no_control(tmp_path: Path) -> None:
    repo = History(tmp_path / "shop")
    base = repo.commit("Begin", {"shop/sums.py": BEFORE})
    merge = repo.commit("Explain", {"shop/sums.py": "# Sums.\nimport os\n" + BEFORE})
    repo.later(2027, "More", {"README.md": "# shop\n"})
    refused = made(repo, tmp_path, base, merge)
    assert isinstance(refused, Refusal)
    assert "nothing but comments" in refused.detail


# ------------------------------------------------------------------------------------------------------ following lines


def commit(message: str, *edits: tuple[int, int, int], gone: bool = False) -> Later:
    found = {"a.py": [Edit(*edit) for edit in edits]} if edits else {}
    return Later("c" * 40, message, found, frozenset({"a.py"} if gone else ()))


@pytest.mark.parametrize(
    ("later", "mended"),
    [
        ([commit("Fix", (10, 1, 1))], True),
        ([commit("Fix", (9, 0, 2))], True),  # right before the first line
        ([commit("Fix", (12, 0, 1))], True),  # right behind the last
        ([commit("Fix", (8, 0, 2))], False),
        ([commit("Fix", (13, 2, 0))], False),
        ([commit("More", (1, 0, 5)), commit("Fix", (15, 1, 1))], True),
        ([commit("More", (1, 0, 5)), commit("Fix", (10, 1, 1))], False),
        ([commit("More", (1, 3, 0)), commit("Fix", (7, 1, 1))], True),
        ([commit("More", (10, 3, 0)), commit("Fix", (10, 1, 1))], False),  # nothing is left of them
        ([commit("More", (2, 1, 3), (11, 1, 0)), commit("Fix", (13, 1, 0))], True),  # the third is now the second
        ([commit("Fix", gone=True)], True),
        ([commit("Move files", gone=True), commit("Fix", (10, 1, 1))], False),
    ],
)
def test_lines_are_followed_through_later_commits(later: list[Later], mended: bool) -> None:
    assert (first_fix({"a.py": [10, 11, 12]}, later) is not None) == mended


def test_edits_are_read_off_a_diff_whatever_its_lines_look_like() -> None:
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
    edits, gone = edits_of(diff)
    assert edits["a.sql"] == [Edit(3, 1, 2), Edit(9, 0, 1)]
    assert gone == {"old.py"}

"""Review tasks from review threads."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from derivers.base import KindRejection
from derivers.review import derive_review
from taskdb.records import Task
from taskdb.records.discussion import AuthorKind, Comment, Discussion, ReviewThread
from taskdb.records.oracles import LaterFix
from taskdb.records.tags import ChangeKind
from tests.derivers.review_helpers import (
    PADDING,
    RIGHT,
    TOTAL,
    create_lineage,
    create_services,
    derive_forms,
    get_oracle,
)
from tests.helpers import TinyRepo

SAID = "This leaves out the last item. `len(items)` is enough. I have seen it elsewhere, too."
BEFORE = PADDING.lstrip()
FIRST = BEFORE + TOTAL + PADDING
MERGED = BEFORE + RIGHT + PADDING
LINE = FIRST.split("\n").index("    for i in range(len(items) - 1):") + 1


def pull(folder: Path) -> tuple[TinyRepo, str, str, str]:
    """Return a squashed pull request: base, the version with comments, merge."""
    repo = TinyRepo(folder / "shop")
    repo.commit("Begin", {"shop/sums.py": BEFORE})
    repo.git("checkout", "-q", "-b", "change")
    commented = repo.commit("Add totals", {"shop/sums.py": FIRST})
    repo.commit("As told", {"shop/sums.py": MERGED})
    repo.git("checkout", "-q", "main")
    base = repo.commit("Meanwhile", {"README.md": "# shop\n"})
    merge = repo.commit("Add totals (#1)", {"shop/sums.py": MERGED})
    return repo, base, commented, merge


def thread(commit: str, text: str = SAID, **changes: Any) -> ReviewThread:
    who = changes.pop("who", AuthorKind.USER)
    fields: dict[str, Any] = {
        "path": "shop/sums.py",
        "side": "right",
        "line": None,
        "start_line": None,
        "original_line": LINE,
        "original_start_line": None,
        "commit": commit,
        "diff_hunk": "",
        "resolved": True,
        "outdated": True,
        "remarks": (Comment(author="Bo", author_kind=who, at="2024-03-02T12:00:00+00:00", text=text),),
    }
    return ReviewThread(**fields | changes)


def reviewed(folder: Path, *said: ReviewThread, pulled: tuple[TinyRepo, str, str, str]) -> list[Task] | KindRejection:
    repo, base, _, merge = pulled
    services = create_services(folder)
    discussion = services.artifacts.put_text(Discussion(threads=said).model_dump_json())
    lineage = create_lineage(repo, services, base, merge, change_kind=ChangeKind.FEATURE, discussion=discussion)
    return derive_review(lineage, services)


def test_a_thread_that_led_to_a_change_is_a_defect_of_the_diff_at_that_time(tmp_path: Path) -> None:
    pulled = pull(tmp_path)
    task = derive_forms(reviewed(tmp_path, thread(pulled[2]), pulled=pulled))["threads"]
    oracle, artifacts = get_oracle(task), create_services(tmp_path).artifacts
    (defect,) = oracle.defects
    assert (defect.path, defect.first_line, defect.last_line) == ("shop/sums.py", LINE, LINE)
    assert defect.claim == "This leaves out the last item. `len(items)` is enough."
    assert json.loads(artifacts.get_text(oracle.files)) == {"shop/sums.py": FIRST}
    diff = artifacts.get_text(oracle.diff or "")
    assert "range(len(items) - 1)" in diff
    assert "README" not in diff  # a later change of the default branch is not part of the pull request
    assert "last item" not in task.problem_statement
    assert oracle.tree == pulled[2]


def test_comments_on_a_version_after_the_merge_give_no_review(tmp_path: Path) -> None:
    repo, base, commented, merge = pull(tmp_path)
    after = repo.commit("Break it again", {"shop/sums.py": FIRST})
    pulled = (repo, base, commented, merge)
    assert "threads" not in derive_forms(reviewed(tmp_path, thread(after), pulled=pulled))


def test_later_fixes_of_a_squashed_change_are_traced_to_the_version_with_comments(tmp_path: Path) -> None:
    repo, base, commented, merge = pull(tmp_path)
    lines = FIRST.split("\n")
    at = len(lines) - lines[::-1].index("    return x + 8")  # among the lines that the change adds
    before, after = ("# sums\n" + MERGED).rsplit("x + 8", 1)
    repo.commit("Shift", {"shop/sums.py": f"{before}x + 8{after}"})
    repo.commit("Fix a new helper", {"shop/sums.py": f"{before}x - 8{after}"})
    repo.commit("Fix an old helper", {"shop/sums.py": f"{before.replace('x + 1', 'x - 1', 1)}x - 8{after}"})
    pulled = (repo, base, commented, merge)
    oracle = get_oracle(derive_forms(reviewed(tmp_path, thread(commented), pulled=pulled))["threads"])
    later = LaterFix(path="shop/sums.py", first_line=at, last_line=at, message="Fix a new helper")
    assert oracle.others == (later,)


@pytest.mark.parametrize(
    "said",
    [
        {"text": "nit: call it `count`, as everywhere else"},
        {"text": "Nice, I like that one a lot"},
        {"text": "Why?"},
        {"who": AuthorKind.BOT},
        {"side": "left"},
        {"path": "README.md"},
        {"original_line": 2},  # not a line of the diff
        {"original_line": LINE + 6},  # a new line that was never changed
        {"original_line": None},
        {"commit": "f" * 40},  # a commit that a rewritten branch no longer contains
        {"commit": None},
        {"remarks": ()},
    ],
    ids="-".join,
)
def test_praise_and_threads_without_a_later_change_are_no_defects(tmp_path: Path, said: dict[str, Any]) -> None:
    pulled = pull(tmp_path)
    rejection = reviewed(tmp_path, thread(**{"commit": pulled[2], **said}), pulled=pulled)
    assert isinstance(rejection, KindRejection)
    assert "threads: " in rejection.detail


def test_each_thread_is_one_defect_with_its_own_claim(tmp_path: Path) -> None:
    pulled = pull(tmp_path)
    said = [
        thread(pulled[2]),
        thread(pulled[2], "Once more on the same line of it"),
        thread(pulled[2], "I would rather sum it in one go here", original_start_line=LINE, original_line=LINE + 1),
        thread("f" * 40, "Of another version of the change"),
    ]
    oracle = get_oracle(derive_forms(reviewed(tmp_path, *said, pulled=pulled))["threads"])
    assert [(defect.first_line, defect.last_line) for defect in oracle.defects] == [(LINE, LINE), (LINE, LINE + 1)]
    assert len({defect.claim for defect in oracle.defects}) == 2


def test_a_change_without_comments_gives_no_threads_review(tmp_path: Path) -> None:
    pulled = pull(tmp_path)
    rejection = reviewed(tmp_path, pulled=pulled)
    assert isinstance(rejection, KindRejection)
    assert "threads: no reviewer commented" in rejection.detail

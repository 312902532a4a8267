"""What reviewers said, as a review task."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from derivers.base import Refusal
from derivers.review import review
from taskdb.discussion import AuthorKind, Discussion, Remark, ReviewThread
from taskdb.records import Task
from taskdb.tags import ChangeKind
from tests.derivers.reviewed import PADDING, RIGHT, TOTAL, forms_of, lineage_of, oracle_of, services_at
from tests.helpers import TinyRepo

SAID = "This leaves out the last item. `len(items)` is enough. I have seen it elsewhere, too."
BEFORE = PADDING.lstrip()
FIRST = BEFORE + TOTAL + PADDING
MERGED = BEFORE + RIGHT + PADDING
LINE = FIRST.split("\n").index("    for i in range(len(items) - 1):") + 1


def pull(folder: Path) -> tuple[TinyRepo, str, str, str]:
    """A squashed pull request: base, the version that was commented, merge."""
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
        "path": "shop/sums.py", "side": "right", "line": None, "start_line": None, "original_line": LINE,
        "original_start_line": None, "commit": commit, "diff_hunk": "", "resolved": True, "outdated": True,
        "remarks": (Remark(author="Bo", author_kind=who, at="2024-03-02T12:00:00+00:00", text=text),),
    }  # fmt: skip
    return ReviewThread(**fields | changes)


def reviewed(folder: Path, *said: ReviewThread, pulled: tuple[TinyRepo, str, str, str]) -> list[Task] | Refusal:
    repo, base, _, merge = pulled
    services = services_at(folder)
    discussion = services.artifacts.put_text(Discussion(threads=said).model_dump_json())
    lineage = lineage_of(repo, services, base, merge, kind=ChangeKind.FEATURE, discussion=discussion)
    return review(lineage, services)


def test_a_thread_that_led_to_a_change_is_a_finding_on_the_diff_of_the_time(tmp_path: Path) -> None:
    pulled = pull(tmp_path)
    task = forms_of(reviewed(tmp_path, thread(pulled[2]), pulled=pulled))["threads"]
    oracle, artifacts = oracle_of(task), services_at(tmp_path).artifacts
    (defect,) = oracle.defects
    assert (defect.path, defect.first_line, defect.last_line) == ("shop/sums.py", LINE, LINE)
    assert defect.claim == "This leaves out the last item. `len(items)` is enough."
    assert json.loads(artifacts.text(oracle.files)) == {"shop/sums.py": FIRST}
    diff = artifacts.text(oracle.diff or "")
    assert "range(len(items) - 1)" in diff
    assert "README" not in diff  # the main line's own later change is none of the pull request's
    assert "last item" not in task.problem_statement


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
        {"original_line": LINE + 6},  # a new line that stayed as it was
        {"original_line": None},
        {"commit": "f" * 40},  # a version that a rewritten branch has lost
        {"commit": None},
        {"remarks": ()},
    ],
    ids="-".join,
)
def test_chatter_and_what_changed_nothing_is_no_finding(tmp_path: Path, said: dict[str, Any]) -> None:
    pulled = pull(tmp_path)
    refused = reviewed(tmp_path, thread(**{"commit": pulled[2], **said}), pulled=pulled)
    assert isinstance(refused, Refusal)
    assert "threads: " in refused.detail


def test_of_several_threads_each_counts_once_with_its_own_words(tmp_path: Path) -> None:
    pulled = pull(tmp_path)
    said = [
        thread(pulled[2]),
        thread(pulled[2], "Once more on the same line of it"),
        thread(pulled[2], "I would rather sum it in one go here", original_start_line=LINE, original_line=LINE + 1),
        thread("f" * 40, "Of another version of the change"),
    ]
    oracle = oracle_of(forms_of(reviewed(tmp_path, *said, pulled=pulled))["threads"])
    assert [(one.first_line, one.last_line) for one in oracle.defects] == [(LINE, LINE), (LINE, LINE + 1)]
    assert len({one.claim for one in oracle.defects}) == 2


def test_a_change_of_which_nobody_spoke_has_no_threads(tmp_path: Path) -> None:
    pulled = pull(tmp_path)
    refused = reviewed(tmp_path, pulled=pulled)
    assert isinstance(refused, Refusal)
    assert "threads: no reviewer said anything" in refused.detail

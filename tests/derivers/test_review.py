"""Reviews built from a fix: the code before it, and the diff that introduced the bug."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import pytest

from derivers.base import KindRejection
from derivers.review import build_diff_review, derive_review
from derivers.review.construction import MAX_CHANGED, NotReviewableError, Reason
from taskdb.artifacts import Artifacts
from taskdb.records import FailureKind, Kind
from taskdb.records.lineage import Lineage
from taskdb.records.oracles import Defect
from taskdb.records.tags import ChangeKind
from tests import records
from tests.derivers.review_helpers import (
    PADDING,
    RIGHT,
    STATEMENT,
    TOTAL,
    create_lineage,
    create_services,
    derive_forms,
    derive_reviews,
    get_oracle,
    get_rejection,
)
from tests.helpers import TinyRepo

OTHERS = {"shop/cart.py": PADDING.lstrip(), "shop/tests/test_it.py": "def test(): pass\n", "README.md": "# shop\n"}


def shop(folder: Path) -> tuple[TinyRepo, str, str]:
    """Return a repository whose second commit introduced a bug that the fourth one fixes, with its base and merge."""
    repo = TinyRepo(folder / "shop")
    repo.commit("Begin", {"shop/sums.py": PADDING.lstrip(), **OTHERS})
    repo.commit("Add totals", {"shop/sums.py": PADDING.lstrip() + "\n\n" + TOTAL + PADDING})
    base = repo.commit("Explain", {"README.md": "# shop\n\nSums.\n"})
    return repo, base, repo.commit("Fix totals", {"shop/sums.py": PADDING.lstrip() + "\n\n" + RIGHT + PADDING})


def line_of(text: str, words: str) -> int:
    return next(n for n, line in enumerate(text.split("\n"), 1) if words in line)


def test_a_fix_gives_the_code_before_it_with_the_changed_lines_as_the_defect(tmp_path: Path) -> None:
    repo, base, merge = shop(tmp_path)
    task = derive_forms(derive_reviews(repo, tmp_path, base, merge))["before-fix"]
    oracle = get_oracle(task)
    files = json.loads(create_services(tmp_path).artifacts.get_text(oracle.files))
    at = line_of(files["shop/sums.py"], "range(len(items) - 1)")
    assert oracle.defects == (Defect(path="shop/sums.py", first_line=at, last_line=at, claim="Totals are too small"),)
    assert files["shop/sums.py"].encode() == (repo.git("show", f"{base}:shop/sums.py") + "\n").encode()
    assert sorted(files) == ["shop/cart.py", "shop/sums.py"]  # a file of the same folder, but no test
    assert oracle.diff is None


def test_a_fix_gives_the_diff_that_introduced_the_bug(tmp_path: Path) -> None:
    repo, base, merge = shop(tmp_path)
    oracle = get_oracle(derive_forms(derive_reviews(repo, tmp_path, base, merge))["diff"])
    artifacts = create_services(tmp_path).artifacts
    files, diff = json.loads(artifacts.get_text(oracle.files)), artifacts.get_text(oracle.diff or "")
    at = line_of(files["shop/sums.py"], "range(len(items) - 1)")
    assert [(located.path, located.first_line, located.last_line) for located in oracle.defects] == [
        ("shop/sums.py", at, at)
    ]
    assert "+def total(items):" in diff
    assert "README" not in diff
    assert "\nindex " not in diff


def test_a_review_task_has_no_environment_and_does_not_reveal_its_form(tmp_path: Path) -> None:
    repo, base, merge = shop(tmp_path)
    made = derive_reviews(repo, tmp_path, base, merge)
    tasks = derive_forms(made)
    assert set(tasks) == {"before-fix", "diff"}
    for task in tasks.values():
        assert (task.kind, task.parent, task.environment) == (Kind.REVIEW, task.candidate, "none")
        assert (task.plan, task.eval_script, task.image, task.hints) == (None, None, "", "")
        assert task.name.startswith("ada__greet-1.review-")
        for word in ("Totals", "too small", "last item", merge[:7], "len(items)"):
            assert word not in task.problem_statement
        assert '{"findings": []}' in task.problem_statement
        assert "`shop/sums.py`" in task.problem_statement
    again = derive_reviews(repo, tmp_path, base, merge)
    assert made == again


def test_a_change_that_is_no_fix_gives_no_review_of_a_defect(tmp_path: Path) -> None:
    repo, base, merge = shop(tmp_path)
    reason, detail = get_rejection(repo, tmp_path, base, merge, change_kind=ChangeKind.FEATURE)
    assert reason == Reason.NOT_A_FIX
    assert "clean: the history continues for 0 days" in detail


@pytest.mark.parametrize(
    ("statement", "fix"),
    [("Totals\n\ntotal([1]) gives 0, it should be 1.", True), ("Totals\n\nTell how they are made.", False)],
)
def test_a_change_of_another_kind_is_a_fix_when_its_statement_describes_a_fault(
    tmp_path: Path, statement: str, fix: bool
) -> None:
    repo, base, merge = shop(tmp_path)
    made = derive_reviews(
        repo, tmp_path, base, merge, change_kind=ChangeKind.DOCUMENTATION, problem_statement=statement
    )
    assert set(derive_forms(made)) == ({"before-fix", "diff"} if fix else set())


def test_a_change_without_a_description_of_the_fault_has_no_claim(tmp_path: Path) -> None:
    repo, base, merge = shop(tmp_path)
    statement = "#12\n\n- [ ] #3\n\n```\ntotal([1])\n```\n<!-- tell us more -->"
    assert get_rejection(repo, tmp_path, base, merge, problem_statement=statement)[0] == Reason.NO_CLAIM
    tasks = derive_forms(derive_reviews(repo, tmp_path, base, merge, problem_statement=f"Fixes #12\n\n{STATEMENT}"))
    assert get_oracle(tasks["diff"]).defects[0].claim == "Totals are too small"


def test_the_location_of_a_pure_addition_is_the_lines_around_it(tmp_path: Path) -> None:
    repo = TinyRepo(tmp_path / "shop")
    before = PADDING.lstrip() + "\n\ndef half(n):\n    m = n / 2\n    return m\n"
    base = repo.commit("Begin", {"shop/sums.py": before})
    after = before.replace("    return m\n", "    if n < 0:\n        raise ValueError(n)\n    return m\n")
    merge = repo.commit("Fix", {"shop/sums.py": after})
    (defect,) = get_oracle(derive_forms(derive_reviews(repo, tmp_path, base, merge))["before-fix"]).defects
    at = line_of(before, "m = n / 2")
    assert (defect.first_line, defect.last_line) == (at, at + 1)


@pytest.mark.parametrize(
    ("before", "after"),
    [
        ("import os\n\nX = 1\n", "import os\nimport sys\n\nX = 1\n"),
        ("from os import (\n    path\n)\nX = 1\n", "from os import (\n    path,\n    sep,\n)\nX = 1\n"),
        ("# old words\nX = 1\n", "# new words\nX = 1\n"),
        ("X = [1,\n     2]\n", "X = [1, 2]\n"),
        ("X = 1\n", "X = 1\n\n\ndef new():\n    return 2\n"),
        ('"""Old."""\nX = 1\n', '"""New."""\nX = 1\n'),
    ],
    ids=["import", "list of imports", "comment", "wrapped", "new function", "docstring"],
)
def test_lines_that_cannot_be_faulty_are_no_location(tmp_path: Path, before: str, after: str) -> None:
    repo = TinyRepo(tmp_path / "shop")
    base = repo.commit("Begin", {"shop/sums.py": PADDING + before})
    merge = repo.commit("Fix", {"shop/sums.py": PADDING + after})
    assert get_rejection(repo, tmp_path, base, merge)[0] == Reason.NO_SOURCE_LINES


def test_a_file_of_one_line_is_rejected_as_too_small(tmp_path: Path) -> None:
    repo = TinyRepo(tmp_path / "shop")
    base = repo.commit("Begin", {"shop/rate.py": "RATE = 0.91\n"})
    merge = repo.commit("Fix", {"shop/rate.py": "RATE = 0.19\n"})
    reason, detail = get_rejection(repo, tmp_path, base, merge)
    assert reason == Reason.TOO_LITTLE
    assert "diff: 1 of 1 lines" in detail


@pytest.mark.parametrize(("lines", "forms"), [(3_000, {"before-fix"}), (30_000, set[str]())])
def test_files_are_limited_in_size(tmp_path: Path, lines: int, forms: set[str]) -> None:
    repo = TinyRepo(tmp_path / "shop")
    text = "".join(f"X{n} = {n}\n" for n in range(lines))
    base = repo.commit("Begin", {"shop/sums.py": text})
    merge = repo.commit("Fix", {"shop/sums.py": text.replace("X7 = 7\n", "X7 = 8\n")})
    made = derive_reviews(repo, tmp_path, base, merge)
    assert set(derive_forms(made)) == forms
    if not forms:
        assert get_rejection(repo, tmp_path, base, merge)[0] == Reason.TOO_LARGE


def test_a_fix_in_too_many_locations_is_rejected(tmp_path: Path) -> None:
    repo = TinyRepo(tmp_path / "shop")
    text = "".join(f"X{n} = {n}\n" + "Y = 0\n" * 9 for n in range(20))
    base = repo.commit("Begin", {"shop/sums.py": text})
    merge = repo.commit("Fix", {"shop/sums.py": text.replace("X", "Z")})
    assert get_rejection(repo, tmp_path, base, merge)[0] == Reason.TOO_SCATTERED


def test_a_fix_of_lines_from_many_commits_has_no_single_origin(tmp_path: Path) -> None:
    repo = TinyRepo(tmp_path / "shop")
    files = [PADDING.lstrip() + "".join(f"A{n} = {n}\n" for n in range(k)) for k in range(1, 5)]
    for text in files:
        base = repo.commit("More", {"shop/sums.py": text})
    merge = repo.commit("Fix", {"shop/sums.py": files[-1].replace("A", "B")})
    made = derive_reviews(repo, tmp_path, base, merge)
    assert set(derive_forms(made)) == {"before-fix"}


def test_blame_ignores_white_space_and_moves_within_a_file(tmp_path: Path) -> None:
    repo = TinyRepo(tmp_path / "shop")
    repo.commit("Begin", {"shop/sums.py": PADDING.lstrip()})
    brought = repo.commit("Add totals", {"shop/sums.py": PADDING.lstrip() + TOTAL + PADDING})
    wider = TOTAL.replace("    for i", "    if items:\n      for i").replace("        n +=", "          n +=")
    base = repo.commit("Indent", {"shop/sums.py": PADDING.lstrip() + wider + PADDING})
    merge = repo.commit("Fix", {"shop/sums.py": PADDING.lstrip() + wider.replace(" - 1", "") + PADDING})
    oracle = get_oracle(derive_forms(derive_reviews(repo, tmp_path, base, merge))["diff"])
    text = repo.git("show", f"{brought}:shop/sums.py")
    at = line_of(text, "range(len(items) - 1)")
    assert [(located.first_line, located.last_line) for located in oracle.defects] == [(at, at)]


def test_unreadable_files_beside_the_fix_are_excluded(tmp_path: Path) -> None:
    repo = TinyRepo(tmp_path / "shop")
    latin = "# gr\u00fc\u00dfe\nY = 1\n".encode("latin-1")
    other = TinyRepo(tmp_path / "other")
    other.commit("Other", {"x.py": "X = 1\n"})
    repo.commit(
        "Begin",
        {
            "shop/sums.py": PADDING.lstrip() + TOTAL,
            "shop/latin.py": latin,
            "shop/bytes.py": b"\0\1\2" * 99,
            "shop/old.py": PADDING,
            "shop/gone.py": "Z = 1\n" * 5,
            "shop/na\u00efve.py": PADDING + "N = 1\n",
        },
    )
    (repo.path / "shop" / "link.py").symlink_to("sums.py")
    repo.git("-c", "protocol.file.allow=always", "submodule", "-q", "add", str(other.path), "shop/sub.py")
    base = repo.commit("More", {})
    repo.git("mv", "shop/old.py", "shop/new.py")
    (repo.path / "shop" / "link.py").unlink()
    (repo.path / "shop" / "link.py").symlink_to("latin.py")
    merge = repo.commit(
        "Fix",
        {
            "shop/sums.py": PADDING.lstrip() + RIGHT,
            "shop/latin.py": latin + b"Z = 1\n",
            "shop/gone.py": None,
            "shop/bytes.py": b"\0\3" * 99,
            "shop/na\u00efve.py": PADDING + "N = 2\n",
            "shop/new.py": PADDING.replace("x + 3", "x - 3"),
        },
    )
    tasks = derive_forms(derive_reviews(repo, tmp_path, base, merge))
    oracle = get_oracle(tasks["before-fix"])
    files = json.loads(create_services(tmp_path).artifacts.get_text(oracle.files))
    assert set(files) == {"shop/sums.py", "shop/old.py", "shop/gone.py", "shop/na\u00efve.py"}
    assert {located.path for located in oracle.defects} == set(files)


def test_a_published_patch_that_does_not_fit_is_rejected(tmp_path: Path) -> None:
    repo, base, merge = shop(tmp_path)
    begin = repo.git("rev-list", "--max-parents=0", "HEAD")
    services = create_services(tmp_path)
    lineage = create_lineage(repo, services, base, merge)
    moved = Lineage(candidate=lineage.candidate.model_copy(update={"base_commit": begin}))
    made = derive_review(moved, services)
    assert isinstance(made, KindRejection)
    assert made.reason == Reason.UNREADABLE


def test_a_bug_introduced_by_a_merge_gives_no_diff(tmp_path: Path) -> None:
    repo = TinyRepo(tmp_path / "shop")
    repo.commit("Begin", {"shop/sums.py": PADDING.lstrip()})
    repo.git("checkout", "-q", "-b", "side")
    repo.commit("Side", {"shop/other.py": "X = 1\n"})
    repo.git("checkout", "-q", "main")
    repo.commit("Main", {"shop/third.py": "X = 1\n"})
    repo.git("merge", "-q", "--no-ff", "--no-commit", "side")
    base = repo.commit("Merge branch 'side'", {"shop/sums.py": PADDING.lstrip() + TOTAL})
    merge = repo.commit("Fix", {"shop/sums.py": PADDING.lstrip() + RIGHT})
    assert set(derive_forms(derive_reviews(repo, tmp_path, base, merge))) == {"before-fix"}


# ----------------------------------------------------------------------------------------- diffs of other sources

DIFF = """\
diff --git a/a.py b/a.py
--- a/a.py
+++ b/a.py
@@ -1,2 +1,4 @@
 X = 1
+Y = 2
+Z = 3
 W = 4
"""
AFTER = {"a.py": "X = 1\nY = 2\nZ = 3\nW = 4\n"}


def defect(first: int, last: int) -> Defect:
    return Defect(path="a.py", first_line=first, last_line=last, claim="Y is too large")


def test_a_review_can_be_built_from_any_diff_with_a_known_defect(tmp_path: Path) -> None:
    artifacts = Artifacts(tmp_path)
    diff_review = build_diff_review(AFTER, DIFF, [defect(2, 2)], artifacts)
    assert (diff_review.target, artifacts.get_text(diff_review.diff or ""), diff_review.defects) == (
        "diff",
        DIFF,
        (defect(2, 2),),
    )
    assert json.loads(artifacts.get_text(diff_review.files)) == AFTER


def test_a_diff_that_is_defective_throughout_or_too_long_is_rejected(tmp_path: Path) -> None:
    artifacts = Artifacts(tmp_path)
    with pytest.raises(NotReviewableError) as caught:
        build_diff_review(AFTER, DIFF, [defect(2, 3)], artifacts)
    assert caught.value.reason == Reason.TOO_LITTLE
    n = MAX_CHANGED + 1
    long = f"diff --git a/a.py b/a.py\n--- a/a.py\n+++ b/a.py\n@@ -0,0 +1,{n} @@\n" + "+X = 1\n" * n
    with pytest.raises(NotReviewableError) as caught:
        build_diff_review({"a.py": "X = 1\n" * n}, long, [defect(2, 2)], artifacts)
    assert caught.value.reason == Reason.TOO_LARGE
    with pytest.raises(ValueError, match="clean review with 1 defects"):
        build_diff_review(AFTER, DIFF, [defect(2, 2)], artifacts, target="clean")


def test_files_of_other_folders_that_use_the_faulty_function_are_under_review(tmp_path: Path) -> None:
    repo = TinyRepo(tmp_path / "shop")
    text = PADDING.lstrip() + "\n\n" + TOTAL.replace("total", "sum_up") + PADDING
    using = "from shop.sums import sum_up\n\n\ndef bill(prices):\n    return sum_up(prices)\n" + PADDING
    others = {f"shop/near_{number}.py": PADDING.lstrip() for number in range(6)}
    tests = {"tests/test_sums.py": "from shop.sums import sum_up\n"}
    base = repo.commit("Begin", {"shop/sums.py": text, "office/bills.py": using, **others, **tests})
    merge = repo.commit("Fix totals", {"shop/sums.py": text.replace("len(items) - 1", "len(items)")})
    oracle = get_oracle(derive_forms(derive_reviews(repo, tmp_path, base, merge))["before-fix"])
    files = json.loads(create_services(tmp_path).artifacts.get_text(oracle.files))
    assert len(files) == 3
    assert {"shop/sums.py", "office/bills.py"} < set(files)
    assert not any(path.startswith("tests/") for path in files)


@pytest.mark.parametrize(
    ("change_kind", "failure", "is_fix"),
    [
        (ChangeKind.STYLE, FailureKind.ASSERTION, True),
        (ChangeKind.STYLE, FailureKind.ABSENT, False),
        (ChangeKind.FEATURE, FailureKind.ASSERTION, False),
    ],
)
def test_tests_that_fail_before_show_a_fix_whatever_its_words(
    change_kind: ChangeKind, failure: FailureKind, is_fix: bool, tmp_path: Path
) -> None:
    repo, base, merge = shop(tmp_path)
    services = create_services(tmp_path)
    fields = {"change_kind": change_kind, "problem_statement": "Count all items of a list"}
    lineage = create_lineage(repo, services, base, merge, **fields)
    assert "before-fix" not in derive_forms(derive_review(lineage, services))
    environment = records.make_environment(lineage.candidate)
    verification = records.make_verification(environment, FAIL_TO_PASS=(("tests/test_sums.py::test_all", failure),))
    forms = derive_forms(derive_review(replace(lineage, verification=verification), services))
    assert ("before-fix" in forms) == is_fix
    if is_fix:
        assert get_oracle(forms["before-fix"]).defects[0].claim == "Count all items of a list"
        assert forms["before-fix"].parent == lineage.candidate.id

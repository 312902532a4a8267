"""Selection of the test files of an evaluation."""

from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import pytest

from backends.git import GitRepository
from core.config import Settings
from evaluation.reports.outcomes import EvaluationReport, Outcome, OutcomeStatus
from taskdb.records import BuildPlan, Candidate, Counts, Environment, TestCommand
from taskdb.records.lineage import ChangeTests
from tests.helpers import TinyRepo
from verifiers.evaluated_files import is_long, select_eval_files, select_files_that_matter
from verifiers.verify import CandidateVerifier

FILES = {
    "src/shop/__init__.py": "",
    "src/shop/sums.py": "",
    "src/shop/tags.py": "",
    "tests/test_sums.py": "from shop.sums import total\n",
    "tests/test_tags.py": "from shop import tags\n",
    "tests/test_both.py": "def test_x():\n    import shop.sums as s\n",
    "tests/helper.py": "import shop.sums\n",
    "tests/test_odd.py": "print 'two'\n",
}


def make_repository(repo: TinyRepo, base: str, source: str, test_seconds: float) -> tuple[Candidate, Environment]:
    candidate = Candidate(
        parent="",
        source=source,
        repo="a/b",
        name="a__b-1",
        language="python",
        base_commit=base,
        merge_commit=base,
        created_at="2024-03-01",
        version="",
        problem_statement="",
        hints="",
        license="MIT",
        gold_patch="",
        test_patch="",
        gold_files=("src/shop/sums.py",),
        test_files=("tests/data.txt", "tests/test_new.py"),
        gold_lines=1,
        test_lines=1,
    )
    plan = BuildPlan(
        language="python",
        language_version="3.11",
        exclude_newer="",
        system_packages=(),
        dependency_steps=(),
        source_steps=(),
        test=TestCommand(framework="pytest", argv=("pytest",)),
    )
    environment = Environment(
        parent="",
        name="a__b-1",
        plan=plan,
        attempt=1,
        image="",
        image_digest="",
        image_bytes=0,
        collected_share=1,
        counts=Counts(),
        base_report="",
        log="",
        seconds=1,
        test_seconds=test_seconds,
    )
    return candidate, environment


@pytest.mark.parametrize(
    ("source", "test_seconds", "files"),
    [
        ("git:.", 5, ()),
        ("git:.", 50, ("tests/test_both.py", "tests/test_new.py", "tests/test_sums.py")),
        ("instances:x.jsonl", 5, ("tests/test_new.py",)),
    ],
    ids=["whole-suite", "by-patch-and-imports", "published"],
)
def test_the_whole_suite_runs_first_where_the_budget_allows_it(
    source: str, test_seconds: float, files: tuple[str, ...], tmp_path: Path
) -> None:
    repo = TinyRepo(tmp_path / "repo")
    base = repo.commit("Start", FILES)
    candidate, environment = make_repository(repo, base, source, test_seconds)
    settings = Settings(budget_seconds=100, test_timeout=100, repeats=3)
    assert (
        select_eval_files(
            candidate,
            environment,
            settings.verify,
            settings.budget,
            tree=GitRepository(repo.path),
            test_files=candidate.test_files,
        )
        == files
    )


@pytest.mark.parametrize(
    ("test_seconds", "budget", "long"), [(30, 1800, False), (31, 1800, True), (11, 100, True), (9, 100, False)]
)
def test_a_suite_is_long_where_each_run_of_it_would_cost_much(test_seconds: float, budget: float, long: bool) -> None:
    settings = Settings(whole_suite_seconds=30, budget_seconds=budget, repeats=3)
    environment = cast("Environment", SimpleNamespace(test_seconds=test_seconds))
    assert is_long(environment, settings.verify, settings.budget) == long


def test_files_that_matter_are_found_by_results_imports_folders_and_the_test_patch(tmp_path: Path) -> None:
    repo = TinyRepo(tmp_path / "repo")
    base = repo.commit("Start", FILES)
    candidate, _ = make_repository(repo, base, "git:.", 50)
    passed, failed = Outcome(status=OutcomeStatus.PASSED), Outcome(status=OutcomeStatus.FAILED)
    same = (
        "src/shop/test_near.py",
        "tests/test_new.py",
        "tests/test_sums.py",
        "tests/test_tags.py",
        "tests/test_odd.py",
    )
    outcomes = {f"{file}::test": passed for file in same} | {"tests/test_skips.py::test": failed}
    changed = {"tests/test_fixed.py::test": failed, "tests/test_lost.py::test": passed}
    test_only = EvaluationReport(outcomes=outcomes | changed, uncollected={"tests/test_both.py": "cannot be imported"})
    gold = EvaluationReport(outcomes=outcomes | {"tests/test_fixed.py::test": passed}, uncollected={})
    files = select_files_that_matter(candidate, GitRepository(repo.path), candidate.test_files, test_only, gold)
    assert files == (
        "src/shop/test_near.py", "tests/test_both.py", "tests/test_fixed.py", "tests/test_lost.py", "tests/test_new.py",
        "tests/test_sums.py",
    )  # fmt: skip


@pytest.mark.parametrize(
    ("touched", "run"),
    [
        (("test/types/index.ts", "test/a.js", "test/new.ts"), ("test/a.js", "test/new.ts")),
        (("test/types/index.ts", "test/a.js", "test/data.txt"), ("test/a.js",)),
        (("test/types/index.ts",), ("test/types/index.ts",)),
    ],
    ids=["beside-tests", "data", "alone"],
)
def test_files_of_a_published_task_without_tests_are_not_run(
    touched: tuple[str, ...], run: tuple[str, ...], tmp_path: Path
) -> None:
    repo = TinyRepo(tmp_path / "repo")
    base = repo.commit(
        "Start",
        {
            "package.json": "{}",
            "a.js": "",
            "test/a.js": "it('is one', () => {})\n",
            "test/data.txt": "1\n",
            "test/types/index.ts": "const one: number = f();\n",
        },
    )
    candidate, environment = make_repository(repo, base, "instances:x.jsonl", 5)
    candidate = candidate.model_copy(update={"language": "javascript", "test_files": touched})
    assert (
        select_eval_files(
            candidate,
            environment,
            Settings().verify,
            Settings().budget,
            tree=GitRepository(repo.path),
            test_files=candidate.test_files,
        )
        == run
    )


@pytest.mark.parametrize(
    ("touched", "near"),
    [
        ((), ["tests/it.rs"]),
        (("benches/speed.rs",), ["tests/it.rs"]),
        (("benches/speed.rs", "tests/new.rs"), ["tests/new.rs"]),
        (("tests/data.json",), []),
    ],
)
def test_canaries_lie_with_tests_and_not_with_benchmarks(
    touched: tuple[str, ...], near: list[str], tmp_path: Path
) -> None:
    repo = TinyRepo(tmp_path / "repo")
    base = repo.commit("Start", dict.fromkeys(("src/lib.rs", "tests/it.rs", "benches/speed.rs", "tests/data.json"), ""))
    candidate, environment = make_repository(repo, base, f"git:{repo.path}", 1)
    nothing = cast("Any", None)
    verifier = CandidateVerifier(
        tests=ChangeTests(candidate.test_patch, touched),
        candidate=candidate.model_copy(update={"language": "rust"}),
        environment=environment,
        services=nothing,
        pool=nothing,
        started=0,
    )
    vars(verifier)["repository"] = GitRepository(repo.path)
    assert verifier._select_canary_files() == near

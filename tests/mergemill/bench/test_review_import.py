"""Published reviews as sets: rows of two benchmarks, whose files come from clones; what cannot be used is named."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from backends.base_trees import BaseTreeStore
from core.config import Settings
from mergemill.agents.sampling.progress import SamplingProgress
from mergemill.agents.sampling.request import SampleRequest, select_tasks
from mergemill.bench import running
from mergemill.bench.running import BenchRequest
from taskdb.artifacts import open_artifacts
from taskdb.queries.bench import find_held_out, list_sets
from taskdb.records import Task
from taskdb.records.oracles import ReviewOracle
from taskdb.store import Store
from tests.cli import CommandResult, run_mergemill
from tests.helpers import TinyRepo

BEFORE = "".join(f"line_{n} = {n}\n" for n in range(30))
AFTER = BEFORE.replace("line_7 = 7\n", "line_7 = 8\nline_7b = 9\n")
Commits = dict[str, str]


@pytest.fixture
def commits(tmp_path: Path) -> Commits:
    """A clone of ada/greet with a merged pull request 7, whose commits are returned with its diff."""
    repo = TinyRepo(tmp_path / "clones" / "ada__greet")
    repo.git("remote", "add", "origin", "https://github.com/ada/greet.git")
    base = repo.commit("Greet", {"greet.py": BEFORE, "README.md": "Greetings\n"})
    head = repo.commit("Greet twice (#7)", {"greet.py": AFTER, "README.md": "Greetings!\n"})
    repo.commit("Go on (#77)", {"greet.py": AFTER + "end = 1\n"})
    diff = repo.git("diff", base, head)
    return {"base": base, "head": head, "diff": f"{diff}\n"}


def run(folder: Path, rows: object, format_name: str, *words: str) -> CommandResult:
    text = rows if isinstance(rows, str) else json.dumps(rows)
    (folder / "golden.json").write_text(text)
    given = ("--format", format_name, "--clones", "clones", "--db", f"sqlite:///{folder}/m.db", "--json")
    return run_mergemill("bench", "import", "golden.json", *given, *words, cwd=folder)


def load_tasks(folder: Path) -> dict[str, Task]:
    with Store.open(f"sqlite:///{folder}/m.db", create=False) as store:
        return {task.name: task for task in store.load_all(Task)}


def read_review(folder: Path, task: Task) -> tuple[dict[str, str], str, list[tuple[str, int, int, str]]]:
    """Return files, diff and defects of a review."""
    assert isinstance(task.oracle, ReviewOracle)
    artifacts = open_artifacts(Settings(db=f"sqlite:///{folder}/m.db", store=folder / "mergemill-store").storage)
    defects = [(defect.path, defect.first_line, defect.last_line, defect.claim) for defect in task.oracle.defects]
    return task.oracle.load_files(artifacts), artifacts.get_text(task.oracle.diff or ""), defects


def test_golden_comments_without_lines_are_a_held_out_set(tmp_path: Path, commits: Commits) -> None:
    comments = [{"comment": "line_7 is\nwrong now.", "severity": "High"}, {"comment": "No test.", "severity": "Low"}]
    row = {"pr_title": "Greet twice", "url": "https://github.com/ada/greet/pull/7", "comments": comments}
    done = run(tmp_path, [row], "code-review-bench")
    assert done.exit_code == 0, done.stderr
    assert (done.json["set"], done.json["subjects"], done.json["comments_without_lines"]) == ("golden", 1, 2)
    task = load_tasks(tmp_path)["ada__greet-7.review"]
    files, diff, defects = read_review(tmp_path, task)
    assert files == {"greet.py": AFTER, "README.md": "Greetings!\n"}
    assert "+line_7b = 9\n" in diff
    assert defects == [("", 0, 0, "line_7 is wrong now."), ("", 0, 0, "No test.")]
    assert (task.base_commit, task.repo, task.environment) == (commits["base"], "ada/greet", "none")
    assert "ada/greet" in task.problem_statement
    with Store.open(f"sqlite:///{tmp_path}/m.db", create=False) as store:
        (bench_set,) = list_sets(store)
        assert (bench_set.held_out, [subject.id for subject in bench_set.subjects]) == (True, [task.id])
        assert find_held_out(store).covers("", "ada__greet-7.review")
    again = run(tmp_path, [row], "code-review-bench")
    assert (again.json["version"], len(load_tasks(tmp_path))) == ("1", 1)


@pytest.mark.parametrize("has_head", [True, False])
def test_comments_have_lines_of_the_reviewed_files(tmp_path: Path, commits: Commits, has_head: bool) -> None:
    comments: list[dict[str, Any]] = [
        {"body": "Why eight?", "path": "greet.py", "line": 8, "start_line": 7},
        {"body": "No such line.", "path": "greet.py", "line": 99},
        {"body": "Not here.", "path": "other.py", "line": 1},
        {"body": "Of the whole."},
    ]
    row = {"task_id": "greet__7", "repo": "ada/greet", "pr_number": 7, "human_review_comments": comments}
    row |= {"base_commit": commits["base"], "diff_patch": commits["diff"]}
    row |= {"head_commit": commits["head"] if has_head else "f" * 40}
    done = run(tmp_path, f"{json.dumps(row)}\n", "swe-prbench", "--name", "people")
    assert done.exit_code == 0, done.stderr
    assert (done.json["set"], done.json["comments_without_lines"]) == ("people", 3)
    files, _, defects = read_review(tmp_path, load_tasks(tmp_path)["ada__greet-7.review"])
    assert files["greet.py"] == AFTER
    oracle = load_tasks(tmp_path)["ada__greet-7.review"].oracle
    assert isinstance(oracle, ReviewOracle)
    # Without the commit of the change there is no tree, only a diff.
    assert oracle.tree == (commits["head"] if has_head else None)
    trees = BaseTreeStore(tmp_path / "mergemill-store" / "trees")
    assert [name for name in ("base", "head") if trees.find("ada/greet", commits[name])] == ["head"] * has_head
    assert oracle.material is not None
    assert [defect[:3] for defect in defects] == [("greet.py", 7, 8), ("greet.py", 0, 0), ("", 0, 0), ("", 0, 0)]


def test_rows_that_cannot_be_used_are_named_and_the_others_imported(tmp_path: Path, commits: Commits) -> None:
    good = {"repo": "ada/greet", "pr_number": 7, "comments": []}
    missing = {"repo": "ada/greet", "pr_number": 8, "comments": [], "base_commit": "e" * 40, "diff_patch": "x"}
    rows: list[object] = [
        good,
        good,
        {"repo": "ada/greet", "pr_number": 9, "comments": []},
        missing,
        {"comments": []},
        {"repo": "ada/greet", "pr_number": 3},
        {"repo": "ada/greet", "pr_number": 4, "comments": [{"severity": "Low"}]},
        missing
        | {"pr_number": 10, "base_commit": commits["base"], "diff_patch": "--- a/no\n+++ b/no\n@@ -1 +1 @@\n-x\n+y\n"},
        "text",
    ]
    done = run(tmp_path, rows, "swe-prbench")
    assert done.exit_code == 3
    assert (done.json["subjects"], len(done.json["problems"])) == (1, 8)
    for number, words in enumerate(
        (
            "ada__greet-7 is also in",
            "does not have the commits of pull request 9",
            "does not have the commit eeee",
            "it names no pull request",
            "it has no list of comments",
            "a comment has no text",
            "git",
            "it is not a JSON object",
        )
    ):
        assert words in done.json["problems"][number], done.json["problems"][number]
    oracle = load_tasks(tmp_path)["ada__greet-7.review"].oracle
    assert isinstance(oracle, ReviewOracle)
    assert (oracle.target, oracle.defects) == ("clean", ())


@pytest.mark.parametrize(
    ("format_name", "words", "code", "line"),
    [
        ("vibe", (), 2, "vibe has subjects of a kind"),
        ("moon", (), 2, "moon is unknown"),
        ("swe-prbench", ("--name", "a b"), 2, "is no name of a set"),
        ("swe-prbench", (), 3, "no row of golden.json can be imported"),
    ],
)
def test_wrong_requests_are_a_line(
    tmp_path: Path, format_name: str, words: tuple[str, ...], code: int, line: str
) -> None:
    done = run(tmp_path, [], format_name, *words)
    assert (done.exit_code, line in done.stderr) == (code, True), done.stderr


def test_a_set_without_certificates_can_be_run(
    tmp_path: Path, commits: Commits, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Comments without lines have no review of which grading by lines alone says that it is right."""
    assert commits
    assert run(tmp_path, [{"repo": "ada/greet", "pr_number": 7, "comments": [{"body": "Why?"}]}], "swe-prbench").json
    settings = Settings(db=f"sqlite:///{tmp_path}/m.db", store=tmp_path / "mergemill-store")
    selected: list[str] = []
    with Store.open(settings.storage.db) as store:

        def sample(request: SampleRequest, *_: object) -> int:
            selected.extend(task.name for task in select_tasks(store, request))
            return 0

        monkeypatch.setattr("mergemill.agents.sampling.run.run_sampling", sample)
        (bench_set,) = list_sets(store)
        request = BenchRequest(bench_set=bench_set, scaffolds=("noop",), model="", runs=1)
        running.run_bench(store, request, settings, SamplingProgress)
    assert selected == ["ada__greet-7.review"]

"""Certified tasks of a real repository without an engine: real scores are stored, a scripted model predicts others."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from backends.git import GitRepository, list_patch_paths
from backends.index import ScratchIndex
from backends.services import Services
from core.config import Settings
from mergemill.execution.grader_version import compute_grader_version
from mergemill.execution.services import make_services
from mergemill.grading.grading import Submission
from mergemill.simulation.measurement import COLLECTORS
from taskdb.artifacts import Artifacts
from taskdb.queries import tasks as queries
from taskdb.records import FailureKind, Score, Stage, Task
from taskdb.records.simulator_measurements import SubmissionKind
from taskdb.records.work import StageResult
from taskdb.store import Store
from tests import records
from tests.helpers import TinyRepo
from tests.history import WORDS
from tests.samplers.scripted_model import ModelRequest, Turn
from tests.simulators.making import read_prompt
from tests.taskdb.lineages import make_url

SOURCE = '''"""Sums of {word}."""


def add_{word}(numbers):
    """Return the sum."""
    return {add}


def count_{word}(numbers):
    """Return the number."""
    return {count}
'''
WRONG, RIGHT = ("sum(numbers[1:])", "len(numbers) - 1"), ("sum(numbers)", "len(numbers)")
TEST = """from greet.{word} import add_{word}, count_{word}


def test_it_adds_{word}():
    assert add_{word}([1, 2]) == 3


def test_it_counts_{word}():
    assert count_{word}([1, 2]) == 2


def test_nothing_{word}():
    assert add_{word}([0]) == 0
"""


def make_tasks(folder: Path, number: int = 10) -> list[Task]:
    """Write a repository and a database of certified tasks to a folder; return the tasks."""
    repo = TinyRepo(folder / "greet")
    words = [f"{WORDS[n % 10]}_{n}" for n in range(number)]
    files = {f"greet/{word}.py": write_source(word, *WRONG) for word in words}
    base = repo.commit("Begin", files)
    artifacts, tasks = Artifacts(folder / "mergemill-store" / "artifacts"), []
    with Store.open(make_url(folder)) as store:
        for n, word in enumerate(words, 1):
            changed = {f"greet/{word}.py": write_source(word, *RIGHT), f"tests/test_{word}.py": TEST.format(word=word)}
            merge = repo.commit(f"Fix {word}", changed)
            tasks.append(_add_task(store, artifacts, repo.path, n, word, base, merge))
            base = merge
    return tasks


def write_source(word: str, add: str, count: str) -> str:
    return SOURCE.format(word=word, add=add, count=count)


def _add_task(store: Store, artifacts: Artifacts, repo: Path, number: int, word: str, base: str, merge: str) -> Task:
    gold, tests = (
        GitRepository(repo).run_git("diff-tree", "-p", "--binary", "--full-index", base, merge, "--", path)
        for path in (f"greet/{word}.py", f"tests/test_{word}.py")
    )
    source, file = f"git:{repo}", f"tests/test_{word}.py"
    pull = records.make_pull_request(number, source=source, base_commit=base, merge_commit=merge)
    candidate = records.make_candidate(
        pull,
        gold_patch=artifacts.put(gold),
        test_patch=artifacts.put(tests),
        gold_files=(f"greet/{word}.py",),
        test_files=(file,),
    )
    environment = records.make_environment(candidate)
    verification = records.make_verification(
        environment,
        FAIL_TO_PASS=(
            (f"{file}::test_it_adds_{word}", FailureKind.ASSERTION),
            (f"{file}::test_it_counts_{word}", FailureKind.ASSERTION),
        ),
        PASS_TO_PASS=(f"{file}::test_nothing_{word}",),
    )
    task = records.make_task(verification, candidate)
    store.add_mined_changes((pull, candidate, 0.1))
    chain = {
        Stage.BUILD: environment,
        Stage.VERIFY: verification,
        Stage.JUDGE: records.make_verdict(verification),
        Stage.DERIVE: task,
        Stage.CERTIFY: records.make_certificate(task),
    }
    for stage, record in chain.items():
        store.add_stage_results(StageResult(stage=stage, result=record, source=source, name=pull.name, seconds=1.0))
    return task


def store_score(store: Store, task: Task, submission: str, outcomes: Mapping[str, bool]) -> None:
    """Store the score that a submission (its sha256) really has."""
    f2p = [outcomes[test] for test, _ in task.FAIL_TO_PASS]
    p2p = [outcomes[test] for test in task.PASS_TO_PASS]
    resolved = all((*f2p, *p2p))
    score = Score(
        task=task.name,
        value=float(resolved),
        resolved=resolved,
        f2p_rate=sum(f2p) / len(f2p),
        p2p_rate=sum(p2p) / len(p2p),
        grader=compute_grader_version(),
    )
    store.add_score(score, task.id, submission)


def find_real_outcomes(program: str) -> dict[str, bool]:
    """Return which tests of `TEST` pass with a program, by the beginnings of their names: a runner of our own."""
    scope: dict[str, Any] = {}
    exec(program, scope)  # noqa: S102 - the text of this module
    add, count = (next(scope[name] for name in scope if name.startswith(word)) for word in ("add_", "count_"))
    return {
        "test_it_adds": _is_equal(add, [1, 2], 3),
        "test_it_counts": _is_equal(count, [1, 2], 2),
        "test_nothing": _is_equal(add, [0], 0),
    }


def _is_equal(function: Callable[[list[int]], object], numbers: list[int], expected: int) -> bool:
    try:
        return bool(function(numbers) == expected)
    except Exception:  # noqa: BLE001 - a mutant may raise anything
        return False


def find_program(prompt: str) -> str:
    """Return the program file in a prompt or tree."""
    match = re.search(r'"""Sums of .*?return [^\n]*\n.*?return [^\n]*\n', prompt, re.DOTALL)
    assert match, prompt
    return match[0]


def make_simulator(paid: Collection[str] = (), unpaid: Collection[str] = ()) -> Callable[[ModelRequest], Turn]:
    """Return a simulator that knows the truth, but predicts some programs wrongly.

    Args:
        paid: programs of which it predicts that all tests pass.
        unpaid: programs of which it predicts that one test fails.
    """

    def answer(request: ModelRequest) -> Turn:
        prompt = read_prompt(request)
        program, file = find_program(prompt), re.search(r"Test file tests/test_(\w+)\.py", prompt)
        assert file, prompt
        tests = []
        for name, passed in find_real_outcomes(program).items():
            predicted = program in paid or (passed and not (program in unpaid and name == "test_it_adds"))
            outcome = {"outcome": "passed" if predicted else "assertion", "reason": "as it is"}
            tests.append({"test": f"tests/test_{file[1]}.py::{name}_{file[1]}", **outcome})
        return Turn(text=json.dumps({"tests": tests}))

    return answer


@dataclass(frozen=True, kw_only=True)
class KnownSubmission:
    """A submission whose real outcomes are known and stored. `program`: the file with it."""

    task: Task
    kind: SubmissionKind
    program: str
    outcomes: Mapping[str, bool]

    @property
    def resolved(self) -> bool:
        return all(self.outcomes.values())


def store_scores(folder: Path, *, per_kind: int = 2) -> list[KnownSubmission]:
    """Store the real score of every submission that a measurement makes; return them."""
    settings = Settings(db=make_url(folder), store=folder / "mergemill-store")
    services, scores = make_services(settings, engine=False), {}
    with Store.open(settings.storage.db) as store:
        for task, _, _ in list(queries.iter_tasks(store, queries.TaskFilters())):
            for kind, collect in COLLECTORS.items():
                for submission in collect(task, services, store, per_kind):
                    scores.setdefault(submission.submission.key, _store(store, services, submission.submission, kind))
    return list(scores.values())


def _store(store: Store, services: Services, submission: Submission, kind: SubmissionKind) -> KnownSubmission:
    task = submission.task
    repository = services.clones.open_tree(task.source, task.repo, task.base_commit)
    (path,) = list_patch_paths(services.artifacts.get(task.gold_patch))
    with ScratchIndex(repository, task.base_commit) as index:
        index.apply(submission.content)
        program = find_program((index.read_file(path) or b"").decode())
    outcomes = find_real_outcomes(program)
    tests = [*(test for test, _ in task.FAIL_TO_PASS), *task.PASS_TO_PASS]
    by_test = {test: next(outcomes[name] for name in outcomes if f"::{name}_" in test) for test in tests}
    store_score(store, task, submission.sha256, by_test)
    return KnownSubmission(task=task, kind=kind, program=program, outcomes=by_test)

"""Performance tasks of compiled languages: tests and benchmarks are timed as programs of their own."""

from __future__ import annotations

from pathlib import Path

import pytest

from backends.git import GitRepository
from backends.services import Services
from builders.build import build
from derivers.base import KindRejection
from derivers.counters import add_counters
from derivers.performance import derive_performance
from evaluation.performance.workload import render_workload, run_workload
from taskdb.records import Environment, Task, Verification
from taskdb.records.lineage import Lineage
from taskdb.records.oracles import PerformanceOracle
from taskdb.records.tags import ChangeKind
from tests import records
from tests.containers import make_services
from tests.derivers.slow_programs import CRITERION, GO, JAVA, RUST, SlowProject
from tests.exporters.verifying import run_verifier
from tests.helpers import TinyRepo
from verifiers.rewards import grade
from verifiers.verify import verify

pytestmark = [pytest.mark.docker, pytest.mark.slow, pytest.mark.timeout(1800)]


def make_program_services(tmp_path: Path) -> Services:
    return make_services(
        tmp_path, repeats=1, test_timeout=900, memory_mb=3000, disk_mb=2000, pids=1024, budget_seconds=3000
    )


def make_source_patch(repo: TinyRepo, base: str, project: SlowProject, source: str) -> bytes:
    """Return the patch that replaces the project's source file."""
    repo.git("checkout", "-q", "-f", base)
    merge = repo.commit("Change it", {project.source: source})
    return GitRepository(repo.path).run_git("diff-tree", "-p", "--binary", "--full-index", base, merge)


def build_change(project: SlowProject, repo: TinyRepo, services: Services, source: str) -> Lineage:
    """Return the change of the source file with its environment."""
    base = repo.commit("Start", {**project.files, project.source: project.slow})
    patch = make_source_patch(repo, base, project, source)
    merge = repo.git("rev-parse", "HEAD")
    pull = records.make_pull_request(source=f"git:{repo.path}", base_commit=base, merge_commit=merge)
    candidate = records.make_candidate(
        pull,
        language=project.language,
        created_at="2025-03-01T12:00:00+00:00",
        version="",
        gold_patch=services.artifacts.put(patch),
        test_patch=services.artifacts.put(b""),
        gold_files=(project.source,),
        test_files=(),
        change_kind=ChangeKind.PERFORMANCE,
    )
    environment = build(candidate, services)
    assert isinstance(environment, Environment), environment
    return Lineage(candidate=candidate, environment=environment)


def verify_change(project: SlowProject, repo: TinyRepo, services: Services, source: str) -> Lineage:
    lineage = build_change(project, repo, services, source)
    verification = verify(lineage, services)
    assert isinstance(verification, Verification), verification
    return lineage.with_record(verification)


def derive_task(lineage: Lineage, services: Services) -> Task:
    made = derive_performance(lineage, services)
    assert isinstance(made, list), made
    return made[0]


@pytest.mark.parametrize("project", [GO, RUST, CRITERION], ids=["go", "rust", "criterion"])
def test_a_faster_program_is_a_task_and_only_faster_submissions_score(project: SlowProject, tmp_path: Path) -> None:
    services, repo = make_program_services(tmp_path), TinyRepo(tmp_path / "repo")
    lineage = verify_change(project, repo, services, project.fast)
    task = derive_task(lineage, services)
    assert isinstance(task.oracle, PerformanceOracle)
    assert task.oracle.tests == project.workload
    assert 1.1 < task.oracle.threshold < task.oracle.ratio
    patches = {
        "gold": services.artifacts.get(task.gold_patch),
        "nothing": b"",
        "wrong": make_source_patch(repo, task.base_commit, project, project.wrong),
        "shrinking": make_source_patch(repo, task.base_commit, project, project.shrinking),
    }
    scores = {name: grade(task, services, patch) for name, patch in patches.items()}
    values = {name: score.value for name, score in scores.items()}
    assert values == dict.fromkeys(patches, 0.0) | {"gold": 1.0}, scores
    assert "do not pass" in scores["shrinking"].explanation, scores["shrinking"]
    rewards = {name: run_verifier(task, services, patches[name]) for name in ("gold", "shrinking")}
    assert {name: reward and reward["reward"] for name, (reward, _) in rewards.items()} == {"gold": 1, "shrinking": 0}


@pytest.mark.parametrize("project", [GO, RUST], ids=lambda project: project.language)
def test_a_change_that_shrinks_the_work_is_no_task(project: SlowProject, tmp_path: Path) -> None:
    services, repo = make_program_services(tmp_path), TinyRepo(tmp_path / "repo")
    derived = derive_performance(verify_change(project, repo, services, project.shrinking), services)
    assert isinstance(derived, KindRejection)
    assert derived.reason == "work-shrinks", derived.detail


def test_a_test_of_maven_is_timed_without_maven(tmp_path: Path) -> None:
    services, repo = make_program_services(tmp_path), TinyRepo(tmp_path / "repo")
    lineage = build_change(JAVA, repo, services, JAVA.fast)
    plan, base = lineage.require_environment().plan, lineage.candidate.base_commit
    (test,) = JAVA.workload
    path = test.partition("::")[0]
    script = render_workload(
        plan,
        GitRepository(repo.path),
        base,
        test_patch=b"",
        gold_patch=b"",
        tests={test: 4},
        rounds=2,
        canaries=True,
        work={test: 16_000},
        counted_files=add_counters({path: JAVA.files[path].encode()}),
    )
    sources = {"slow": JAVA.slow, "fast": JAVA.fast, "wrong": JAVA.wrong, "shrinking": JAVA.shrinking}
    with services.sandbox.open_pool(lineage.require_environment().image, limits=services.test_limits()) as pool:
        samples = {
            name: run_workload(
                pool, script, [test], workdir=plan.workdir, patch=make_source_patch(repo, base, JAVA, f"{source}\n")
            )
            for name, source in sources.items()
        }
    void = f"1 tests of the workload do not pass, such as {test}"
    assert {name: sample.invalid_reason for name, sample in samples.items()} == {
        "slow": "",
        "fast": "",
        "wrong": void,
        "shrinking": void,
    }
    assert (samples["slow"].cpu_seconds or 0) > (samples["fast"].cpu_seconds or 1)

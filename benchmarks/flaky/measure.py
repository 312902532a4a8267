"""Generated projects with flaky tests, verified and graded in containers by the stages themselves."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from random import Random

from backends.services import Services
from benchmarks.flaky.cases import CASES, FlakyCase
from benchmarks.flaky.simulate import EVALUATIONS, GRADINGS, REPEATS, CaseResult, FlakyCounts, count_tests
from evaluation.reports.outcomes import EvaluationReport
from evaluation.runner.evaluator import Evaluator
from taskdb.records import RunVariant, TestId, Verification
from taskdb.records.lineage import Lineage
from verifiers.conditions import vary_conditions
from verifiers.verify import verify

SHOP = "SEEN = set()\n\n\ndef total(prices):\n    return sum(prices[{}:])\n"
TEST = "from shop import total\n\n\ndef test_total():\n    assert total([5, 2]) == 7\n"


@dataclass(frozen=True, kw_only=True)
class FlakyProject:
    """The files of a project, and the flaky tests of each case in it."""

    files: dict[str, str]
    tests: dict[FlakyCase, list[TestId]]


def make_project(seed: int, copies: int, cases: Sequence[FlakyCase] = CASES) -> FlakyProject:
    """Return a project with some copies of each case; names, and with them the order of files, depend on the seed."""
    random = Random(seed)  # noqa: S311 - the choice of names
    files: dict[str, str] = {}
    tests = defaultdict(list)
    names = [f"{number:06x}" for number in random.sample(range(16**6), 2 * copies * len(cases))]
    for case in cases:
        for _ in range(copies):
            name, other = names.pop(), names.pop()
            files |= case.make_files(name, other, random)
            tests[case].append(f"tests/test_{name}.py::test_flaky")
    return FlakyProject(files=files, tests=dict(tests))


def measure(services: Services, folder: Path, seeds: Sequence[int], copies: int) -> Iterator[CaseResult]:
    """Yield the counts of each case over projects with these seeds, each with `copies` of it.

    Args:
        services: its number of repeats is the largest of REPEATS.
        folder: for the repositories.
        seeds: one for each project.
        copies: copies of each case in a project.
    """
    flaky_counts: dict[FlakyCase, list[dict[int, FlakyCounts]]] = defaultdict(list)
    for seed in seeds:
        project = make_project(seed, copies)
        test_only, gold, certificate = _run_project(services, folder / str(seed), project)
        for case, tests in project.tests.items():
            flaky_counts[case].append(count_tests(tests, test_only, gold, certificate))
    for case, counts in flaky_counts.items():
        yield CaseResult(name=case.name, rate=case.rate, counts={number: _add(counts, number) for number in REPEATS})


def _add(counts: Sequence[dict[int, FlakyCounts]], number: int) -> FlakyCounts:
    return FlakyCounts(
        tests=sum(count[number].tests for count in counts),
        caught=sum(count[number].caught for count in counts),
        slipped=sum(count[number].slipped for count in counts),
    )


def _run_project(
    services: Services, folder: Path, project: FlakyProject
) -> tuple[list[EvaluationReport], list[EvaluationReport], list[EvaluationReport]]:
    """Verify a project's change; return the reports of the test-only runs, the gold runs and those of a certificate."""
    from tests.containers import make_lineage  # noqa: PLC0415 - the small environments of the tests
    from tests.helpers import TinyRepo  # noqa: PLC0415 - as above

    repo = TinyRepo(folder)
    base = repo.commit("Start", {"shop/__init__.py": SHOP.format(1), **project.files})
    merge = repo.commit("Count the first price", {"shop/__init__.py": SHOP.format(0), "tests/test_total.py": TEST})
    lineage = make_lineage(repo, services, base, merge)
    verification = verify(lineage, services)
    if not isinstance(verification, Verification):
        raise SystemExit(f"{folder.name} was not verified: {verification.reason}, {verification.detail}")
    reports = defaultdict(list)
    for run in verification.runs:
        reports[run.variant].append(EvaluationReport.from_bytes(services.artifacts.get(run.report)))
    files = sorted({"tests/test_total.py", *project.files})
    certificate = _run_gold(services, lineage, verification, files)
    return reports[RunVariant.TEST_ONLY], reports[RunVariant.GOLD], certificate


def _run_gold(
    services: Services, lineage: Lineage, verification: Verification, files: Sequence[str]
) -> list[EvaluationReport]:
    """Return the reports of gold runs under the conditions of a certificate's gradings.

    Args:
        services: the engine and its limits.
        lineage: the candidate with its environment.
        verification: holds the script.
        files: all test files, sorted; the conditions order them.
    """
    environment = lineage.require_environment()
    patch = services.artifacts.get(lineage.candidate.gold_patch)
    reports = []
    for conditions in vary_conditions(GRADINGS):
        limits = services.test_limits(cpu_share=conditions.cpu_share)
        with services.sandbox.open_pool(environment.image, limits=limits) as pool:
            evaluator = Evaluator(
                services=services,
                pool=pool,
                image_digest=environment.image_digest,
                workdir=environment.plan.workdir,
                script=services.artifacts.get_text(verification.eval_script),
            )
            for _ in range(EVALUATIONS):
                run = evaluator.run(
                    RunVariant.GOLD,
                    patch=patch,
                    seed=conditions.seed,
                    files=files if conditions.seed else (),
                    time_zone=conditions.time_zone,
                )
                reports.append(run.report)
    return reports

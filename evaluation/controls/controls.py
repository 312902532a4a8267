"""Making and confirming negative controls: at most two runs show which sabotaged tests the gold patch fails."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from backends.git import GitError, GitRepository
from evaluation.controls import sabotage
from evaluation.runner.evaluator import EvaluationRun, Evaluator
from taskdb.records import RunVariant, TestId


@dataclass(frozen=True, kw_only=True)
class NegativeControls:
    """`patch` replaces the test patch in a control run; the gold patch failed the `confirmed` tests in that run."""

    patch: bytes = b""
    confirmed: tuple[TestId, ...] = ()
    runs: tuple[EvaluationRun, ...] = ()


def build_controls(
    evaluator: Evaluator,
    repository: GitRepository,
    base: str,
    *,
    test_patch: bytes,
    gold_patch: bytes,
    tests: Sequence[TestId],
) -> NegativeControls:
    """Sabotage the tests, and run the gold patch against them to confirm which ones it fails. At most two runs.

    Args:
        evaluator: its image holds the tree of `base`, or one with the same test files.
        repository: holds the commit `base`.
        base: the commit that the test patch applies to.
        test_patch: adds the tests; empty where `base` has them.
        gold_patch: the patch with which all of the tests pass.
        tests: FAIL_TO_PASS; only tests in Python files get a control.

    Raises:
        Transient: the engine failed.
    """
    try:
        sources = _read_sources(repository, base, test_patch, tests)
    except GitError:
        return NegativeControls()
    controls = NegativeControls()
    raise_in: set[TestId] = set()
    for _ in range(2):
        changed = {
            file: text
            for file, source in sources.items()
            if (text := sabotage.sabotage_tests(source, _select_names(tests, file), _select_names(raise_in, file)))
        }
        if not changed:
            break
        patch = sabotage.make_control_patch(repository, base, test_patch, changed)
        run = evaluator.run(RunVariant.CONTROL, patch=gold_patch, test_patch=patch, files=sorted(sources), last=True)
        confirmed = tuple(test for test in tests if run.report.has_failed(test))
        controls = NegativeControls(patch=patch, confirmed=confirmed, runs=(*controls.runs, run))
        raise_in = set(tests) - set(confirmed)
        if not raise_in:
            break
    return controls


def _read_sources(repository: GitRepository, base: str, test_patch: bytes, tests: Sequence[TestId]) -> dict[str, bytes]:
    """Return path -> content of the tests' Python files, with the test patch applied."""
    files = sorted({test.partition("::")[0] for test in tests})
    return sabotage.read_patched_files(repository, base, test_patch, [file for file in files if file.endswith(".py")])


def _select_names(tests: Sequence[TestId] | set[TestId], file: str) -> set[str]:
    return {sabotage.strip_test_id(test) for test in tests if test.partition("::")[0] == file}

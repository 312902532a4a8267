"""Which tests can be sabotaged so that an honest solution is seen to fail them: twins, made and tried."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from backends.git import GitError, Repository
from backends.testing import twins
from backends.testing.bench import Bench, Done
from taskdb.records import RunKind, TestId


@dataclass(frozen=True, kw_only=True)
class Twins:
    """`patch` replaces the test patch in a twin run; `confirmed` of the tests were seen to fail with it, solved."""

    patch: bytes = b""
    confirmed: tuple[TestId, ...] = ()
    runs: tuple[Done, ...] = ()


def twins_of(
    bench: Bench, tree: Repository, base: str, *, test_patch: bytes, solution: bytes, tests: Sequence[TestId]
) -> Twins:
    """Sabotage the tests, and see which of them the solution fails then; at most two runs.

    Args:
        bench: boxes whose tree is `base`, or differs from it in no test file.
        tree: the history that holds `base`.
        base: the commit that the test patch is made for.
        test_patch: brings the tests; empty where `base` has them.
        solution: the patch under which all of the tests pass.
        tests: FAIL_TO_PASS; those that are not Python's have no twins.

    Raises:
        Transient: the engine failed.
    """
    try:
        sources = _sources(tree, base, test_patch, tests)
    except GitError:
        return Twins()
    found = Twins()
    raise_in: set[TestId] = set()
    for _ in range(2):
        changed = {
            file: text for file, source in sources.items()
            if (text := twins.sabotage(source, _bare(tests, file), _bare(raise_in, file)))
        }  # fmt: skip
        if not changed:
            break
        patch = twins.twin_patch(tree, base, test_patch, changed)
        done = bench.run(RunKind.TWIN, patch=solution, test_patch=patch, files=sorted(sources), last=True)
        confirmed = tuple(test for test in tests if done.report.failed(test))
        found = Twins(patch=patch, confirmed=confirmed, runs=(*found.runs, done))
        raise_in = set(tests) - set(confirmed)
        if not raise_in:
            break
    return found


def _sources(tree: Repository, base: str, test_patch: bytes, tests: Sequence[TestId]) -> dict[str, bytes]:
    """Python files of the tests as they are with the test patch."""
    files = sorted({test.partition("::")[0] for test in tests})
    return twins.patched_files(tree, base, test_patch, [file for file in files if file.endswith(".py")])


def _bare(tests: Sequence[TestId] | set[TestId], file: str) -> set[str]:
    return {twins.bare(test) for test in tests if test.partition("::")[0] == file}

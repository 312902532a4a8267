"""Runs in one container: the tree of each, and when none of them counts. The container is a folder."""

from __future__ import annotations

from pathlib import Path

import pytest

from evaluation.reports.outcomes import OutcomeStatus
from evaluation.runner import following
from evaluation.runner.following import PlannedRun, run_in_turn
from evaluation.runner.run import EvaluationResult
from evaluation.runner.time_limit import TimeLimit
from tests.evaluation.test_series import NO_USER, TEST, FolderPool

SCRIPT = r"""
echo "{word} $(ls | tr '\n' ' ')" >> seen
{action}
printf 'tests/test_a.py\0' > "$MERGEMILL_REPORT_DIR/known"
echo "<testsuite><testcase classname='tests.test_a' name='test_a'/></testsuite>" > "$MERGEMILL_REPORT_DIR/junit.xml"
echo "1000000000 3000000000 0" > "$MERGEMILL_REPORT_DIR/times"
"""
PATCH = b"--- a/a.txt\n+++ b/a.txt\n@@ -1 +1 @@\n-old\n+new\n"
LIMIT = TimeLimit(expected=2.0, minimum=20.0)


def make_script(word: str, action: str = ":") -> str:
    return SCRIPT.format(word=word, action=action)


@pytest.fixture
def tree(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setattr(following, "TESTS_UID", NO_USER)
    folder = tmp_path / "tree"
    folder.mkdir()
    (folder / "a.txt").write_text("old\n")
    return folder


def run_both(
    tree: Path, first: str, second: str, *, pool: FolderPool | None = None, limit: TimeLimit = LIMIT
) -> list[EvaluationResult] | None:
    runs = [
        PlannedRun(script=first, seconds=limit.seconds, time_limit=limit),
        PlannedRun(script=second, patch=PATCH, seconds=20.0),
    ]
    return run_in_turn(pool or FolderPool(tree.parent), runs, workdir=str(tree), last=True)


def test_the_second_run_has_its_own_script_and_patch(tree: Path) -> None:
    results = run_both(tree, make_script("first", "cat a.txt >> seen"), make_script("second", "cat a.txt >> seen"))
    assert results is not None
    assert [line.split()[0] for line in (tree / "seen").read_text().splitlines()] == ["first", "old", "second", "new"]
    for result in results:
        assert result.report is not None
        assert result.report.outcomes[TEST].status is OutcomeStatus.PASSED
        assert result.is_applied
        assert result.test_seconds == 2.0
    assert results[0].time_limit is LIMIT


def test_a_patch_that_does_not_apply_fails_the_second_run_alone(tree: Path) -> None:
    results = run_both(tree, make_script("first", "echo other > a.txt"), make_script("second"))
    assert results is not None
    first, second = results
    assert first.report is not None
    assert first.report.has_passed(TEST)
    assert (second.is_applied, second.report) == (False, None)


def test_a_first_run_that_hangs_is_ended_by_its_own_limit(tree: Path) -> None:
    limit = TimeLimit(expected=0.05, minimum=0.5)
    results = run_both(tree, make_script("first", "exec sleep 60"), make_script("second"), limit=limit)
    assert results is not None
    first, second = results
    assert first.hangs
    assert first.failure_detail.startswith("the tests hang: they were ended after")
    assert second.report is not None


def test_neither_counts_where_the_container_was_killed(tree: Path) -> None:
    pool = FolderPool(tree.parent, killed_by="memory")
    assert run_both(tree, make_script("first"), make_script("second"), pool=pool) is None


def test_each_run_has_its_own_files_seed_and_log(tree: Path) -> None:
    script = """
        echo "log of $MERGEMILL_SEED"
        echo "$MERGEMILL_SEED ${MERGEMILL_TZ:-none} $(tr '\\n' ' ' < "$MERGEMILL_FILES")" >> seen
    """
    runs = [
        PlannedRun(script=script, files=("b",), seconds=20.0),
        PlannedRun(script=script, files=("c",), seed=7, seconds=20.0),
    ]
    results = run_in_turn(FolderPool(tree.parent), runs, workdir=str(tree))
    assert results is not None
    assert (tree / "seen").read_text().splitlines() == ["0 none b ", "7 none c "]
    assert [result.log for result in results] == ["log of 0\n", "log of 7\n"]
    assert all(0 < result.exec_result.seconds < 10 for result in results)


STALE = r"""
echo "fail tests/test_{word}.py" > "$MERGEMILL_REPORT_DIR/canaries"
echo "{word}" >> compiled
{{ echo "<testsuite><testcase classname='tests.test_a' name='test_a'/>"
for word in $(cat compiled); do echo "<testcase classname='rope.Canary$word' name='t$word'><failure/></testcase>"; done
echo "</testsuite>"; }} > "$MERGEMILL_REPORT_DIR/junit.xml"
"""
"""A run of a build tool that keeps the compiled canaries of earlier runs; `word`: the digits of its own."""


def test_canaries_of_earlier_runs_are_left_out_of_a_report(tree: Path) -> None:
    words = ["1" * 32, "2" * 32, "3" * 32]
    runs = [PlannedRun(script=STALE.format(word=word), seconds=20.0) for word in words]
    results = run_in_turn(FolderPool(tree.parent), runs, workdir=str(tree))
    assert results is not None
    reported = [
        [test[-32:] for test in result.report.outcomes if test[-32:] in words] for result in results if result.report
    ]
    # What a run has of its own canary beyond the canary's file is judged like any test.
    assert reported == [[word] for word in words]
    assert all(result.report and len(result.report.outcomes) == 2 for result in results)


def test_a_file_has_another_second_in_the_next_run(tree: Path) -> None:
    runs = [PlannedRun(script="touch a.txt; stat -c %Y a.txt >> seen", seconds=20.0) for _ in range(3)]
    run_in_turn(FolderPool(tree.parent), runs, workdir=str(tree))
    seconds = (tree / "seen").read_text().split()
    assert len(set(seconds)) == len(seconds) == 3


def test_a_log_that_was_cut_between_the_runs_belongs_to_both(tree: Path) -> None:
    results = run_both(tree, make_script("first"), make_script("second"), pool=FolderPool(tree.parent, output="cut"))
    assert results is not None
    assert [result.log for result in results] == ["cut", "cut"]


def run_while_passing(tree: Path, first: str, *, whole: float = 60.0, factor: int = 0) -> list[EvaluationResult] | None:
    scripts = [make_script(word) for word in ("second", "third")]
    runs = [
        PlannedRun(script=first, seconds=20.0),
        *(PlannedRun(script=s, seconds=20.0, factor=factor) for s in scripts),
    ]
    return run_in_turn(FolderPool(tree.parent), runs, workdir=str(tree), continue_within=whole)


TWO_FAILURES = """
echo "<testsuite><testcase classname='a' name='b'><failure/></testcase><testcase classname='a' name='c'><error/>" \\
    "</testcase></testsuite>" > "$MERGEMILL_REPORT_DIR/junit.xml"; exit 1
"""


def test_later_runs_are_made_only_where_the_first_passes_and_there_is_time(tree: Path) -> None:
    passing = make_script("first")
    for first, options, number in [
        (passing, {}, 3),
        (passing.replace("/></testsuite>", "><failure/></testcase></testsuite>"), {}, 3),  # the canary that must fail
        (TWO_FAILURES, {}, 1),
        ("exit 0", {}, 1),
        (passing, {"whole": 15.0}, 1),
        (passing, {"factor": 100}, 1),
    ]:
        results = run_while_passing(tree, first, **options)
        assert results is not None
        assert len(results) == number, first


def test_the_first_run_is_the_one_that_takes_all_the_time_of_a_container(tree: Path) -> None:
    pool = FolderPool(tree.parent, killed_by="time")
    runs = [PlannedRun(script=make_script("first"), seconds=20.0) for _ in range(2)]
    results = run_in_turn(pool, runs, workdir=str(tree), continue_within=60.0)
    assert results is not None
    assert [result.exec_result.killed_by for result in results] == ["time"]

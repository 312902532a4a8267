"""Series of runs in a container: what each run sees, and when none of them counts. The container is a folder here."""

from __future__ import annotations

import subprocess
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import pytest

from backends.sandbox.execution import ExecResult
from evaluation.reports.outcomes import OutcomeStatus
from evaluation.runner.series import SeriesRun, run_series

TEST = "tests/test_a.py::test_a"
NO_USER = 54321
"""A user that has no process on this machine."""
SCRIPT = r"""
word="$(cat a.txt)"
[ "$word" != hang ] || sleep 60
case "$word" in spin|crash)
    if [ "$word" = spin ]; then (while :; do :; done) & wait $!; fi
    echo "1000000000 3000000000 137" > "$MERGEMILL_REPORT_DIR/times"
    exit 137
esac
[ "$word" != litter ] || touch litter
printf '%s %s\n' "$word" "$(stat -c %Y a.txt)" >> seen
[ -z "$MERGEMILL_FILES" ] || tr '\n' ' ' < "$MERGEMILL_FILES" >> files
[ "$word" != right ] || [ -e litter ] && failure='<failure message="AssertionError: 1 != 2"/>'
printf 'tests/test_a.py\0' > "$MERGEMILL_REPORT_DIR/known"
echo "<testsuite><testcase classname='tests.test_a' name='test_a'>$failure</testcase></testsuite>" \
    > "$MERGEMILL_REPORT_DIR/junit.xml"
echo "1000000000 3000000000 0" > "$MERGEMILL_REPORT_DIR/times"
"""


@dataclass(frozen=True)
class FolderPool:
    """Runs a command on this machine, with its files in a folder.

    `killed_by`: the limit that ends each command. `output`: a text in place of the output of each; None for none.
    """

    folder: Path
    killed_by: str | None = None
    output: str | None = None

    def run(
        self,
        command: Sequence[str],
        *,
        files: Mapping[str, bytes] | None = None,
        collect: Sequence[str] = (),
        env: Mapping[str, str] | None = None,
        seconds: float | None = None,
        last: bool = False,
    ) -> ExecResult:
        """See `backends.sandbox.base.ContainerPool`."""
        for path, content in (files or {}).items():
            target = self._find(path)
            target.parent.mkdir(parents=True, exist_ok=True)
            target.write_bytes(content)
        words = [str(self._find(word)) if word.startswith("/mergemill") else word for word in command]
        ended = subprocess.run(
            words,
            check=False,
            env={"PATH": "/usr/sbin:/usr/bin:/sbin:/bin", **(env or {})},
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
        )
        collected = {path: self._find(path).read_bytes() for path in collect if self._find(path).is_file()}
        output = ended.stdout if self.output is None else self.output
        return ExecResult(
            exit_code=ended.returncode, output=output, files=collected, seconds=1.0, killed_by=self.killed_by
        )

    def _find(self, path: str) -> Path:
        return self.folder / path.lstrip("/")


@pytest.fixture
def tree(tmp_path: Path) -> Path:
    """Return a tree with a file whose content the test of the script checks."""
    folder = tmp_path / "tree"
    folder.mkdir()
    (folder / "a.txt").write_text("right")
    return folder


def make_run(word: str, *files: str, seconds: float = 20.0) -> SeriesRun:
    return SeriesRun(path="a.txt", before=b"right", after=word.encode(), files=files, seconds=seconds)


ORIGINAL = SeriesRun(seconds=20.0)


def test_each_run_sees_its_own_tree_and_the_last_the_original(tree: Path, tmp_path: Path) -> None:
    results = run_series(
        FolderPool(tmp_path),
        SCRIPT,
        [make_run("wrong", "x", "y"), make_run("right"), ORIGINAL],
        workdir=str(tree),
        tests_uid=NO_USER,
        passing=[TEST],
    )
    assert results is not None
    outcomes = [result.report.outcomes[TEST] for result in results if result.report]
    assert [outcome.status for outcome in outcomes] == [
        OutcomeStatus.FAILED,
        OutcomeStatus.PASSED,
        OutcomeStatus.PASSED,
    ]
    assert outcomes[0].message == "AssertionError: 1 != 2"
    assert [result.test_seconds for result in results] == [2.0, 2.0, 2.0]
    assert (tree / "files").read_text() == "x y "
    assert (tree / "a.txt").read_text() == "right"
    seen = [line.split() for line in (tree / "seen").read_text().splitlines()]
    assert [word for word, _ in seen] == ["wrong", "right", "right"]
    assert seen[0][1] < seen[1][1] < seen[2][1], "build tools compare times"


def test_a_run_that_hangs_is_ended_and_the_others_count(tree: Path, tmp_path: Path) -> None:
    results = run_series(
        FolderPool(tmp_path),
        SCRIPT,
        [make_run("hang", seconds=1.0), make_run("wrong"), ORIGINAL],
        workdir=str(tree),
        tests_uid=NO_USER,
        passing=[TEST],
    )
    assert results is not None
    assert [result.exec_result.killed_by for result in results] == ["time", None, None]
    assert results[0].report is None
    assert results[1].report is not None
    assert results[1].report.has_failed(TEST)


def test_a_loop_without_end_is_ended_by_its_cpu_seconds(tree: Path, tmp_path: Path) -> None:
    results = run_series(
        FolderPool(tmp_path),
        SCRIPT,
        [replace(make_run("spin", seconds=60.0), cpu_seconds=1), make_run("crash"), ORIGINAL],
        workdir=str(tree),
        tests_uid=NO_USER,
        passing=[TEST],
    )
    assert results is not None
    assert [result.exec_result.killed_by for result in results] == ["time", None, None]
    assert results[0].test_seconds == 2.0, "the script has ended, the time limit has not ended it"


def test_nothing_counts_where_a_run_leaves_something_behind(tree: Path, tmp_path: Path) -> None:
    runs = [make_run("litter"), ORIGINAL]
    pool = FolderPool(tmp_path)
    assert run_series(pool, SCRIPT, runs, workdir=str(tree), tests_uid=NO_USER, passing=[TEST]) is None


def test_nothing_counts_of_a_container_that_was_killed(tree: Path, tmp_path: Path) -> None:
    pool = FolderPool(tmp_path, killed_by="memory")
    assert run_series(pool, SCRIPT, [ORIGINAL], workdir=str(tree), tests_uid=NO_USER, passing=[TEST]) is None


TESTS_SCRIPT = r"""
text=none
if [ -n "$MERGEMILL_TEST_FILES" ]; then text="$(cat "$MERGEMILL_TEST_FILES/tests/test_a.py")"; fi
printf '%s %s %s\n' "$text" "$(cat a.txt)" "$EPOCHSECONDS" >> seen
printf 'tests/test_a.py\0' > "$MERGEMILL_REPORT_DIR/known"
[ "$text" = none ] || failure='<failure message="AssertionError: 1 != 2"/>'
echo "<testsuite><testcase classname='tests.test_a' name='test_a'>$failure</testcase></testsuite>" \
    > "$MERGEMILL_REPORT_DIR/junit.xml"
"""
PATCH = b"""\
diff --git a/a.txt b/a.txt
--- a/a.txt
+++ b/a.txt
@@ -1 +1 @@
-right
\\ No newline at end of file
+fixed
"""


def test_each_run_has_its_own_test_files_in_a_patched_tree(tree: Path, tmp_path: Path) -> None:
    subprocess.run(["git", "init", "-q", str(tree)], check=True)
    runs = [SeriesRun(test_files={"tests/test_a.py": word}, seconds=20.0) for word in (b"one", b"two")]
    results = run_series(
        FolderPool(tmp_path),
        TESTS_SCRIPT,
        [*runs, ORIGINAL],
        workdir=str(tree),
        tests_uid=NO_USER,
        passing=[TEST],
        patch=PATCH,
    )
    assert results is not None
    assert [result.report.has_failed(TEST) for result in results if result.report] == [True, True, False]
    seen = [line.split() for line in (tree / "seen").read_text().splitlines()]
    assert [row[:2] for row in seen] == [["one", "fixed"], ["two", "fixed"], ["none", "fixed"]]
    assert seen[0][2] < seen[1][2] < seen[2][2], "interpreters compare times"

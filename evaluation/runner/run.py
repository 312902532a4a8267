"""A run of the tests in a single fresh container without network, and its result.

This is the host's side of `evaluate.sh.j2`. It puts patch and script into a folder with a random name that only root
may read, and collects the report, the times and the names of the canaries from there.
"""

from __future__ import annotations

import hashlib
import logging
import os
import secrets
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cache
from types import MappingProxyType

from tenacity import Retrying, before_sleep_log, retry_if_exception_type, stop_after_attempt

from backends.sandbox.base import ContainerPool
from backends.sandbox.execution import ContainerLossError, ExecResult
from evaluation.reports import coverage, junit
from evaluation.reports.outcomes import EvaluationReport
from evaluation.runner.time_limit import TimeLimit
from guest.harness import HARNESS_FOLDER
from guest.reports import canaries
from guest.reports.entries import split_entries
from guest.reports.junit import UnreadableReportError
from guest.scoring.file_order import shuffle_files

log = logging.getLogger(__name__)

# Exit codes decide nothing, as tests end with any; root writes the files `error` and `unapplied`.
START_SCRIPT = """
run_dir="$1" workdir="$2"
chmod 711 "$run_dir" && install -d -m 711 "$run_dir/report" || exit
fail() { echo "$1" > "$run_dir/report/error"; exit 97; }
cd "$workdir" || fail "there is no $workdir"
/bin/bash -n "$run_dir/evaluate.sh" || fail "the evaluation script is damaged"
export GIT_CONFIG_NOSYSTEM=1 GIT_CONFIG_GLOBAL=/dev/null GIT_ATTR_NOSYSTEM=1
export GIT_DIR="$workdir/.git" GIT_WORK_TREE="$workdir"
if [ -s "$run_dir/submission.patch" ]; then
    python3 -I -S -B "$run_dir/apply_patch.py" --record "$run_dir/report" "$run_dir/submission.patch" || {
        : > "$run_dir/report/unapplied"
        exit 96
    }
fi
unset GIT_DIR GIT_WORK_TREE
export MERGEMILL_REPORT_DIR="$run_dir/report"
[ ! -f "$run_dir/files" ] || export MERGEMILL_FILES="$run_dir/files"
[ ! -f "$run_dir/test.patch" ] || export MERGEMILL_TEST_PATCH="$run_dir/test.patch"
[ ! -d "$run_dir/tests" ] || export MERGEMILL_TEST_FILES="$run_dir/tests"
[ -f "$run_dir/collect.sh" ] || exec /bin/bash "$run_dir/evaluate.sh"
. "$run_dir/collect.sh"
/bin/bash "$run_dir/evaluate.sh"
code=$?
[ ! -d "$run_dir/report" ] || write_coverage "$run_dir/report/covered.lines"
exit $code
"""
"""Its arguments are the folder of the run and that of the tree."""

MAX_CONTAINERS = 3
"""Containers that a run may take, where they are killed or removed from outside."""
REPORT_FILES = (
    *("error", "tree_error", "unapplied", "repairs", "times", "canaries", "cpu"),
    *("touched", "restored", "known", "junit.xml"),
    coverage.COVERAGE_FILE,
)
"""Files collected from the report folder. They belong to root; the tests write to a folder beside them."""

NO_FILES: Mapping[str, bytes] = MappingProxyType({})


@dataclass(frozen=True, kw_only=True)
class EvaluationResult:
    """Result of a run. `report` is None when the runner left none that can be read."""

    exec_result: ExecResult
    report: EvaluationReport | None
    """Outcomes without the canaries."""
    test_seconds: float
    """Seconds that the test process ran, start of the interpreter included."""
    started: float = 0.0
    """When the tests began, in seconds since 1970 by the clock of their container; 0 where none ran."""
    script_sha256: str
    log: str
    is_applied: bool
    """Whether the patch applied; if not, no test ran."""
    canary_status: str
    """`right`, `wrong` (a canary has an impossible status), `missing`, or `none` where the script adds no canaries."""
    has_forged_canary: bool = False
    """Whether the canary that must fail is reported as passed, which an unmanipulated runner never does."""
    infrastructure_error: str | None = None
    tree_error: str | None = None
    """Why no test could run in the tree with the patch, such as a test patch that applies to HEAD and not to it."""
    cpu_seconds: float | None = None
    """Processor time of the tests and all their processes, where the script meters it and the kernel provides it."""
    covered_lines: coverage.CoveredLines | None = None
    """Lines that were executed, where they were collected and the language supports it."""
    repairs: tuple[str, ...] = ()
    """Repairs of the patch's form without which it does not apply; see `guest.harness.apply_patch`."""
    time_limit: TimeLimit | None = None
    """Limit from an earlier run, where there was one."""
    restored_files: tuple[str, ...] = ()
    """Files of the patch that were put back or removed before the tests, as they are protected; sorted."""

    @property
    def script_error(self) -> str | None:
        """Why the script ran no test, whoever is responsible."""
        return self.infrastructure_error or self.tree_error

    @property
    def hangs(self) -> bool:
        """Whether the run was ended because it took many times as long as an earlier one."""
        limit, ended = self.time_limit, self.exec_result
        return ended.killed_by == "time" and limit is not None and ended.seconds >= limit.seconds

    @property
    def failure_detail(self) -> str:
        """Why there is no complete report: a limit ended the run, or the runner left none. Empty otherwise."""
        if self.tree_error:
            return self.tree_error
        if self.hangs and self.time_limit:
            return self.time_limit.describe()
        if self.exec_result.killed_by:
            return f"the tests were ended for {self.exec_result.killed_by}"
        return "" if self.report is not None else f"the runner left no report, exit code {self.exec_result.exit_code}"


def run_tests(
    pool: ContainerPool,
    script: str,
    *,
    workdir: str = "/testbed",
    patch: bytes = b"",
    test_patch: bytes | None = None,
    test_files: Mapping[str, bytes] = NO_FILES,
    files: Sequence[str] = (),
    seed: int = 0,
    time_zone: str = "",
    known_files: Sequence[str] = (),
    collect_lines: bool = False,
    time_limit: TimeLimit | None = None,
    last: bool = False,
) -> EvaluationResult:
    """Run the evaluation script in a fresh container.

    Args:
        pool: containers of the task's image.
        script: the rendered evaluation script.
        workdir: the tree's folder, as in the script.
        patch: gold patch or submission, applied first; may be empty. A patch that does not apply is a result.
        test_patch: test patch that replaces the script's own test patch.
        test_files: path -> content of files of the test patch, written after it was applied (blind controls).
        files: test files to run instead of the script's; shuffled for every seed but 0.
        seed: hash seed, and seed of the order of `files`.
        time_zone: name of the tests' time zone; empty for that of the script.
        known_files: further paths of test files, in addition to those in the tree.
        collect_lines: whether to collect the executed lines of the tree; the script stays the same.
        time_limit: limit from an earlier run of these tests; None for the pool's alone.
        last: whether this is the pool's last run.

    Raises:
        Transient: the engine failed.
    """
    # The name is random, so that no patch can contain a path into the folder.
    run_dir = f"/mergemill-{secrets.token_hex(8)}"
    inputs = list_inputs(script, patch, test_files, files, seed)
    inputs |= {} if test_patch is None else {"test.patch": test_patch}
    inputs |= coverage.load_collectors() if collect_lines else {}
    # Nothing is left of what ran in a container that is lost.
    attempts = Retrying(
        retry=retry_if_exception_type(ContainerLossError),
        stop=stop_after_attempt(MAX_CONTAINERS),
        before_sleep=before_sleep_log(log, logging.INFO),
        reraise=True,
    )
    exec_result = attempts(
        pool.run,
        ["/bin/bash", "-c", START_SCRIPT, "mergemill", run_dir, workdir],
        files={f"{run_dir}/{name}": content for name, content in inputs.items()},
        collect=[f"{run_dir}/report/{name}" for name in REPORT_FILES],
        env={"MERGEMILL_SEED": str(seed), "MERGEMILL_TZ": time_zone},
        seconds=time_limit.seconds if time_limit else None,
        last=last,
    )
    return replace(parse_result(exec_result, script, known_files), time_limit=time_limit)


def list_inputs(
    script: str, patch: bytes, test_files: Mapping[str, bytes], files: Sequence[str], seed: int
) -> dict[str, bytes]:
    """Return name -> content of the files of a run's folder; arguments as in `run_tests`."""
    inputs = {"evaluate.sh": script.encode(), "submission.patch": patch}
    inputs |= {"apply_patch.py": load_patch_program()} if patch else {}
    inputs |= {f"tests/{path}": content for path, content in test_files.items()}
    return inputs | ({"files": "".join(f"{file}\n" for file in shuffle_files(files, seed)).encode()} if files else {})


def parse_result(exec_result: ExecResult, script: str, known_files: Sequence[str] = ()) -> EvaluationResult:
    """Return the result of a run from the files it left, whose folder does not matter.

    Args:
        exec_result: result of the command, with the files of `REPORT_FILES` that exist.
        script: the rendered evaluation script.
        known_files: further paths of test files, in addition to those in the tree.
    """
    files = {path.rpartition("/")[2]: content for path, content in exec_result.files.items()}
    required = canaries.parse_canary_list(files.get("canaries", b""))
    report = _parse_report(files, [*known_files, *required])
    statuses = {test: outcome.status.value for test, outcome in report.outcomes.items()} if report else {}
    started, ended = _parse_times(files)
    return EvaluationResult(
        exec_result=replace(exec_result, files={}),
        report=report.without_files(required) if report else None,
        canary_status=canaries.judge_canaries(statuses, required),
        test_seconds=ended - started,
        started=started,
        script_sha256=hashlib.sha256(script.encode()).hexdigest(),
        log=exec_result.output,
        is_applied="unapplied" not in files,
        has_forged_canary=canaries.has_forged_canary(statuses, required),
        infrastructure_error=_read_line(files, "error"),
        tree_error=_read_line(files, "tree_error"),
        cpu_seconds=int(files.get("cpu", b"0")) / 1e9 or None,
        covered_lines=coverage.parse_coverage(files.get(coverage.COVERAGE_FILE)),
        repairs=tuple(files.get("repairs", b"").decode().splitlines()),
        restored_files=tuple(sorted(_split_paths(files, "touched") & _split_paths(files, "restored"))),
    )


@cache
def load_patch_program() -> bytes:
    """Return the program that applies a submission's patch in its container."""
    return (HARNESS_FOLDER / "apply_patch.py").read_bytes()


def _split_paths(files: Mapping[str, bytes], name: str) -> set[str]:
    return {os.fsdecode(path) for path in files.get(name, b"").split(b"\0") if path}


def _read_line(files: Mapping[str, bytes], name: str) -> str | None:
    return files[name].decode(errors="replace").strip() if name in files else None


def _parse_report(collected: Mapping[str, bytes], known_files: Sequence[str]) -> EvaluationReport | None:
    if "junit.xml" not in collected:
        return None
    known = split_entries(collected.get("known", b""))
    try:
        return junit.parse_junit(collected["junit.xml"], {*known, *known_files})
    except UnreadableReportError:
        return None


def _parse_times(collected: Mapping[str, bytes]) -> tuple[float, float]:
    """Return begin and end of the tests, in seconds since 1970; zeros where none ran."""
    times = collected.get("times", b"").split()
    return (int(times[0]) / 1e9, int(times[1]) / 1e9) if len(times) == 3 else (0.0, 0.0)

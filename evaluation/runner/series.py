"""Runs of the tests of many trees in the same container, one after the other: a file is replaced for each and put back.

The trees of a series may also differ in test files alone, which the evaluation script puts back itself.

A container is started once and compilers build only the changed parts, so a run costs little more than its tests. Files
and processes of a run may change the next: the last run is one of the original tree, and where a test fails in it that
is known to pass, nothing of the series counts. Use it to select, and confirm the selection in a fresh container.
"""

from __future__ import annotations

import secrets
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field, replace

from backends.sandbox.base import ContainerPool
from backends.sandbox.execution import ExecResult
from evaluation.runner.run import REPORT_FILES, EvaluationResult, load_patch_program, parse_result
from taskdb.records import TestId

# A file gets another time in whole seconds with each text: interpreters and build tools compare times, not texts. A
# killed run leaves processes of the tests' user, which are ended as well.
_SERIES_SCRIPT = """
run_dir="$1" workdir="$2" user="$3"
chmod 711 "$run_dir" && cd "$workdir" || exit
export GIT_CONFIG_NOSYSTEM=1 GIT_CONFIG_GLOBAL=/dev/null
written=""
pause() { while [ "$EPOCHSECONDS" = "$written" ]; do sleep 0.1; done; }
replace() {  # TEXT PATH
    pause
    cat -- "$1" > "./$2"
    written="$EPOCHSECONDS"
}
if [ -s "$run_dir/submission.patch" ]; then
    GIT_ATTR_NOSYSTEM=1 GIT_DIR="$workdir/.git" GIT_WORK_TREE="$workdir" \\
        python3 -I -S -B "$run_dir/apply_patch.py" --record "$run_dir" "$run_dir/submission.patch" || exit
fi
for folder in "$run_dir"/[0-9]*; do
    install -d -m 711 "$folder" "$folder/report"
    path="" seconds=0 cpu=0
    [ ! -f "$folder/path" ] || IFS= read -r path < "$folder/path"
    read -r seconds cpu < "$folder/seconds"
    if [ -n "$path" ]; then replace "$folder/after" "$path"; else pause; fi
    (
        [ "$cpu" = 0 ] || ulimit -t "$cpu"
        MERGEMILL_TEST_FILES="$([ ! -d "$folder/tests" ] || echo "$folder/tests")" \\
        MERGEMILL_REPORT_DIR="$folder/report" MERGEMILL_FILES="$([ ! -f "$folder/files" ] || echo "$folder/files")" \\
        exec timeout -s KILL "$seconds" /bin/bash "$run_dir/evaluate.sh"
    ) > /dev/null 2>&1
    echo $? > "$folder/report/code"
    setpriv --reuid="$user" --regid="$user" --clear-groups bash -c 'kill -KILL -1' 2> /dev/null
    if [ -n "$path" ]; then replace "$folder/before" "$path"; else written="$EPOCHSECONDS"; fi
done
"""
_KILLED_CODE = 137
"""Exit code of a command that was killed: by `timeout` or, with its own tests, for its CPU seconds."""


@dataclass(frozen=True, kw_only=True)
class SeriesRun:
    """A run of a series: the tests of a tree in which at most a single file is replaced."""

    path: str = ""
    """Path of the replaced file, without line breaks; empty for the original tree."""
    before: bytes = b""
    """Its original content."""
    after: bytes = b""
    """Its content in this run."""
    files: tuple[str, ...] = ()
    """Test files to run; empty for those of the script."""
    test_files: Mapping[str, bytes] = field(default_factory=dict)
    """Path -> content of test files that replace those of the test patch."""
    seconds: float
    """Time limit."""
    cpu_seconds: int = 0
    """CPU seconds after which any of its processes is killed, however busy the machine is; 0 for no limit."""


def run_series(
    pool: ContainerPool,
    script: str,
    runs: Sequence[SeriesRun],
    *,
    workdir: str,
    tests_uid: int,
    passing: Collection[TestId],
    patch: bytes = b"",
    last: bool = False,
) -> list[EvaluationResult] | None:
    """Return the result of each run; None where the tree was not as before in the end, so that none of them counts.

    Args:
        pool: containers of the tree's image, whose time limit is at least the sum of those of the runs.
        script: the rendered evaluation script.
        runs: the runs, the last of the original tree and of the files of all others.
        workdir: the tree's folder, as in the script.
        tests_uid: id of the user that runs the tests.
        passing: tests that pass in the last run where the tree is as before.
        patch: patch that makes the original tree of the image's; may be empty.
        last: whether the pool need not prepare a container for a later run.

    Raises:
        Transient: the engine failed.
    """
    run_dir = f"/mergemill-{secrets.token_hex(8)}"
    inputs = {f"{run_dir}/evaluate.sh": script.encode()}
    if patch:
        inputs |= {f"{run_dir}/submission.patch": patch, f"{run_dir}/apply_patch.py": load_patch_program()}
    for number, run in enumerate(runs):
        inputs |= {f"{run_dir}/{number:04}/{name}": content for name, content in _list_inputs(run).items()}
    names = (*REPORT_FILES, "code")
    result = pool.run(
        ["/bin/bash", "-c", _SERIES_SCRIPT, "mergemill", run_dir, workdir, str(tests_uid)],
        files=inputs,
        collect=[f"{run_dir}/{number:04}/report/{name}" for number in range(len(runs)) for name in names],
        env={"MERGEMILL_SEED": "0", "MERGEMILL_TZ": ""},
        last=last,
    )
    if result.killed_by:
        return None
    results = [
        parse_result(
            select_run(
                result,
                f"{run_dir}/{number:04}/report/",
                seconds=run.seconds,
                is_killed_for_cpu=run.cpu_seconds > 0,
            ),
            script,
        )
        for number, run in enumerate(runs)
    ]
    original = results[-1].report
    return results if original is not None and all(original.has_passed(test) for test in passing) else None


def _list_inputs(run: SeriesRun) -> dict[str, bytes]:
    """Return the files of a run's folder."""
    inputs = {"seconds": f"{run.seconds:.1f} {run.cpu_seconds}\n".encode()}
    if run.files:
        inputs["files"] = "".join(f"{file}\n" for file in run.files).encode()
    if run.path:
        path = run.path.encode(errors="surrogateescape")
        inputs |= {"path": path + b"\n", "before": run.before, "after": run.after}
    return inputs | {f"tests/{path}": content for path, content in run.test_files.items()}


def select_run(result: ExecResult, folder: str, *, seconds: float, is_killed_for_cpu: bool = False) -> ExecResult:
    """Return one of several runs in a container as the result of a command of its own, without output.

    Args:
        result: result of the command that made the runs.
        folder: folder of the run's report, with a slash at its end. Its file `code` has the exit code of the run.
        seconds: time limit of the run.
        is_killed_for_cpu: whether its tests are killed after some CPU seconds.
    """
    files = {path: content for path, content in result.files.items() if path.startswith(folder)}
    code = int(files.pop(f"{folder}code", b"1"))
    # The script ends itself where its tests were killed, and writes how long they took.
    has_ended, has_report = f"{folder}times" in files, f"{folder}junit.xml" in files
    is_late = code == _KILLED_CODE and (not has_ended or (is_killed_for_cpu and not has_report))
    return replace(
        result,
        exit_code=code,
        files=files,
        output="",
        seconds=seconds if is_late else 0.0,
        killed_by="time" if is_late else None,
    )

"""Runs of tests in one container, each after the one before, which saves the containers of all but the first.

For trusted trees alone: those of the base commit and of the gold patch, with the change's own tests. Files that a run
leaves may change the next, so a success of a later run counts and nothing else: without one it is to be made again in a
container of its own. The first run is as in a container of its own.
"""

from __future__ import annotations

import re
import secrets
from collections.abc import Sequence
from dataclasses import dataclass, replace

from backends.sandbox.base import ContainerPool
from evaluation.reports.outcomes import EvaluationReport
from evaluation.runner.run import REPORT_FILES, START_SCRIPT, EvaluationResult, list_inputs, parse_result
from evaluation.runner.series import select_run
from evaluation.runner.time_limit import TimeLimit
from evaluation.script.render import TESTS_UID
from guest.reports.canaries import parse_canary_list

_CANARY_WORD = re.compile("[0-9a-f]{32}")
"""Digits that a canary and its file have in their names."""
# A run may leave processes of the tests' user, which are ended before the next. A file gets another time in whole
# seconds with each text, by which interpreters and build tools see that it changed.
_SCRIPT = """
workdir="$1" user="$2" mark="$3" whole="$4" first="" ended=""
shift 4
is_right() { [ -s "$1" ] && [ "$(grep -oE '<(failure|error)[ />]' "$1" | wc -l)" -le 1 ]; }
for folder; do
    while [ "$EPOCHSECONDS" = "$ended" ]; do sleep 0.1; done
    read -r seconds factor seed < "$folder/settings"
    [ "$factor" = 0 ] || seconds=$((${seconds%.*} + factor * (first + 1)))
    if [ -n "$first" ]; then
        [ -z "$whole" ] || [ $((SECONDS + ${seconds%.*})) -lt "$whole" ] || break
        echo "$mark"
    fi
    started="$EPOCHREALTIME"
    MERGEMILL_SEED="$seed" MERGEMILL_TZ="" \\
        timeout -s KILL "$seconds" /bin/bash "$folder/start.sh" "$folder" "$workdir"
    code=$?
    if [ -d "$folder/report" ]; then
        echo $code > "$folder/report/code"
        echo "$started $EPOCHREALTIME" > "$folder/report/took"
    fi
    setpriv --reuid="$user" --regid="$user" --clear-groups bash -c 'kill -KILL -1' 2> /dev/null
    [ -z "$whole" ] || [ -n "$first" ] || is_right "$folder/report/junit.xml" || break
    first="${first:-$SECONDS}" ended="$EPOCHSECONDS"
done
"""


@dataclass(frozen=True, kw_only=True)
class PlannedRun:
    """A run of the tests; other fields as in `evaluation.runner.run.run_tests`."""

    script: str
    patch: bytes = b""
    """Patch that is applied before it, to the tree as the earlier runs leave it."""
    files: Sequence[str] = ()
    seed: int = 0
    seconds: float
    """Time limit, to which a multiple of the seconds of the first run is added."""
    factor: int = 0
    """The multiple."""
    time_limit: TimeLimit | None = None
    """Origin of the time limit, if an earlier run of these tests is."""


def run_in_turn(
    pool: ContainerPool,
    runs: Sequence[PlannedRun],
    *,
    workdir: str,
    continue_within: float | None = None,
    last: bool = False,
) -> list[EvaluationResult] | None:
    """Make the runs in a fresh container; None where the container was killed.

    Args:
        pool: containers of the tree's image, whose time limit is at least the sum of those of the runs.
        runs: the runs in their order.
        workdir: the tree's folder, as in the scripts.
        continue_within: time limit of the container. Later runs are then made, and have a result, only while there is
            time, and where no test but a canary failed in the first one. None to make all.
        last: whether this is the pool's last command.

    Raises:
        Transient: the engine failed.
    """
    name = secrets.token_hex(8)
    folders, mark = [f"/mergemill-{name}-{number}" for number in range(len(runs))], f"end-of-run-{name}"
    whole = "" if continue_within is None else f"{continue_within:.0f}"
    result = pool.run(
        ["/bin/bash", "-c", _SCRIPT, "mergemill", workdir, str(TESTS_UID), mark, whole, *folders],
        files={
            f"{folder}/{path}": content
            for folder, run in zip(folders, runs, strict=True)
            for path, content in _list_inputs(run).items()
        },
        collect=[f"{folder}/report/{path}" for folder in folders for path in (*REPORT_FILES, "code", "took")],
        last=last,
    )
    if result.killed_by:
        # Of runs that begin only while there is time, the first alone can take all of it.
        is_first = continue_within is not None and result.killed_by == "time"
        return [parse_result(result, runs[0].script)] if is_first else None
    # Of a long output, which is cut, it is not known where a run ends.
    logs = result.output.split(f"{mark}\n")
    is_made = [f"{folder}/report/code" in result.files for folder in folders]
    n_made = len(runs) if continue_within is None else max(1, sum(is_made))
    if len(logs) != n_made:
        logs = [result.output] * n_made
    results = []
    words: list[str] = []  # of the canaries of earlier runs
    for folder, run, log in zip(folders, runs, logs, strict=False):
        took = result.files.get(f"{folder}/report/took", b"0 0").split()
        selected = select_run(result, f"{folder}/report/", seconds=run.seconds)
        seconds = selected.seconds or float(took[1]) - float(took[0])
        parsed = parse_result(replace(selected, output=log, seconds=seconds), run.script)
        results.append(replace(parsed, report=_leave_out(parsed.report, words), time_limit=run.time_limit))
        canaries = parse_canary_list(result.files.get(f"{folder}/report/canaries", b""))
        words += [word for canary in canaries for word in _CANARY_WORD.findall(canary)]
    return results


def _leave_out(report: EvaluationReport | None, words: Sequence[str]) -> EvaluationReport | None:
    """Return a report without the tests and files whose names have a word.

    Some build tools, such as Maven for Kotlin, keep the compiled form of a test whose source is gone, so that a run has
    the canaries of the one before it.
    """

    def is_other(name: str) -> bool:
        return not any(word in name for word in words)

    if report is None or not words:
        return report
    return replace(
        report,
        outcomes={test: outcome for test, outcome in report.outcomes.items() if is_other(test)},
        uncollected={file: why for file, why in report.uncollected.items() if is_other(file)},
    )


def _list_inputs(run: PlannedRun) -> dict[str, bytes]:
    """Return path -> content of the files of a run's folder."""
    settings = f"{run.seconds:.1f} {run.factor} {run.seed}\n"
    inputs = list_inputs(run.script, run.patch, {}, run.files, run.seed)
    return {**inputs, "start.sh": START_SCRIPT.encode(), "settings": settings.encode()}

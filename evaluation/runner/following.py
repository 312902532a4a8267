"""A run of tests that follows another one in the same container, which saves the second container.

Files that the first run left may change the second, so only a success of the second counts. Without one it is to be
run again in a container of its own. The first run is as in a container of its own.
"""

from __future__ import annotations

import secrets
from collections.abc import Mapping
from dataclasses import dataclass, replace

from backends.sandbox.base import ContainerPool
from evaluation.runner.run import REPORT_FILES, START_SCRIPT, EvaluationResult, load_patch_program, parse_result
from evaluation.runner.series import select_run
from evaluation.runner.time_limit import TimeLimit
from evaluation.script.render import TESTS_UID

# A run may leave processes of the tests' user, which are ended before the next.
_SCRIPT = """
workdir="$1" user="$2"
shift 2
for folder; do
    read -r seconds < "$folder/seconds"
    timeout -s KILL "$seconds" /bin/bash "$folder/start.sh" "$folder" "$workdir"
    code=$?
    [ ! -d "$folder/report" ] || echo $code > "$folder/report/code"
    setpriv --reuid="$user" --regid="$user" --clear-groups bash -c 'kill -KILL -1' 2> /dev/null
done
"""


@dataclass(frozen=True, kw_only=True)
class FollowingRun:
    """The second run: rendered evaluation script, patch that is applied before it, and time limit in seconds."""

    script: str
    patch: bytes
    seconds: float


def run_with_following(
    pool: ContainerPool,
    script: str,
    following: FollowingRun,
    *,
    workdir: str,
    time_limit: TimeLimit,
    last: bool = False,
) -> tuple[EvaluationResult, EvaluationResult] | None:
    """Run the tests in a fresh container, and others after them; None where the container was killed.

    Args:
        pool: containers of the tree's image, whose time limit is at least the sum of both.
        script: the rendered evaluation script of the first run.
        following: the second run.
        workdir: the tree's folder, as in both scripts.
        time_limit: limit of the first run.
        last: whether this is the pool's last run.

    Raises:
        Transient: the engine failed.
    """
    name = secrets.token_hex(8)
    folders = [f"/mergemill-{name}-{number}" for number in (1, 2)]
    files = {
        **_list_inputs(folders[0], script, b"", time_limit.seconds),
        **_list_inputs(folders[1], following.script, following.patch, following.seconds),
    }
    result = pool.run(
        ["/bin/bash", "-c", _SCRIPT, "mergemill", workdir, str(TESTS_UID), *folders],
        files=files,
        collect=[f"{folder}/report/{name}" for folder in folders for name in (*REPORT_FILES, "code")],
        env={"MERGEMILL_SEED": "0", "MERGEMILL_TZ": ""},
        last=last,
    )
    if result.killed_by:
        return None
    first, second = (
        select_run(result, f"{folder}/report/", seconds=seconds)
        for folder, seconds in zip(folders, (time_limit.seconds, following.seconds), strict=True)
    )
    parsed = parse_result(replace(first, output=result.output), script)
    return replace(parsed, time_limit=time_limit), parse_result(second, following.script)


def _list_inputs(folder: str, script: str, patch: bytes, seconds: float) -> Mapping[str, bytes]:
    """Return path -> content of the files of a run."""
    inputs = {"start.sh": START_SCRIPT.encode(), "evaluate.sh": script.encode(), "submission.patch": patch}
    inputs |= {"seconds": f"{seconds:.1f}\n".encode()} | ({"apply_patch.py": load_patch_program()} if patch else {})
    return {f"{folder}/{name}": content for name, content in inputs.items()}

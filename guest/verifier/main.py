"""Entry point of `verifier.pyz`: scores the submission of a task whose lists of tests are not sufficient.

    python3 -I -S -B verifier.pyz

Runs as root in a container of the task's image. The folder of the archive holds task.json and the files that it names.
Exit code
0: value 1. 1: a lower value. 97: the evaluation itself failed, and no reward was written.
"""

from __future__ import annotations

import json
import math
import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Callable, Mapping
from typing import Any

from guest.verifier import grade
from guest.verifier.kind_score import KindScore
from guest.verifier.review import score_findings
from guest.verifier.timed import score_speed
from guest.verifier.writing import score_tests

VERIFIERS: Mapping[str, Callable[[Mapping[str, Any], bytes, str, str], KindScore]] = {
    "test-writing": score_tests,
    "performance": score_speed,
    "review": score_findings,
}
"""Form of the oracle -> function that scores a submission."""
MAX_SUBMISSION = 64 * 1024 * 1024
"""Bytes read of a submission."""


def main() -> int:
    """Score the submission, write the reward and return the exit code."""
    folder = grade.HERE
    with open(os.path.join(folder, "task.json"), encoding="utf-8") as file:
        task = json.load(file)
    os.chmod(folder, 0o700)
    path = task["submission"]
    if not os.path.lexists(path):
        print(f"MERGEMILL_INFRASTRUCTURE_ERROR: the agent's work was not collected to {path}")
        return grade.INFRASTRUCTURE_EXIT
    work = tempfile.mkdtemp(prefix="grade-", dir="/")
    os.chmod(work, 0o711)  # noqa: S103 - the tests' user writes its report somewhere below
    write_reward(task, KindScore(0.0, {}, ""))  # until there is a better one
    try:
        grade.set_deadline(task.get("deadline", 0))
        content = b""
        if os.path.isfile(path) and not os.path.islink(path):  # else an agent's process put something else there
            with open(path, "rb") as submission:
                content = submission.read(MAX_SUBMISSION)
        score = VERIFIERS[task["form"]](task, content, folder, work)
        write_reward(task, score)
    except grade.InfrastructureFailure as error:
        os.remove(task["reward"])
        print(f"MERGEMILL_INFRASTRUCTURE_ERROR: {error}")
        return grade.INFRASTRUCTURE_EXIT
    except (OSError, subprocess.SubprocessError, MemoryError, RecursionError) as error:
        print(f"the submission earns 0, as its evaluation ended early: {error}")
        return 1
    finally:
        grade.set_deadline(0)
        grade.kill_tests()
        shutil.rmtree(work, ignore_errors=True)
    print(score.explanation)
    for kind in score.tampering:
        print(f"tampering: {kind}")
    return 0 if score.value == 1 else 1


def write_reward(task: Mapping[str, Any], score: KindScore) -> None:
    """Write the reward and its components."""
    rewards = {"reward": score.value, **score.parts, "tampering": len(score.tampering)}
    finite = {name: value for name, value in rewards.items() if math.isfinite(value)}
    grade.write_file(task["reward"], json.dumps(finite) + "\n")


if __name__ == "__main__":
    sys.exit(main())

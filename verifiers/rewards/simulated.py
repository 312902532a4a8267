"""What a submission to a simulated task is worth: a model plays the tests on it. A guess, and marked as one."""

from __future__ import annotations

from backends.git import GitError, touched
from backends.services import Services
from backends.simulation.play import UnplayableError, play, scene
from taskdb.records import Score, Task
from verifiers.grade import pass_rate

SAID = "a model played the tests, nothing was run"


def grade(task: Task, services: Services, submission: bytes) -> Score:
    """The score of a patch by what the model says of it; None where there is no model or no usable answer.

    Raises:
        Transient: the endpoint failed.
    """
    get = services.artifacts.get
    f2p = [test for test, _ in task.FAIL_TO_PASS]
    try:
        setting = scene(
            services.clones.open(task.source, task.repo), task.base_commit, language=task.language,
            test_patch=get(task.test_patch), patch=submission, files=touched(get(task.gold_patch)),
            test_files={test.partition("::")[0] for test in (*f2p, *task.PASS_TO_PASS)},
        )  # fmt: skip
        report = play(setting, services)
    except (UnplayableError, GitError) as error:
        why = str(error)
        return Score(task=task.name, value=None, resolved=False, f2p_rate=0.0, p2p_rate=0.0, infrastructure_error=why)
    f2p_rate, p2p_rate = pass_rate(f2p, report), pass_rate(task.PASS_TO_PASS, report)
    resolved = f2p_rate == p2p_rate == 1.0
    return Score(
        task=task.name, value=1.0 if resolved else 0.0, resolved=resolved, f2p_rate=f2p_rate, p2p_rate=p2p_rate,
        explanation=SAID,
    )  # fmt: skip

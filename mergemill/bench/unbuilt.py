"""Storing of published tasks that need no environment of ours."""

from __future__ import annotations

from taskdb.records import Candidate, PullRequest, Rejection, Stage, Task
from taskdb.records.work import StageResult
from taskdb.store import Store


def store_unbuilt_task(
    store: Store, pull: PullRequest, candidate: Candidate, task: Task, *, reason: str, detail: str
) -> None:
    """Store a published task with its change, and why no environment is built for it.

    Args:
        store: the database.
        pull: the change that stands for the published row.
        candidate: its candidate.
        task: the task that was made of it.
        reason: reason for which no environment is built.
        detail: a line about it for people.
    """
    store.add_mined_changes((pull, candidate, 0.0))
    # Without a result of this stage the pipeline would try to build an environment for it.
    unbuilt = Rejection(
        parent=candidate.id, name=pull.name, source=pull.source, stage=Stage.BUILD, reason=reason, detail=detail
    )
    for stage, result, kind in ((Stage.BUILD, unbuilt, None), (Stage.DERIVE, task, task.kind)):
        store.add_stage_results(
            StageResult(stage=stage, result=result, source=pull.source, name=pull.name, seconds=0.0, kind=kind)
        )

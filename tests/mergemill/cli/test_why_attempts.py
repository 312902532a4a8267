"""`mergemill why` shows the attempts at an environment and the model's conversation."""

from __future__ import annotations

from pathlib import Path

import pytest

from builders.agent.transcript import Transcript, TranscriptEvent
from core.config import Settings
from taskdb.artifacts import open_artifacts
from taskdb.records import Attempt, Stage
from taskdb.records.work import StageResult
from taskdb.store import Store
from tests import records
from tests.cli import run_mergemill
from tests.taskdb.lineages import make_url

CONVERSATION = Transcript(model="m", prompts="p", events=(TranscriptEvent(event="reply", text="I have found it."),))


def make_attempts(transcript: str) -> tuple[Attempt, ...]:
    given = {
        "number": 2,
        "proposed_by": "(agent)",
        "rationale": "CI says so",
        "edits": ("set-env A=1",),
        "reason": "accepted",
    }
    first = Attempt(number=1, proposed_by="draft", rationale="", edits=(), reason="no-report", detail="it broke")
    return first, Attempt(**given, detail="", tokens=1234, cost=0.5, transcript=transcript)


@pytest.mark.parametrize("repaired", [True, False])
def test_attempts_and_conversation_are_shown_for_repaired_and_rejected_changes(tmp_path: Path, repaired: bool) -> None:
    pull = records.make_pull_request()
    candidate = records.make_candidate(pull)
    tried = make_attempts(open_artifacts(Settings(db=make_url(tmp_path)).storage).put(CONVERSATION.to_bytes()))
    result = (
        records.make_environment(candidate, attempts=tried)
        if repaired
        else records.make_rejection(candidate, Stage.BUILD, "no-report", attempts=tried)
    )
    with Store.open(make_url(tmp_path)) as store:
        store.add_mined_changes((pull, candidate, 0.1))
        store.add_stage_results(
            StageResult(stage=Stage.BUILD, result=result, source=pull.source, name=pull.name, seconds=1.0)
        )
    given = ["why", pull.name, "--db", make_url(tmp_path)]
    shown = run_mergemill(*given, "--json", cwd=tmp_path).json["attempts"]
    assert [(attempt["number"], attempt["proposed_by"], attempt["edits"]) for attempt in shown] == [
        (1, "draft", []),
        (2, "(agent)", ["set-env A=1"]),
    ]
    plain = run_mergemill(*given, cwd=tmp_path).stdout
    assert "set-env A=1" in plain
    assert "1234" in plain
    assert "--conversation" in plain
    assert "I have found it." in run_mergemill(*given, "--conversation", cwd=tmp_path).stdout


def test_without_a_model_there_is_no_conversation(tmp_path: Path) -> None:
    pull = records.make_pull_request()
    with Store.open(make_url(tmp_path)) as store:
        store.add_mined_changes((pull, records.make_candidate(pull), 0.1))
    done = run_mergemill("why", pull.name, "--conversation", "--db", make_url(tmp_path), cwd=tmp_path)
    assert done.exit_code == 3
    assert "no model was queried" in done.stderr

"""`mergemill why` tells what was tried to get an environment, and what a model said on the way."""

from __future__ import annotations

from pathlib import Path

import pytest

from builders.agent.transcript import Event, Transcript
from mergemill.config import Settings
from mergemill.services import artifacts_of
from taskdb.chains import Finished
from taskdb.records import Attempt, Stage
from taskdb.store import Store
from tests import records
from tests.cli import mergemill
from tests.taskdb.chains import url

SAID = Transcript(model="m", prompts="p", events=(Event(event="said", text="I have found it."),))


def attempts(transcript: str) -> tuple[Attempt, ...]:
    given = {"number": 2, "by": "(agent)", "why": "CI says so", "edits": ("set-env A=1",), "reason": "accepted"}
    first = Attempt(number=1, by="draft", why="", edits=(), reason="no-report", detail="it broke")
    return first, Attempt(**given, detail="", tokens=1234, cost=0.5, transcript=transcript)


@pytest.mark.parametrize("mended", [True, False])
def test_attempts_and_what_a_model_said_are_told_of_mended_and_of_rejected_changes(
    tmp_path: Path, mended: bool
) -> None:
    pull = records.pull_request()
    candidate = records.candidate(pull)
    tried = attempts(artifacts_of(Settings(db=url(tmp_path))).put(SAID.to_bytes()))
    result = (
        records.environment(candidate, attempts=tried)
        if mended
        else records.rejection(candidate, Stage.BUILD, "no-report", attempts=tried)
    )
    with Store.open(url(tmp_path)) as store:
        store.mined((pull, candidate, 0.1))
        store.finish(Finished(stage=Stage.BUILD, result=result, source=pull.source, name=pull.name, seconds=1.0))
    given = ["why", pull.name, "--db", url(tmp_path)]
    told = mergemill(*given, "--json", cwd=tmp_path).json["attempts"]
    assert [(one["number"], one["by"], one["edits"]) for one in told] == [
        (1, "draft", []), (2, "(agent)", ["set-env A=1"])
    ]  # fmt: skip
    plain = mergemill(*given, cwd=tmp_path).out
    assert "set-env A=1" in plain
    assert "1234" in plain
    assert "--conversation" in plain
    assert "I have found it." in mergemill(*given, "--conversation", cwd=tmp_path).out


def test_without_a_model_there_is_no_conversation(tmp_path: Path) -> None:
    pull = records.pull_request()
    with Store.open(url(tmp_path)) as store:
        store.mined((pull, records.candidate(pull), 0.1))
    done = mergemill("why", pull.name, "--conversation", "--db", url(tmp_path), cwd=tmp_path)
    assert done.code == 3
    assert "no model was asked" in done.err

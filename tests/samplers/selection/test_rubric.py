"""A model's verdict by a rubric: items met need a quote that occurs; nonsense meets nothing."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from backends.llm.client import ChatModel
from core.config import Settings
from core.errors import InputError
from samplers.selection.rubric import RubricJudge, read_rubric
from taskdb.artifacts import Artifacts
from taskdb.records.rollouts import Rollout, Trajectory
from taskdb.store import Store
from tests.cli import CommandResult
from tests.samplers.scripted_model import ModelRequest, ScriptedModel, Turn
from tests.samplers.selection.test_selecting import make_candidate
from tests.samplers.stored import make_database
from tests.samplers.test_trajectory_commands import run
from tests.taskdb.lineages import make_url

RUBRIC = "# items\nIt looks before it edits.\n\nIt runs the tests.\n"


def answer(*items: tuple[bool, str]) -> Turn:
    listed = [{"item": number, "met": met, "quote": quote} for number, (met, quote) in enumerate(items, 1)]
    return Turn(text=json.dumps({"items": listed}))


def judge(folder: Path, turns: list[Turn]) -> tuple[float, list[ModelRequest]]:
    """Return the share of items not met of the first rollout, and the requests made."""
    make_database(folder)
    with Store.open(make_url(folder)) as store:
        rollout = store.load_all(Rollout)[0]
        main = next(
            trajectory
            for trajectory in store.load_all(Trajectory)
            if trajectory.parent == rollout.id and trajectory.role == "main"
        )
    artifacts = Artifacts(folder / "mergemill-store" / "artifacts")
    with ScriptedModel(turns) as model:
        settings = Settings(db=make_url(folder), llm=model.url, model="judge")
        rubric = RubricJudge(
            items=read_rubric(RUBRIC),
            model=ChatModel(settings.llm, settings.host),
            settings=settings,
            artifacts=artifacts,
        )
        candidate: Any = make_candidate(content=main.content, submission=b"+    return 'hello'")
        share = rubric(candidate)
        assert rubric(candidate) == share
        return share, model.requests


def test_an_item_is_met_by_a_quote_from_the_conversation_or_the_patch(tmp_path: Path) -> None:
    share, requests = judge(tmp_path, [answer((True, '"command": "ls"'), (False, ""))])
    assert share == 0.5
    assert len(requests) == 1  # the second verdict is from the cache
    assert "2. It runs the tests." in requests[0].body["messages"][0]["content"]


def test_a_quote_of_the_rubric_itself_proves_nothing(tmp_path: Path) -> None:
    wrong = answer((True, "It looks before it edits."), (True, "It runs the tests."))
    share, requests = judge(tmp_path, [wrong, answer((False, ""), (False, ""))])
    assert share == 1.0
    assert "the quote of item 1 does not occur" in requests[1].body["messages"][-1]["content"]


def test_a_model_that_talks_nonsense_meets_nothing(tmp_path: Path) -> None:
    share, _ = judge(tmp_path, [Turn(text="A fine rollout!")])
    assert share == 1.0


def test_a_rubric_needs_an_item() -> None:
    with pytest.raises(InputError, match="no item"):
        read_rubric("# nothing\n")


def test_the_command_refuses_what_the_model_finds_wanting(tmp_path: Path) -> None:
    make_database(tmp_path)
    (tmp_path / "rubric.txt").write_text("It is fine.\n")

    def select(**variables: str) -> CommandResult:
        return run(tmp_path, "trajectories", "select", "--rubric", "rubric.txt", "--json", **variables)

    assert select().exit_code == 2
    with ScriptedModel([answer((False, ""))]) as model:
        done = select(MERGEMILL_LLM=model.url, MERGEMILL_MODEL="judge")
    assert done.lines[-1]["selected"] == 0
    assert next(row for row in done.lines if row["rule"] == "rubric") == {
        "event": "rule",
        "rule": "rubric",
        "before": 2,
        "after": 0,
        "alone": 2,
    }

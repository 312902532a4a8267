"""Rollouts of scenarios with real worlds, a gateway and scripted models, in a server of worlds without a container."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from core.config import Settings
from core.settings.group import replace_values
from mergemill.agents.sampling.progress import SamplingProgress
from mergemill.agents.sampling.request import WorldSampleRequest
from mergemill.agents.sampling.world_scaffolds import make_world_scaffolds
from mergemill.agents.sampling.worlds import sample_scenarios
from samplers.trajectories.content import read_content
from taskdb.artifacts import open_artifacts
from taskdb.records.rollouts import Rollout, RolloutStatus, Trajectory, TrajectoryRole
from taskdb.store import Store
from tests.samplers.scripted_model import Answer, Call, ModelRequest, ScriptedModel, Turn
from tests.samplers.worlds.database import add_world, make_database, make_settings, read_json
from tests.samplers.worlds.local_server import needs_root, open_local_server
from tests.samplers.worlds.player import AGENT, COMPLETED, USER, ScenarioPlayer, list_scenarios, play_dialogue
from tests.worlds.programs import make_scenario, make_world
from worlds.definitions import ScenarioDefinition

pytestmark = needs_root
BUSY = "library_loans.busy_morning"
LOOK = Turn(calls=(Call("search_books", {"text": "the"}),))


@pytest.fixture
def settings(tmp_path: Path) -> Settings:
    return make_database(tmp_path, ["library_loans"])


def sample(
    settings: Settings,
    *scaffolds: str,
    model: ScriptedModel | None = None,
    user: str = "",
    only: Sequence[str] = (BUSY,),
    attempts: int = 1,
    **fields: Any,
) -> tuple[int, SamplingProgress]:
    """Sample; return the exit code and what was counted."""
    if model is not None:
        settings = replace_values(settings, {"upstream": model.url})
    request = WorldSampleRequest(
        scaffolds=make_world_scaffolds(scaffolds, user), only=tuple(only), model=AGENT, attempts=attempts, **fields
    )
    progress = SamplingProgress()
    return sample_scenarios(request, settings, progress, open_local_server), progress


def read_rollouts(settings: Settings) -> list[Rollout]:
    with Store.open(settings.storage.db) as store:
        return store.load_all(Rollout)


def read_trajectories(settings: Settings) -> list[Trajectory]:
    with Store.open(settings.storage.db) as store:
        return store.load_all(Trajectory)


def run_one(settings: Settings, answer: Answer | Sequence[Turn], scaffold: str = "tools", **options: Any) -> Rollout:
    """Return the only rollout after sampling once with these answers."""
    with ScriptedModel(answer) as model:
        code, progress = sample(settings, scaffold, model=model, **options)
    assert code == 0, progress.last_failure
    (rollout,) = read_rollouts(settings)
    return rollout


def find(name: str) -> ScenarioDefinition:
    return next(scenario for scenario in list_scenarios() if scenario.name == name)


def test_the_solution_earns_1_and_doing_nothing_0_without_a_model(tmp_path: Path) -> None:
    settings = make_database(tmp_path)
    code, progress = sample(settings, "oracle", "noop", only=())
    rollouts = read_rollouts(settings)
    assert (code, progress.totals.statuses["done"]) == (0, 12)
    assert {(rollout.name, rollout.scaffold): rollout.value for rollout in rollouts} == {
        (scenario.name, scaffold): value
        for scenario in list_scenarios()
        for scaffold, value in (("oracle", 1.0), ("noop", 0.0))
    }
    assert {(rollout.environment, rollout.model, rollout.resolved) for rollout in rollouts if rollout.value == 1.0} == {
        ("synthetic", "", True)
    }
    for rollout in rollouts:
        n_calls = len(read_json(open_artifacts(settings.storage), rollout.submission)) if rollout.value else 0
        assert [state.exchange for state in rollout.states] == list(range(n_calls + 1))
        assert len({state.tree for state in rollout.states}) > n_calls / 2  # queries change nothing
    again, progress = sample(settings, "oracle", "noop", only=())
    assert (again, progress.n_planned, progress.n_pending, progress.totals.statuses) == (0, 12, 0, {})


def test_a_solved_scenario_is_recorded_as_a_task_is(settings: Settings) -> None:
    solution = find(BUSY).solution or ()
    with ScriptedModel(ScenarioPlayer()) as model:
        code, _ = sample(settings, "tools", model=model, sampling={"temperature": 0.5})
        sent = model.requests
    (rollout,) = read_rollouts(settings)
    artifacts = open_artifacts(settings.storage)
    assert (code, rollout.status, rollout.reason, rollout.value, rollout.resolved) == (0, "done", None, 1.0, True)
    assert (rollout.scaffold, rollout.model, rollout.environment) == ("tools", AGENT, "synthetic")
    assert rollout.requests == len(solution) + 1 == len(rollout.latencies)
    assert rollout.prompt_tokens > rollout.completion_tokens > 0
    assert read_json(artifacts, rollout.submission) == [call.to_json() for call in solution]
    assert rollout.score is not None
    assert set(rollout.score.parts.values()) == {1.0}
    assert {request.body["temperature"] for request in sent} == {0.5}
    assert {len(request.tools) for request in sent} == {16}
    (trajectory,) = read_trajectories(settings)
    assert (trajectory.role, trajectory.n_requests, trajectory.n_branches) == (
        TrajectoryRole.MAIN,
        rollout.requests,
        1,
    )
    assert (trajectory.value, trajectory.metrics["format_errors"], trajectory.metrics["tool_errors"]) == (1.0, 0, 0)
    content = read_content(artifacts.get(trajectory.content))
    assert len(content.get_tools(content.leaves[-1])) == 16


@pytest.mark.parametrize("per_turn", [2, 3])
def test_several_calls_of_one_turn_are_made_in_their_order(settings: Settings, per_turn: int) -> None:
    assert run_one(settings, ScenarioPlayer(per_turn=per_turn)).value == 1.0


def test_a_part_of_the_calls_earns_a_part_of_the_reward(settings: Settings) -> None:
    rollout = run_one(settings, ScenarioPlayer(n_calls=3))
    assert rollout.value is not None
    assert 0 < rollout.value < 1
    assert (rollout.status, rollout.resolved) == ("done", False)
    assert read_trajectories(settings)[0].value == rollout.value


def test_an_agent_that_gives_up_at_once_earns_0(settings: Settings) -> None:
    rollout = run_one(settings, [COMPLETED])
    assert (rollout.status, rollout.value, rollout.requests) == ("done", 0.0, 1)
    assert open_artifacts(settings.storage).get(str(rollout.submission)) == b""


def test_calls_that_cannot_be_read_are_answered_and_counted(settings: Settings) -> None:
    """No JSON at all, a list, an unknown tool, wrong arguments; then the model finds its way."""
    wrong = [
        Turn(calls=(Call("pay_fine", "!"),)),
        Turn(calls=(Call("pay_fine", "[1, 2]"),)),
        Turn(calls=(Call("fly", {}),)),
        Turn(calls=(Call("pay_fine", {"member_id": 5}),)),
    ]
    answers: list[dict[str, Any]] = []

    def answer(request: ModelRequest) -> Turn:
        if request.place < len(wrong):
            return wrong[request.place]
        results = [json.loads(message["content"]) for message in request.body["messages"] if message["role"] == "tool"]
        answers[:] = results[: len(wrong)]
        messages = [message for message in request.body["messages"] if message["role"] != "tool"]
        kept = [message for message in request.body["messages"] if message["role"] == "tool"][len(wrong) :]
        return ScenarioPlayer()(replace(request, body={**request.body, "messages": [*messages, *kept]}))

    rollout = run_one(settings, answer)
    assert (rollout.status, rollout.value) == ("done", 1.0)
    assert [reply["success"] for reply in answers] == [False] * 4
    assert "no JSON object" in answers[0]["error"]
    assert "there is no tool fly" in answers[2]["error"]
    main = [trajectory for trajectory in read_trajectories(settings) if trajectory.role is TrajectoryRole.MAIN]
    assert max(trajectory.metrics["format_errors"] for trajectory in main) == 3
    assert max(trajectory.metrics["tool_errors"] for trajectory in main) > 0


def test_an_agent_that_never_stops_is_stopped_and_its_state_scored(settings: Settings) -> None:
    rollout = run_one(settings, [LOOK])
    assert (rollout.status, rollout.reason, rollout.value) == ("failed", "turn-limit", 0.0)
    assert rollout.requests == 40
    assert read_trajectories(settings)[0].metrics["truncated"] == 1


def test_the_limit_of_turns_is_a_setting(settings: Settings) -> None:
    few = replace_values(settings, {"rollout_turns": 3})
    assert run_one(few, [LOOK]).requests == 3


def test_an_agent_that_only_talks_is_reminded_and_then_stopped(settings: Settings) -> None:
    with ScriptedModel([Turn(text="Let me think about it.")]) as model:
        sample(settings, "tools", model=model)
        last = model.requests[-1].body["messages"]
    (rollout,) = read_rollouts(settings)
    assert (rollout.status, rollout.reason, rollout.value, rollout.requests) == ("failed", "no-action", 0.0, 4)
    assert last[-1] == {"role": "user", "content": "No tool call was found. Call a tool, or answer Task Completed."}
    assert read_trajectories(settings)[0].metrics["format_errors"] == 3


def test_a_call_written_as_text_is_made_and_the_text_stays_what_it_was(settings: Settings) -> None:
    written = '<tool_call>{"name": "search_books", "arguments": {"text": "the"}}</tool_call>'
    with ScriptedModel([Turn(text=written), COMPLETED]) as model:
        sample(settings, "tools", model=model)
        messages = model.requests[-1].body["messages"]
    assert messages[2]["content"] == written
    assert (messages[3]["role"], messages[3]["content"].partition(":")[0]) == ("user", "Result of `search_books`")
    (trajectory,) = read_trajectories(settings)
    assert (trajectory.n_requests, trajectory.n_branches) == (2, 1)


def test_a_rejected_request_is_the_agents_and_a_dead_server_is_not(settings: Settings) -> None:
    first = replace_values(settings, {"rollout_retries": 0})
    with ScriptedModel([LOOK, Turn(fault="context")]) as model:
        code, _ = sample(first, "tools", model=model)
    (rollout,) = read_rollouts(settings)
    assert (code, rollout.status, rollout.reason, rollout.value) == (0, "failed", "model-failed", 0.0)

    def die(request: ModelRequest) -> Turn:
        return ScenarioPlayer()(request) if request.place < 2 else Turn(fault="no-answer")

    with ScriptedModel(die) as model:
        code, progress = sample(first, "tools", model=model, attempts=2)
    lost = [rollout for rollout in read_rollouts(settings) if rollout.attempt == 2]
    assert (code, [(rollout.status, rollout.reason, rollout.value) for rollout in lost]) == (
        75,
        [(RolloutStatus.INFRASTRUCTURE, "upstream-nonsense", None)],
    )
    assert progress.n_pending == 1
    with ScriptedModel(ScenarioPlayer()) as model:
        code, _ = sample(first, "tools", model=model, attempts=2)
        places = [request.place for request in model.requests]
    assert places[0] == 2  # the first two answers are those of the first run
    values = {(rollout.attempt, rollout.retry): rollout.value for rollout in read_rollouts(settings)}
    assert (code, values) == (0, {(1, 0): 0.0, (2, 0): None, (2, 1): 1.0})
    assert {trajectory.attempt for trajectory in read_trajectories(settings)} == {1, 2}
    assert len(read_trajectories(settings)) == 2  # none of what was lost


def test_a_budget_is_the_reason_of_what_follows(settings: Settings) -> None:
    few = replace_values(settings, {"rollout_requests": 2})
    rollout = run_one(few, ScenarioPlayer())
    assert (rollout.status, rollout.reason, rollout.requests) == ("failed", "budget-requests", 2)
    assert rollout.value is not None


def test_the_time_is_limited(settings: Settings) -> None:
    short = replace_values(settings, {"rollout_seconds": 1.0})
    rollout = run_one(short, [LOOK, Turn(calls=LOOK.calls, delay=3.0)])
    assert (rollout.status, rollout.reason, rollout.value) == ("failed", "time-limit", 0.0)


def test_a_conversation_with_a_script_as_user(settings: Settings) -> None:
    """The script gives one sentence after each answer; the agent acts once it has all of them."""

    def answer(request: ModelRequest) -> Turn:
        text = " ".join(str(message.get("content") or "") for message in request.body["messages"])
        has_all = find(BUSY).task.split(". ")[-1] in " ".join(text.split())
        player = ScenarioPlayer(last=Turn(text="All done."), scenario=find(BUSY))
        return player(request) if has_all else Turn(text="Go on.")

    rollout = run_one(settings, answer, "dialogue", user="scripted")
    assert (rollout.status, rollout.value, rollout.scaffold) == ("done", 1.0, "dialogue")
    (trajectory,) = read_trajectories(settings)
    content = read_content(open_artifacts(settings.storage).get(trajectory.content))
    roles = [message["role"] for message in content.get_prompt(content.leaves[-1])]
    assert roles[:4] == ["system", "user", "assistant", "user"]
    assert find(BUSY).task not in content.get_prompt(content.leaves[-1])[0]["content"]


@pytest.mark.parametrize("is_apart", [False, True])
def test_a_conversation_with_a_model_as_user(settings: Settings, is_apart: bool) -> None:
    with ScriptedModel(play_dialogue) as model, ScriptedModel(play_dialogue) as other:
        priced = replace_values(
            settings, {"llm_price_prompt": 1.0, "llm_price_completion": 1.0, "llm": other.url if is_apart else "off"}
        )
        code, _ = sample(priced, "dialogue", model=model, user=USER)
        names = [request.body["model"] for request in model.requests]
        elsewhere = [request.body["model"] for request in other.requests]
    (rollout,) = read_rollouts(settings)
    assert (code, rollout.status, rollout.value) == (0, "done", 1.0)
    assert set(names) == ({AGENT} if is_apart else {AGENT, USER})
    assert set(elsewhere) == ({USER} if is_apart else set())
    assert rollout.requests == names.count(AGENT)
    assert rollout.scaffold_version.endswith(f" {USER}")
    log: Any = read_json(open_artifacts(settings.storage), rollout.log)
    used = log["user_usage"]
    assert (log["environment"], used["requests"]) == ("synthetic", 3)
    own = (rollout.prompt_tokens + rollout.completion_tokens) / 1e6
    assert rollout.cost == pytest.approx(own + (used["prompt_tokens"] + used["completion_tokens"]) / 1e6)
    (trajectory,) = read_trajectories(settings)
    assert trajectory.n_requests == rollout.requests
    assert not list((settings.storage.store_dir).glob("gateway*/*.jsonl"))  # the record has what they held


def test_a_user_who_does_not_answer_is_no_result_of_the_agent(settings: Settings) -> None:
    def answer(request: ModelRequest) -> Turn:
        if request.body["model"] == USER and request.place:
            return Turn(fault="400")
        return play_dialogue(request)

    with ScriptedModel(answer) as model:
        code, _ = sample(replace_values(settings, {"rollout_retries": 0}), "dialogue", model=model, user=USER)
    (rollout,) = read_rollouts(settings)
    assert (code, rollout.status, rollout.reason, rollout.value) == (75, "infrastructure", "user-failed", None)
    assert read_trajectories(settings) == []
    with ScriptedModel(play_dialogue) as model:
        code, _ = sample(settings, "dialogue", model=model, user=USER)
        words = [request.body["model"] for request in model.requests]
    assert (code, [rollout.value for rollout in read_rollouts(settings)]) == (0, [None, 1.0])
    assert words.count(USER) == 2  # the greeting is that of the first run


def test_a_fault_of_the_world_is_a_result_without_a_value(tmp_path: Path) -> None:
    settings = make_settings(tmp_path)
    broken = make_world("# rename", "raise KeyError(name)")
    with Store.open(settings.storage.db) as store:
        add_world(store, open_artifacts(settings.storage), broken, [make_scenario()])
    wrong = Turn(calls=(Call("rename_item", {"item_id": "I-1", "name": "x"}),))
    with ScriptedModel([wrong]) as model:
        code, _ = sample(settings, "tools", model=model, only=())
        again, progress = sample(settings, "tools", model=model, only=())
    (rollout,) = read_rollouts(settings)
    assert (code, rollout.status, rollout.reason, rollout.value) == (0, "failed", "world-fault", None)
    assert (again, progress.n_pending) == (0, 0)


def test_episodes_of_many_scenarios_share_one_server(tmp_path: Path) -> None:
    settings = replace_values(make_database(tmp_path), {"workers": 6})
    started = []

    def open_counted() -> Any:
        started.append(1)
        return open_local_server()

    with ScriptedModel(ScenarioPlayer()) as model:
        request = WorldSampleRequest(scaffolds=make_world_scaffolds(["tools"], ""), model=AGENT, attempts=2)
        used = replace_values(settings, {"upstream": model.url})
        assert sample_scenarios(request, used, SamplingProgress(), open_counted) == 0
    assert len(started) == 1
    assert [rollout.value for rollout in read_rollouts(settings)] == [1.0] * 12

"""Writing and solving of single scenarios: what is asked again, and what becomes of rollouts."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.samplers.scripted_model import Call as ToolCall
from tests.samplers.scripted_model import ModelRequest, Turn
from tests.worlds.making.answers import find_kind, open_scripted_model, read_prompt
from tests.worlds.making.models import open_models
from tests.worlds.programs import CHECKS, SOLUTION, STATE, TASK, make_scenario, make_world
from worlds.definitions import Call, ScenarioDefinition, WorldDefinition
from worlds.gates.scenario_gates import assess_scenario
from worlds.model_requests import RefusedAnswerError, StepFailedError
from worlds.reasons import Reason
from worlds.scenarios.solving import MadeCall, ScenarioSolver, SolverRollout, insert_references, list_solutions
from worlds.scenarios.writing import Checklist, ScenarioWriter, check_items, read_check
from worlds.server.service import WorldServer

STORE = make_world()
LONG_TASK = f"{TASK} {'It matters to the people who work there, so take care of it. ' * 4}"
ITEMS = ("Has renamed I-1 to floor lamp.", "Has moved I-1 to S-2.", "Has added a clock on S-1.")
FUNCTIONS = CHECKS.strip().split("\n\n\n")
Reply = Callable[[ModelRequest], Turn]


def answer(request: ModelRequest) -> Turn:
    kind, text = find_kind(request), read_prompt(request)
    if kind == "task":
        return Turn(text=json.dumps({"analysis": "It can be done.", "task": LONG_TASK}))
    if kind == "checklist":
        return Turn(text=json.dumps({"analysis": "Three things.", "items": list(ITEMS)}))
    number = next(n for n in range(3) if f"def check_{n + 1}(" in text)
    name = ("has_renamed", "has_moved", "has_added")[number]
    return Turn(text=f"```python\n{FUNCTIONS[number].replace(name, f'check_{number + 1}')}\n```")


def write(server: WorldServer, folder: Path, reply: Reply) -> tuple[ScenarioDefinition, list[ModelRequest]]:
    with open_scripted_model(reply) as model, open_models(model, folder) as (models, options, meter):
        writer = ScenarioWriter(
            name="store.s01",
            number=1,
            world=STORE,
            state=STATE,
            models=models,
            options=options,
            meter=meter,
            run_check=lambda check, state: server.run_checks([check], state, state)[0],
        )
        try:
            return writer.write(), list(model.requests)
        finally:
            assert set(model.paid_keys.values()) == {1}


@pytest.mark.docker
def test_a_scenario_is_written_from_task_checklist_and_checks(server: WorldServer, tmp_path: Path) -> None:
    scenario, requests = write(server, tmp_path, answer)
    assert (scenario.name, scenario.task, len(requests)) == ("store.s01", " ".join(LONG_TASK.split()), 5)
    assert [check.item for check in scenario.checks] == list(ITEMS)
    with server.load(STORE) as served:
        solved = ScenarioDefinition(**{**vars(scenario), "solution": SOLUTION})
        assert assess_scenario(solved, served, server).reason is None


BAD_CHECKS = {
    "raises": ("def check_2(final_state):\n    return {}[1]", Reason.CHECKS_RAISE, "raises where nothing was done"),
    "alters": (
        'def check_2(final_state):\n    return final_state["items"].pop("I-1") == 1',
        Reason.CHECKS_MUTATE,
        "altered where nothing was done",
    ),
    "one": ("def check_2(final_state):\n    return 1", Reason.CHECKS_NOT_BOOLEAN, "not-boolean where nothing was done"),
    "file": ("def check_2(final_state):\n    return bool(open('x'))", Reason.CHECKS_REFUSED, "opens-file"),
    "name": ("def check_9(final_state):\n    return True", Reason.UNUSABLE_ANSWER, "there is no function check_2"),
    "parameters": ("def check_2(state):\n    return True", Reason.UNUSABLE_ANSWER, "must take initial_state"),
    "no-python": ("def check_2(", Reason.SYNTAX_ERROR, "SyntaxError"),
}


@pytest.mark.docker
@pytest.mark.parametrize("name", BAD_CHECKS)
def test_a_wrong_check_is_asked_again_with_the_message_and_five_times(
    server: WorldServer, tmp_path: Path, name: str
) -> None:
    source, reason, message = BAD_CHECKS[name]

    def spoil(times: int) -> Reply:
        def reply(request: ModelRequest) -> Turn:
            is_second = find_kind(request) == "check" and "def check_2(" in read_prompt(request)
            return Turn(text=f"```python\n{source}\n```") if is_second and times > request.place else answer(request)

        return reply

    scenario, requests = write(server, tmp_path / "once", spoil(1))
    assert len(scenario.checks) == 3
    assert any(message in str(request.body["messages"][-1]["content"]) for request in requests if request.place)
    with pytest.raises(StepFailedError) as raised:
        write(server, tmp_path / "always", spoil(9))
    assert raised.value.reason is reason


@pytest.mark.docker
def test_a_short_task_is_asked_again_and_then_rejected(server: WorldServer, tmp_path: Path) -> None:
    def reply(request: ModelRequest) -> Turn:
        short = Turn(text=json.dumps({"analysis": "Short.", "task": "Rename the item I-1."}))
        return short if find_kind(request) == "task" else answer(request)

    with pytest.raises(StepFailedError, match="4 words of at least 50") as raised:
        write(server, tmp_path, reply)
    assert raised.value.reason is Reason.SHORT_TASK


def test_items_begin_with_has_and_differ() -> None:
    assert check_items(Checklist(analysis="", items=list(ITEMS))) == ""
    assert "begins with" in check_items(Checklist(analysis="", items=["The lamp is renamed."]))
    assert "the same" in check_items(Checklist(analysis="", items=["Has a.", "Has  A."]))
    with pytest.raises(RefusedAnswerError):
        read_check("import os\ndef check_1(final_state):\n    return True", "check_1", "Has x.")


# --------------------------------------------------------------------------------------------------------- solving

PLAN = [
    [("get_item", {"item_id": "I-1"}), ("rename_item", {"item_id": "I-1", "name": "floor lamp"})],
    [("move_item", {"item_id": "I-1", "shelf_id": "S-9"})],
    [("move_item", {"item_id": "I-1", "shelf_id": "S-2"})],
    [("add_item", {"name": "clock", "shelf_id": "S-1"})],
]


def act(request: ModelRequest) -> Turn:
    if request.place >= len(PLAN):
        return Turn(text="All is done. Task completed.")
    return Turn(calls=tuple(ToolCall(name, arguments) for name, arguments in PLAN[request.place]))


def solve(
    server: WorldServer,
    folder: Path,
    reply: Reply,
    scenario: ScenarioDefinition,
    world: WorldDefinition = STORE,
    **more: int,
) -> list[SolverRollout]:
    with open_scripted_model(reply) as model, open_models(model, folder, **more) as (models, options, meter):
        solver = ScenarioSolver(
            scenario=scenario, world=STORE, server=server, models=models, options=options, meter=meter
        )
        result = solver.run()
        paid = model.paid
        assert solver.run() == result  # from the ledger
        assert model.paid == paid
        return result


@pytest.mark.docker
def test_the_solution_is_what_changed_the_state(server: WorldServer, tmp_path: Path) -> None:
    scenario = make_scenario(solution=None)
    rollouts = solve(server, tmp_path, act, scenario, worlds_rollouts=2)
    assert [(rollout.reward, rollout.ended, len(rollout.calls)) for rollout in rollouts] == [(1.0, "completed", 5)] * 2
    solutions = list_solutions(rollouts, scenario)
    assert solutions[0] == SOLUTION
    assert [call.tool for call in solutions[1]] == ["get_item", "rename_item", "move_item", "move_item", "add_item"]
    assert len(solutions) == 2


@pytest.mark.docker
def test_rollouts_that_do_not_solve_have_their_share_and_end_as_they_end(server: WorldServer, tmp_path: Path) -> None:
    scenario = make_scenario(solution=None)

    def reply(request: ModelRequest) -> Turn:
        if request.place == 0:
            return act(request)
        return Turn(text="Let me think about it.")

    (lost,) = solve(server, tmp_path / "1", reply, scenario, worlds_rollouts=1, worlds_max_steps=5)
    assert (round(lost.reward, 2), lost.ended) == (0.33, "truncated")
    assert "Call a tool, or answer Task Completed." in lost.messages[-2].text
    assert list_solutions([lost], scenario) == []
    unreadable = Turn(calls=(ToolCall("add_item", "not json"), ToolCall("no_tool", {})))
    (lost,) = solve(
        server,
        tmp_path / "2",
        lambda request: Turn(text="Task Completed") if request.place else unreadable,
        scenario,
        worlds_rollouts=1,
    )
    assert (lost.reward, lost.ended, [made.call.tool for made in lost.calls]) == (0.0, "completed", ["no_tool"])
    (lost,) = solve(server, tmp_path / "3", lambda _: Turn(fault="context"), scenario, worlds_rollouts=1)
    assert (lost.reward, lost.ended) == (0.0, "too-long")


def test_made_ids_become_references_and_given_ones_stay() -> None:
    scenario = make_scenario()
    arguments = {"ids": ["I-1", "I-3"], "to": {"shelf": "I-3"}}
    made = [
        MadeCall(call=Call(tool="add_item", arguments={"name": "clock"}), result={"item_id": "I-3"}, is_changed=True),
        MadeCall(call=Call(tool="move_all", arguments=arguments), result={}, is_changed=True),
    ]
    reference = {"$result": [0, "item_id"]}
    _, second = insert_references(made, scenario)
    assert second.arguments == {"ids": ["I-1", reference], "to": {"shelf": reference}}

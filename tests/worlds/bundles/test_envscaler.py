"""EnvScaler's three files: their fields, what its trainers do with them, and the way back."""

from __future__ import annotations

import ast
import copy
import json
from pathlib import Path
from typing import Any

import pytest

from tests.worlds.bundles.making import bundle_examples, bundle_world, write_examples
from tests.worlds.programs import CHECKS, make_scenario, make_world
from worlds.bundles.envscaler import build_environment, build_scenario, join_documentation, split_documentation
from worlds.bundles.envscaler_checks import build_items, restore_checks
from worlds.bundles.envscaler_reader import read_environments, read_scenarios
from worlds.bundles.playing import UnplayableScenarioError
from worlds.definitions import Call, Check
from worlds.examples.loading import load_example_scenarios, load_example_world, split_checks
from worlds.program.rules import find_violations

ENVIRONMENT_FIELDS = {
    *("env_id", "environment_summary", "environment_introduction", "state_space_definition", "constraints_rules"),
    *("operation_list", "env_class_name", "env_class_code", "env_class_def", "env_structure", "tools"),
}
SCENARIO_FIELDS = {
    *("env_id", "env_class_name", "task_id", "init_config", "task", "checklist", "checklist_with_func"),
}
TRAJECTORY_FIELDS = {"traj_type", "task_info", "tools", "messages", "user_messages", "steps"}
KEPT = CHECKS + '\n\ndef has_vase(final_state):\n    return final_state["items"]["I-2"]["name"] == "vase"\n'


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    out = tmp_path_factory.mktemp("envscaler") / "out"
    write_examples("envscaler", out)
    return out


def bundle_state(name: str) -> dict[str, Any]:
    return next(iter(load_example_world(name).states.values()))


def load(folder: Path, name: str) -> Any:
    return json.loads((folder / f"{name}.json").read_text())


def play_as_envscaler(environment: dict[str, Any], scenario: dict[str, Any], calls: tuple[Call, ...]) -> float:
    """Return the reward by the rules of EnvScaler's environment for ROLL (rl/roll/pipeline/agentic/env)."""
    names: dict[str, Any] = {}
    exec(environment["env_class_code"], names)  # noqa: S102 - a world of ours
    config = copy.deepcopy(scenario["init_config"])
    made = names[scenario["env_class_name"]](config)
    for key, value in config.items():
        setattr(made, key, value)
    initial = copy.deepcopy(dict(vars(made)))
    for call in calls:
        getattr(made, call.tool)(**call.arguments)
    results = []
    for item in scenario["checklist_with_func"]:
        scope: dict[str, Any] = {"initial_state": copy.deepcopy(initial)}
        exec(item["check_func"], scope)  # noqa: S102
        result = scope["check_func"](copy.deepcopy(dict(vars(made))))
        assert isinstance(result, bool)
        results.append(result)
    return round(sum(results) / len(results), 4)


def test_the_files_have_the_published_fields(folder: Path) -> None:
    environments, scenarios, trajectories = (load(folder, n) for n in ("environments", "scenarios", "trajectories"))
    assert set(environments) == {world.name for world in bundle_examples()}
    for name, item in environments.items():
        assert set(item) >= ENVIRONMENT_FIELDS
        assert item["env_id"] == name
        assert {operation["operation_type"] for operation in item["operation_list"]} == {"query", "modify"}
        assert set(item["state_space_definition"][0]) == {"entity", "attributes", "description"}
        assert set(item["env_structure"]) == {"states", "methods"}
        assert set(item["env_structure"]["states"]) == set(bundle_state(name))
        assert all(state["type"] for state in item["env_structure"]["states"].values())
        ast.parse(item["env_class_def"])
        assert item["env_class_code"].startswith(item["env_class_def"].rstrip("\n"))
        assert item["env_class_def"].count("    def ") == 1
        assert item["tools"][0]["type"] == "function"
    for item in scenarios:
        assert set(item) >= SCENARIO_FIELDS
        assert [entry["check_item"] for entry in item["checklist_with_func"]] == item["checklist"]
        assert isinstance(item["init_config"], dict)
    for item in trajectories:
        assert set(item) >= TRAJECTORY_FIELDS
        messages = json.loads(item["messages"])
        assert all(message["reasoning_content"] == "" for message in messages if message["role"] == "assistant")
        assert [message["role"] for message in messages[:2]] == ["system", "user"]
        assert json.loads(item["tools"]) == environments[item["task_info"]["env_id"]]["tools"]
        assert json.loads(item["user_messages"]) == []
    marked = [*environments.values(), *scenarios, *trajectories]
    assert {item["environment"] for item in marked} == {"synthetic"}


def test_its_trainer_pays_the_solution_1_and_nothing_0(folder: Path) -> None:
    environments, scenarios = load(folder, "environments"), load(folder, "scenarios")
    played = {scenario.definition.name: scenario for world in bundle_examples() for scenario in world.scenarios}
    for scenario in scenarios:
        environment, played_scenario = environments[scenario["env_id"]], played[scenario["task_id"]]
        assert played_scenario.conversation is not None
        assert play_as_envscaler(environment, scenario, played_scenario.conversation.calls) == 1.0
        assert play_as_envscaler(environment, scenario, ()) == 0.0
        assert 0.0 < play_as_envscaler(environment, scenario, played_scenario.conversation.calls[:3]) < 1.0


def test_a_broken_kept_check_costs_everything_there_too() -> None:
    world = bundle_world(make_world(), [make_scenario(KEPT)])
    environment, scenario = build_environment(world), build_scenario(world, world.scenarios[0])
    assert scenario["checklist"] == ["Has renamed I-1.", "Has moved I-1.", "Has added a clock."]
    calls = world.scenarios[0].definition.solution or ()
    assert play_as_envscaler(environment, scenario, calls) == 1.0
    other = Call(tool="rename_item", arguments={"item_id": "I-2", "name": "jug"})
    assert play_as_envscaler(environment, scenario, (*calls, other)) == 0.0


def test_the_check_functions_break_no_rule(folder: Path) -> None:
    for scenario in load(folder, "scenarios"):
        for item in scenario["checklist_with_func"]:
            assert find_violations(item["check_func"]) == ()


def test_an_export_that_is_read_again_gives_the_same_worlds_and_scenarios(folder: Path) -> None:
    worlds = read_environments((folder / "environments.json").read_bytes(), "environments.json")
    scenarios = read_scenarios((folder / "scenarios.json").read_bytes(), "scenarios.json")
    assert [world.definition for world in worlds] == [load_example_world(world.name) for world in worlds]
    assert [world.license for world in worlds] == ["Apache-2.0"] * 3
    wanted = [scenario for world in worlds for scenario in load_example_scenarios(world.name)]
    assert [scenario.definition for scenario in scenarios] == wanted


def test_texts_of_json_and_a_list_are_read_as_well(folder: Path) -> None:
    """The published data sets have fields as texts of JSON."""
    environments = [
        {key: json.dumps(value) if isinstance(value, dict | list) else value for key, value in item.items()}
        for item in load(folder, "environments").values()
    ]
    scenarios = [
        {key: json.dumps(value) if isinstance(value, dict | list) else value for key, value in item.items()}
        for item in load(folder, "scenarios")
    ]
    for item in scenarios:
        item["checks"] = json.loads(item["checks"])
    worlds = read_environments(json.dumps(environments).encode(), "e")
    assert [world.definition for world in worlds] == [load_example_world(world.name) for world in worlds]
    read = read_scenarios(json.dumps(scenarios).encode(), "s")
    assert [scenario.definition for scenario in read] == [
        scenario for world in worlds for scenario in load_example_scenarios(world.name)
    ]


def test_checks_that_were_changed_in_the_file_count_as_they_are_there(folder: Path) -> None:
    scenario = load(folder, "scenarios")[0]
    scenario["checklist_with_func"][0]["check_func"] = "def check_func(final_state):\n    return False\n"
    [read] = read_scenarios(json.dumps([scenario]).encode(), "s")
    assert read.definition is not None
    assert [check.function for check in read.definition.checks] == ["check_func"] * len(scenario["checklist"])
    assert read.definition.checks[0].source == scenario["checklist_with_func"][0]["check_func"]


@pytest.mark.parametrize(
    ("change", "problem"),
    [
        ({"env_class_code": None}, "env_class_code is missing"),
        ({"env_class_code": ["x"]}, "env_class_code is missing or no text"),
        ({"env_id": ""}, "env_id is missing"),
        ({"initial_states": [1]}, "initial_states is no object of objects"),
        ({"initial_states": {"a": {"x": float("nan")}}}, "nan is no number of JSON"),
    ],
)
def test_a_malformed_environment_is_reported_and_the_others_are_read(
    folder: Path, change: dict[str, Any], problem: str
) -> None:
    items = list(load(folder, "environments").values())
    items[1] |= change
    environments = read_environments(json.dumps([*items, "?", items[0]]).encode(), "e.json")
    assert [environment.definition is not None for environment in environments] == [True, False, True, False, False]
    assert problem in environments[1].problem
    assert (environments[3].name, environments[3].problem) == ("e.json[3]", "it is no object")
    assert environments[4].problem == "an earlier entry has this env_id"


@pytest.mark.parametrize(
    ("change", "problem"),
    [
        ({"task": " "}, "task is missing"),
        ({"init_config": "[1]"}, "init_config is no object"),
        ({"init_config": "{broken"}, "init_config is no object"),
        ({"checklist_with_func": 3}, "checklist_with_func is no list"),
        ({"checklist_with_func": [{"check_item": "Has x.", "check_func": None}]}, "has no check_item or no check_func"),
        ({"solution": "no"}, "solution is no list of calls"),
        ({"solution": [{"tool": "x", "arguments": 3}]}, "solution[0] has no tool"),
    ],
)
def test_a_malformed_scenario_is_reported_and_the_others_are_read(
    folder: Path, change: dict[str, Any], problem: str
) -> None:
    items = load(folder, "scenarios")
    items[1] |= change
    scenarios = read_scenarios(json.dumps(items).encode(), "s.json")
    assert [scenario.definition is not None for scenario in scenarios] == [True, False, *[True] * (len(items) - 2)]
    assert problem in scenarios[1].problem
    assert scenarios[1].name == items[1]["task_id"]


def test_scenarios_without_checks_and_calls_in_the_form_of_models_are_read(folder: Path) -> None:
    item = load(folder, "scenarios")[0]
    del item["checklist_with_func"], item["checks"]
    item["solution"] = [{"name": "find_doctors", "arguments": "{}"}]
    [parsed] = read_scenarios(json.dumps([item]).encode(), "s")
    assert parsed.definition is not None
    assert parsed.definition.checks == ()
    assert parsed.definition.solution == (Call(tool="find_doctors"),)


def test_documentation_is_split_and_joined() -> None:
    title, introduction, rules = split_documentation(
        "# A shop\n\nIt sells.\n\n## Rules\n- One.\n- Two\n  lines.\n", "x"
    )
    assert (title, introduction, rules) == ("A shop", "It sells.", ["One.", "Two lines."])
    assert split_documentation(join_documentation(title, introduction, rules), "x") == (title, introduction, rules)
    assert split_documentation("Plain.", "my_shop") == ("my shop", "Plain.", [])


def test_restoring_checks_needs_items_that_they_give() -> None:
    checks = split_checks(KEPT)
    given = [{"item": check.item, "function": check.function, "source": check.source} for check in checks]
    items = build_items(checks[:3], checks[3:])
    assert restore_checks(given, items) == checks
    assert restore_checks(given, items[:2]) is None
    assert restore_checks([{"item": "x"}], items) is None
    assert restore_checks(None, items) is None
    plain = Check(item="Has x.", function="check_func", source="def check_func(final_state):\n    return True\n")
    assert build_items([plain], [])[0]["check_func"] == plain.source


def test_a_scenario_that_its_solution_does_not_solve_is_not_bundled() -> None:
    scenario = make_scenario(solution=(Call(tool="rename_item", arguments={"item_id": "I-1", "name": "floor lamp"}),))
    with pytest.raises(UnplayableScenarioError, match=r"its solution earns 0\.33"):
        bundle_world(make_world(), [scenario])
    with pytest.raises(UnplayableScenarioError, match="doing nothing fulfils all"):
        bundle_world(make_world(), [make_scenario("def ok(final_state):\n    return True\n")])
    broken = make_world("# rename", "1 / 0")
    with pytest.raises(UnplayableScenarioError, match="its solution has a fault: raises: ZeroDivisionError"):
        bundle_world(broken, [make_scenario()])

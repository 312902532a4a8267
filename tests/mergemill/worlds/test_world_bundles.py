"""`mergemill worlds export` and `mergemill worlds import`, as a user runs them."""

from __future__ import annotations

import json
import sys
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from core.config import Settings
from core.errors import InputError
from mergemill.worlds.bundles.rollouts import read_rollouts
from mergemill.worlds.bundles.sources import find_sources
from mergemill.worlds.records import make_scenario_record, make_world_record
from taskdb.artifacts import open_artifacts
from taskdb.records.worlds import WorldOrigin
from taskdb.store import Store
from tests.cli import CommandResult, run_mergemill
from tests.exporters.consumers import install, run_command
from tests.llama_factory import read_as_llama_factory
from tests.taskdb.worlds import make_scenario_certificate, make_world_certificate
from tests.worlds.bundles.foreign import (
    CONFIG,
    ITEMS,
    SOLUTION,
    make_check,
    make_environment,
    make_scenario,
    write_json,
)
from tests.worlds.bundles.making import bundle_examples
from tests.worlds.local_server import make_local_server
from tests.worlds.programs import CHECKS as STORE_CHECKS
from tests.worlds.programs import SOLUTION as STORE_SOLUTION
from tests.worlds.programs import TASK as STORE_TASK
from tests.worlds.programs import make_world as make_store
from training_data.card import render_card
from training_data.conversations import build_alpaca_rows
from worlds.bundles.card import build_card
from worlds.bundles.envscaler_reader import read_environments
from worlds.bundles.format_names import SUMMARIES
from worlds.bundles.formats import FORMATS, BundleCounts
from worlds.bundles.training_rows import SolvedScenario
from worlds.definitions import Call
from worlds.examples.loading import load_example_scenarios, load_example_world
from worlds.gates.solutions import run_calls

FAULTS: dict[str, tuple[str, str, str]] = {
    "raises": ("# get", "raise KeyError(product_id)", "raises"),
    "no-success": ("# get", "return {'data': 1}", "no-success"),
    "query-mutates": ("# list", "self.current_user['seen'] = 1", "query-mutates"),
    "failed-call-mutates": ("# stock", "self.current_user = {'n': quantity}", "failed-call-mutates"),
    "dangling-key": (
        '    def __init__(self):\n        """',
        '    FOREIGN_KEYS = {"orders.order_items[]": "products"}\n\n    def __init__(self):\n        """',
        "dangling-key",
    ),
    "reads-clock": ("import re", "import re\nfrom datetime import datetime\nNOW = datetime.now()", "reads-clock"),
    "opens-socket": ("import re", "import re\nimport socket", "opens-socket"),
    "endless-loop": ("# get", "while True:\n            pass", "endless-loop"),
    "memory": ("# get", "found = 'x' * 4 * 1024 ** 3", "memory"),
    "output": ("# get", "print('x' * 100 * 1024 ** 2)", "output"),
    "state-not-json": ("# rename", "self.current_user = {'a': {1}}", "state-not-json"),
    "untyped-tool": ("product_id: str, name: str", "product_id: str, name: tuple", "untyped-tool"),
    "syntax-error": ("import re", "import re re", "syntax-error"),
}
DANGLING = {**CONFIG, "orders": {**CONFIG["orders"], "58294": {**CONFIG["orders"]["58293"], "order_items": ["P-9"]}}}
CHECKS: dict[str, tuple[Any, str]] = {
    "no-checks": ([], "no-checks"),
    "already": (make_check("def check_func(final_state):\n    return True\n"), "checks-already-hold"),
    "blind": (
        make_check("def check_func(final_state):\n    return final_state != initial_state\n"),
        "checks-blind",
    ),
    "narrow": (
        [*ITEMS, *make_check("def check_func(final_state):\n    return list(final_state)[0] == 'x'\n", "Has x.")],
        "unsolved",
    ),
    "mutate": (make_check("def check_func(final_state):\n    final_state.clear()\n    return True\n"), "checks-mutate"),
    "one": (make_check("def check_func(final_state):\n    return 1\n"), "checks-not-boolean"),
    "refused": (make_check("import os\ndef check_func(final_state):\n    return True\n"), "checks-refused"),
}


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    return tmp_path


def export(folder: Path, *words: str) -> CommandResult:
    return run_mergemill("worlds", "export", *words, "--json", cwd=folder)


def import_files(folder: Path, environments: object, scenarios: object | None = None, *words: str) -> CommandResult:
    write_json(folder / "environments.json", environments)
    given = ["environments.json"]
    if scenarios is not None:
        write_json(folder / "scenarios.json", scenarios)
        given.append("scenarios.json")
    return run_mergemill("worlds", "import", *given, *words, "--json", cwd=folder)


def read_verdicts(done: CommandResult) -> dict[str, str | None]:
    return {line["name"]: line["reason"] for line in done.lines}


def test_the_formats_of_the_help_are_those_there_are() -> None:
    assert tuple(FORMATS) == tuple(SUMMARIES)


@pytest.mark.parametrize(
    ("words", "code", "line"),
    [
        (["--format", "poems", "--out", "out"], 2, "--format: poems is unknown (one of envscaler, alpaca"),
        (["--format", "alpaca,poems", "--out", "out"], 2, "--format: poems is unknown (one of envscaler, alpaca"),
        (["--format", ",", "--out", "out"], 2, "--format names no format"),
        (["library", "--format", "alpaca", "--out", "out"], 3, "there is no world library"),
        (["--format", "alpaca", "--out", "out"], 3, "name a folder with program.py, or one of clinic_rota"),
        (["library_loans", "--format", "alpaca", "--out", "."], 3, "is not empty and holds no bundle of worlds"),
        (["library_loans", "library_loans", "--format", "alpaca", "--out", "out"], 3, "two worlds are named"),
    ],
)
def test_a_wrong_export_is_one_line_and_writes_nothing(words: list[str], code: int, line: str, folder: Path) -> None:
    (folder / "mine.txt").write_text("")
    done = export(folder, *words)
    assert (done.exit_code, done.stdout) == (code, ""), done.stderr
    assert line in done.stderr
    assert len(done.stderr.splitlines()) == 1
    assert [path.name for path in folder.iterdir()] == ["mine.txt"]


@pytest.mark.parametrize(
    ("content", "line"),
    [(b"{broken", "environments.json is no JSON"), (b"3", "is neither a list nor an object"), (None, "cannot read")],
)
def test_a_file_that_cannot_be_read_is_one_line(content: bytes | None, line: str, folder: Path) -> None:
    if content is not None:
        (folder / "environments.json").write_bytes(content)
    done = run_mergemill("worlds", "import", "environments.json", cwd=folder)
    assert (done.exit_code, done.stdout) == (3, "")
    assert line in done.stderr
    assert "Traceback" not in done.stderr


def test_rollouts_that_earned_1_become_conversations() -> None:
    call = {"name": "pay_fine", "arguments": {"member_id": "M-2", "cents": 300}}
    start = [{"role": "system", "text": "Rules."}, {"role": "user", "text": "Do it."}]
    both = {"role": "assistant", "text": "I pay.", "calls": [call, call]}
    results = [{"role": "tool", "text": text, "tool": "pay_fine"} for text in ('{"success": true}', "no")]
    end = {"role": "assistant", "text": "Task Completed"}
    good = {"rollout": 2, "reward": 1.0, "ended": "completed", "messages": [*start, both, *results, end]}
    torn = {**both, "calls": [{"name": "pay_fine", "arguments": None}]}
    others = [
        {**good, "reward": 0.5},
        {**good, "ended": "truncated"},
        {**good, "messages": [*start, torn, results[0], end]},
    ]
    log = b"".join(json.dumps(other).encode() + b"\n" for other in (*others, good))
    [rollout] = read_rollouts(log, "org/m")
    assert (rollout.label, rollout.model, rollout.reward, rollout.system) == ("rollout-2", "org/m", 1.0, "Rules.")
    assert [turn["role"] for turn in rollout.turns] == ["user", "assistant", "tool", "tool", "assistant"]
    assert [turn["tool_call_id"] for turn in rollout.turns if turn["role"] == "tool"] == ["call_1", "call_2"]
    [world] = [world for world in bundle_examples() if world.name == "library_loans"]
    scenario = replace(world.scenarios[0], rollouts=(rollout,))
    bundled = replace(world, scenarios=(scenario,))
    rows = [
        row
        for conversation in scenario.conversations
        for row in build_alpaca_rows(SolvedScenario(bundled, scenario, conversation), 0)
    ]
    assert len({row["id"] for row in rows}) == len(rows)
    assert rows[-2]["output"].startswith("I pay.\n<tool_call>\n{")
    assert rows[-1]["instruction"].count("<tool_response>") == 2
    assert (rows[-1]["source"], rows[-1]["model"], rows[-1]["history"][0][0]) == ("rollout", "org/m", "Do it.")
    card = render_card(build_card([bundled], FORMATS["alpaca"], BundleCounts(rows=len(rows), scenarios=1)))
    assert "| oracle | - | 1 |\n| rollout | org/m | 1 |" in card


def test_the_database_gives_certified_worlds_with_solutions_and_models(folder: Path) -> None:
    settings = Settings(db=f"sqlite:///{folder / 'm.db'}", store=folder / "store")
    artifacts = open_artifacts(settings.storage)
    definition, scenarios = load_example_world("library_loans"), load_example_scenarios("library_loans")
    world = make_world_record(definition, artifacts, origin=WorldOrigin.SYNTHESISED, license_id="MIT", model="org/a")
    other = make_world_record(
        replace(definition, name="other"), artifacts, origin=WorldOrigin.IMPORTED, license_id="MIT"
    )
    first, second = (make_scenario_record(scenario, world, artifacts, model="org/b") for scenario in scenarios)
    solution = artifacts.put(json.dumps([call.to_json() for call in scenarios[0].solution or ()]).encode())
    certificates = (make_world_certificate(world), make_scenario_certificate(first, solution=solution))
    with Store.open(settings.storage.db) as store:
        store.add(world, other, first, second, *certificates)
    [source] = find_sources([], settings.storage, with_uncertified=False)
    assert source.contents.definition == definition
    assert source.contents.scenarios == (scenarios[0],)
    assert (source.contents.license, source.contents.models) == ("MIT", ("org/a", "org/b"))
    certification = source.contents.certification
    assert certification is not None
    assert certification.by == f"the certificate {certificates[0].id[:12]}"
    assert certification.gates == {"queries": 0.0, "changes": 1.0, "assessment by tester and checker": 0.85}
    [all_scenarios] = find_sources([world.id[:10]], settings.storage, with_uncertified=True)
    assert [scenario.solution is None for scenario in all_scenarios.contents.scenarios] == [False, True]
    [uncertified] = find_sources(["other"], settings.storage, with_uncertified=False)
    assert uncertified.contents.certification is None
    with pytest.raises(InputError, match="there is no world nothing"):
        find_sources(["nothing"], settings.storage, with_uncertified=False)


@pytest.mark.docker
def test_worlds_that_ship_are_exported_and_trained_row_for_row(folder: Path) -> None:
    done = export(folder, "clinic_rota", "library_loans", "parcel_depot", "--format", "alpaca", "--out", "rows")
    assert done.exit_code == 0, done.stderr
    [summary] = done.lines
    assert (summary["event"], summary["environment"], summary["left_out"]) == ("summary", "synthetic", {})
    trained = read_as_llama_factory(folder / "rows", mask_history=True)
    assert len(trained) == summary["rows"] == 52
    assert "certified by" not in done.stdout
    assert "| the tests of mergemill " in (folder / "rows" / "README.md").read_text()
    assert not (folder / "mergemill.db").exists()


def write_store(folder: Path, **scenarios: str) -> Path:
    """Write the small world of the tests as a folder; `scenarios`: name -> checks."""
    world = make_store()
    files = {
        "program.py": world.program,
        "documentation.md": "# Store\n\nA store.\n\n## Rules\n- Items lie on shelves.\n",
        "states/first.json": json.dumps(world.states["first"]),
    }
    for name, checks in scenarios.items():
        files[f"scenarios/{name}/task.md"] = STORE_TASK
        files[f"scenarios/{name}/checks.py"] = checks
        solution = [call.to_json() for call in STORE_SOLUTION]
        files[f"scenarios/{name}/scenario.json"] = json.dumps({"state": "first", "solution": solution})
    for path, content in files.items():
        target = folder / path
        target.parent.mkdir(parents=True, exist_ok=True)
        target.write_text(content)
    return folder


@pytest.mark.docker
def test_a_folder_must_pass_the_gates_unless_uncertified_worlds_are_wanted(folder: Path) -> None:
    blind = "def anything(initial_state, final_state):\n    return final_state != initial_state\n"
    store = write_store(folder / "store", good=STORE_CHECKS, blind=blind)
    done = export(folder, "store", "--format", "sharegpt", "--out", "rows")
    assert done.exit_code == 0, done.stderr
    assert (done.lines[0]["scenarios"], done.lines[0]["left_out"]) == (1, {"checks-blind": 1})
    assert "store.blind is left out: checks-blind" in done.stderr
    card = (folder / "rows" / "README.md").read_text()
    assert "| `store` | 1 | 6 | 2 | 1 | written | - | NOASSERTION | this export |" in card
    assert "dead-tools 0" in card
    wanted = export(folder, "store", "--format", "sharegpt", "--out", "rows", "--uncertified")
    assert (wanted.lines[0]["scenarios"], wanted.lines[0]["left_out"]) == (2, {})
    assert "**no**" in (folder / "rows" / "README.md").read_text()
    (store / "program.py").write_text(make_store("# get", "raise ValueError").program)
    broken = export(folder, "store", "--format", "sharegpt", "--out", "rows2")
    assert broken.exit_code == 3
    assert "store is left out: raises" in broken.stderr
    assert not (folder / "rows2").exists()


@pytest.mark.docker
def test_an_export_is_imported_stored_and_exported_again(folder: Path) -> None:
    write_store(folder / "store", good=STORE_CHECKS)
    first = export(folder, "store", "--format", "envscaler", "--out", "first", "--uncertified")
    assert first.exit_code == 0, first.stderr
    words = ("worlds", "import", "first/environments.json", "first/scenarios.json", "--json")
    done = run_mergemill(*words, cwd=folder)
    assert done.exit_code == 0, done.stderr
    assert [(line["kind"], line["name"], line["ok"], line["reason"]) for line in done.lines] == [
        ("world", "store", True, None),
        ("scenario", "store.good", True, None),
    ]
    assert done.lines[1]["gates"]["mutations"] >= 0.7
    [listed] = run_mergemill("worlds", "list", "--json", cwd=folder).lines
    assert (listed["origin"], listed["status"], listed["certified_scenarios"]) == ("imported", "certified", 1)
    again = run_mergemill(*words, cwd=folder)
    assert [(line["name"], line["ok"]) for line in again.lines] == [(line["name"], True) for line in done.lines]
    assert export(folder, "--format", "envscaler", "--out", "second").exit_code == 0
    for name in ("environments", "scenarios", "trajectories"):
        written, other = (json.loads((folder / out / f"{name}.json").read_text()) for out in ("first", "second"))
        if name == "environments":
            for item in (*written.values(), *other.values()):
                for key in ("origin", "certified_by", "gates"):
                    del item[key]
        assert written == other


@pytest.mark.docker
def test_a_world_of_envscaler_is_certified_and_a_scenario_without_solution_kept_aside(folder: Path) -> None:
    unsolved = make_scenario(task_id="env_1-task_2", solution=None)
    done = import_files(folder, [make_environment()], [make_scenario(), unsolved], "--license", "MIT")
    assert done.exit_code == 0, done.stderr
    assert read_verdicts(done) == {"env_1": None, "env_1-task_1": None, "env_1-task_2": "unsolved"}
    gates = done.lines[2]["gates"]
    assert (gates["nothing-done"], gates["check-texts"], gates["check-determinism"]) == (2, 0, 0)
    [listed] = run_mergemill("worlds", "list", "--json", cwd=folder).lines
    assert (listed["license"], listed["scenarios"], listed["certified_scenarios"]) == ("MIT", 2, 1)
    rows = export(folder, "env_1", "--format", "verl", "--out", "rows")
    assert (rows.lines[0]["rows"], rows.lines[0]["left_out"]) == (1, {})
    later = import_files(folder, [make_environment()], [{**unsolved, "solution": SOLUTION}])
    assert read_verdicts(later) == {"env_1": None, "env_1-task_2": None}, "it is tried again with a solution"


@pytest.mark.docker
def test_every_faulty_world_has_its_reason_and_the_others_are_imported(folder: Path) -> None:
    environments = [
        make_environment(name, old, f"{new}\n        # x" if old.startswith("# ") else new)
        for name, (old, new, _) in FAULTS.items()
    ]
    scenarios = [
        make_scenario(name, f"{name}-task", init_config=DANGLING if name == "dangling-key" else CONFIG)
        for name in FAULTS
    ]
    lost = [make_scenario("nowhere", "lost"), make_scenario("good", "torn", task=None), make_scenario("good", "good-1")]
    malformed = {**make_environment("torn-world"), "env_class_code": 3}
    done = import_files(folder, [*environments, malformed, make_environment("good")], [*scenarios, *lost])
    assert done.exit_code == 3, done.stderr
    verdicts = read_verdicts(done)
    assert {name: verdicts[name] for name in FAULTS} == {name: reason for name, (_, _, reason) in FAULTS.items()}
    assert {verdicts[f"{name}-task"] for name in FAULTS} == {"world-rejected"}
    assert [verdicts[name] for name in ("torn-world", "lost", "torn", "good", "good-1")] == [
        *("malformed", "no-world", "malformed", None, None),
    ]
    assert len(done.lines) == 2 * len(FAULTS) + 5
    rejected = run_mergemill("worlds", "list", "--status", "rejected", "--json", cwd=folder)
    assert {row["name"]: row["reason"] for row in rejected.lines} == {n: r for n, (_, _, r) in FAULTS.items()}


@pytest.mark.docker
def test_every_faulty_scenario_has_its_reason(folder: Path) -> None:
    scenarios = [make_scenario(task_id=name, checklist_with_func=items) for name, (items, _) in CHECKS.items()]
    state = {**CONFIG, "products": {"P-100": {"product_id": "P-100"}}}
    scenarios += [make_scenario(task_id="state", init_config=state), make_scenario(task_id="good")]
    done = import_files(folder, [make_environment()], scenarios)
    verdicts = read_verdicts(done)
    assert {name: verdicts[name] for name in CHECKS} == {name: reason for name, (_, reason) in CHECKS.items()}
    assert (verdicts["env_1"], verdicts["state"], verdicts["good"]) == (None, "wrong-state-type", None)


@pytest.mark.docker
def test_a_check_that_demands_a_random_value_is_too_narrow(folder: Path) -> None:
    note = 'order["status"] = "fulfilled"\n        order["order_items"].append(str(random.random()))'
    environment = make_environment("env_1", 'order["status"] = "fulfilled"', note)
    environment["env_class_code"] = environment["env_class_code"].replace("import re", "import re\nimport random", 1)
    [world] = read_environments(json.dumps([environment]).encode(), "e")
    assert world.definition is not None
    calls = [Call(**call) for call in SOLUTION]
    with make_local_server().load(world.definition) as served:
        final = run_calls(served, {**CONFIG, "current_user": {}}, calls).final
    item = make_check(
        f'def check_func(final_state):\n    return final_state["orders"]["58291"] == {final["orders"]["58291"]!r}\n'
    )
    done = import_files(folder, [environment], [make_scenario(checklist_with_func=[*ITEMS, *item])])
    assert read_verdicts(done) == {"env_1": None, "env_1-task_1": "checks-too-narrow"}


@pytest.mark.docker
@pytest.mark.slow
@pytest.mark.parametrize("name", ["alpaca", "sharegpt", "messages", "verl", "ragen", "nemo-gym"])
def test_datasets_loads_every_row(name: str, folder: Path) -> None:
    done = export(folder, "library_loans", "parcel_depot", "--format", name, "--out", "rows")
    program = (
        "import json, sys\nfrom datasets import load_dataset\n"
        "for row in load_dataset(sys.argv[1], split='train'):\n"
        "    facts = row.get('verifier_metadata') or row.get('extra_info') or row\n"
        "    print(json.dumps({'environment': facts['environment'], 'world': facts['world']}))\n"
    )
    command = install("datasets==5.2.0", sys.executable)
    output = run_command(command, "python", "-c", program, folder / "rows", cwd=folder)
    rows = [json.loads(line) for line in output.splitlines() if line.startswith('{"environment"')]
    assert len(rows) == done.lines[0]["rows"]
    assert {row["environment"] for row in rows} == {"synthetic"}
    assert {row["world"] for row in rows} == {"library_loans", "parcel_depot"}

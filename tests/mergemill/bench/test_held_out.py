"""Held-out sets: their subjects and families are refused as training data, and marked where they are wanted."""

from __future__ import annotations

import json
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import pytest

from backends.services import Services
from core.config import Settings
from exporters.bundle_writer import write_bundle
from exporters.item import ExportItem
from mergemill.bench.held_out import MARK, refuse_held_out, refuse_seeds
from mergemill.bench.sets import freeze
from mergemill.bundles.export import ItemReader
from mergemill.execution.progress import CountProgress
from mergemill.execution.reporter import Reporter
from mergemill.execution.services import make_services
from mergemill.simulation.records import SimulationRecorder
from mergemill.worlds.bundles.export import WorldExportRequest, export_worlds
from simulators.conversation import DialogueTurn, TurnRole
from simulators.seeds.reading import read_seeds
from simulators.trajectory import SimulatedTrajectory
from taskdb.artifacts import Artifacts
from taskdb.queries.bench import HeldOut, find_held_out
from taskdb.queries.task_filters import TaskFilters
from taskdb.queries.tasks import list_tasks
from taskdb.queries.worlds import find_current_scenarios
from taskdb.records import Kind, Stage, Task
from taskdb.records.bench import BenchLimits
from taskdb.records.rollouts import Trajectory
from taskdb.records.work import StageResult
from taskdb.records.worlds import Scenario
from taskdb.store import Store
from tests.cli import CommandResult, run_mergemill
from tests.mergemill.simulation.test_simulated_rl_export import measure
from tests.records import make_certificate
from tests.samplers.scripted_model import ScriptedModel, Turn
from tests.samplers.stored import add_rollout
from tests.samplers.worlds.database import make_database as make_worlds
from tests.samplers.worlds.local_server import needs_root, open_local_server
from tests.taskdb.lineages import add_lineage, make_url
from tests.taskdb.worlds import make_scenario, make_world

LIMITS = BenchLimits(turns=100, seconds=3600.0)


def add_relative(store: Store, task: Task, suffix: str, **changes: object) -> Task:
    """Add another certified task of a task's change."""
    family = task.name.rpartition(".")[0]
    relative = Task.model_validate(task.model_dump() | {"name": f"{family}.{suffix}"} | changes)
    for stage, record in ((Stage.DERIVE, relative), (Stage.CERTIFY, make_certificate(relative))):
        store.add_stage_results(StageResult(stage=stage, result=record, source=task.source, name=family, seconds=1.0))
    return relative


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A database in which task 1 is held out, with a variant of it, a combination with it, and task 3; all sampled."""
    artifacts = Artifacts(tmp_path / "mergemill-store" / "artifacts")
    with Store.open(make_url(tmp_path)) as store:
        tasks = [add_lineage(store, number) for number in (1, 2, 3)]
        tasks.append(add_relative(store, tasks[0], "terse", kind=Kind.TERSE, variant_of=tasks[0].name))
        other = {"kind": Kind.COMBINED, "other_candidates": (tasks[0].candidate,)}
        tasks.append(add_relative(store, tasks[1], "combined", **other))
        freeze(store, "open", [tasks[2]], LIMITS, held_out=False)
        freeze(store, "secret", [tasks[0]], LIMITS, held_out=True)
        for number in (1, 2, 3):
            for text in (f"gold ada__greet-{number}", f"test ada__greet-{number}"):
                artifacts.put_text(text)
        for task in tasks:
            commands = ((f"ls {task.name}", "greet.py"),)
            add_rollout(store, artifacts, task, 1, patch=f"diff {task.name}".encode(), commands=commands)
    return tmp_path


def run(folder: Path, *words: str) -> CommandResult:
    return run_mergemill(*words, "--db", make_url(folder), cwd=folder)


def read_names(path: Path) -> set[str]:
    return {json.loads(line)["instance_id"] for line in path.read_text().splitlines()}


def test_a_family_is_held_out_with_variants_and_combinations(folder: Path) -> None:
    with Store.open(make_url(folder)) as store:
        held_out = find_held_out(store)
        covered = {task.name for task in store.load_all(Task) if held_out.covers(task.id, task.name)}
    assert covered == {"ada__greet-1.bugfix", "ada__greet-1.terse", "ada__greet-2.combined"}
    # an earlier record of the same change has another id
    assert held_out.covers("0" * 64, "ada__greet-1.review-2")
    assert not held_out.covers("0" * 64, "ada__greet-11.review-2")
    assert not HeldOut().covers("", "")


def test_all_scenarios_of_a_world_are_held_out(tmp_path: Path) -> None:
    settings = make_worlds(tmp_path)
    with Store.open(settings.storage.db) as store:
        scenarios = find_current_scenarios(store, certified=True)
        freeze(store, "secret", scenarios[:1], LIMITS, held_out=True)
        held_out = find_held_out(store)
        worlds = {scenario.world for scenario in scenarios if held_out.covers(scenario.id, scenario.name)}
        siblings = [scenario for scenario in scenarios if scenario.world == scenarios[0].world]
    assert worlds == {scenarios[0].world}
    assert len(siblings) > 1
    assert all(held_out.covers(scenario.id, scenario.name) for scenario in siblings)


def test_exports_of_tasks_refuse_a_held_out_family_and_count_it(folder: Path) -> None:
    words = ("export", "--format", "harbor", "--allow-no-controls", "--out", "out")
    done = run(folder, *words, "--family", "ada__greet-1")
    assert (done.exit_code, (folder / "out").exists()) == (3, False)
    first, second = done.stderr.splitlines()
    assert first.startswith("mergemill: 2 tasks left out: held-out: in a family of a frozen set")
    assert "there are no tasks to export" in second
    storage = Settings(db=make_url(folder)).storage
    kept, number = refuse_held_out(TaskFilters(status="certified"), storage)
    assert number == 3
    with Store.open(make_url(folder)) as store:
        names = {row["name"] for row in list_tasks(store, kept)}
    assert names == {"ada__greet-2.bugfix", "ada__greet-3.bugfix"}


def test_exports_with_held_out_tasks_are_marked(folder: Path) -> None:
    def write(items: Iterable[ExportItem], folder: Path, services: Services) -> None:
        for item in items:
            item.notes.append("of the format")
        (folder / "README.md").write_text("# Card\n")

    settings = Settings(db=make_url(folder), store=folder / "mergemill-store")
    with Store.open(make_url(folder)) as store:
        items = ItemReader(store, TaskFilters(status="certified"), lambda _: True, {}).iterate(CountProgress("task", 5))
        write_bundle("harbor", write, items, folder / "out", make_services(settings, engine=False))
    rows = json.loads((folder / "out" / "manifest.json").read_text())["tasks"]
    marked = {row["name"] for row in rows if any(note.startswith("held-out:") for note in row["notes"])}
    assert marked == {"ada__greet-1.bugfix", "ada__greet-1.terse", "ada__greet-2.combined"}
    card = (folder / "out" / "README.md").read_text()
    assert card.startswith("# Card\n\n## Warnings\n\n- 3 tasks: held-out: in a family of a frozen set")
    assert "of the format" not in card


def test_trajectories_of_a_held_out_family_are_neither_selected_nor_exported(folder: Path) -> None:
    selected = run(folder, "trajectories", "select", "--json")
    assert selected.exit_code == 0, selected.stderr
    assert (selected.lines[-1]["trajectories"], selected.lines[-1]["held_out"]) == (2, 3)
    assert "held-out" in run(folder, "trajectories", "select").stderr
    done = run(folder, "trajectories", "export", "--format", "messages", "--unselected", "--out", "rows", "--json")
    assert done.exit_code == 0, done.stderr
    assert [reason.split(":")[0] for reason in done.json["left_out"]] == ["held-out"]
    assert list(done.json["left_out"].values()) == [3]
    assert read_names(folder / "rows" / "train.jsonl") == {"ada__greet-2.bugfix", "ada__greet-3.bugfix"}


def test_trajectories_with_a_held_out_family_are_marked(folder: Path) -> None:
    selected = run(folder, "trajectories", "select", "--with-held-out", "--json").lines[-1]
    assert (selected["trajectories"], selected["held_out"]) == (5, 0)
    words = ("--format", "messages", "--unselected", "--with-held-out", "--out", "rows")
    assert run(folder, "trajectories", "export", *words).exit_code == 0
    assert len(read_names(folder / "rows" / "train.jsonl")) == 5
    (note,) = json.loads((folder / "rows" / "manifest.json").read_text())["notes"].items()
    assert (note[0].startswith("held-out:"), note[1]) == (True, 3)
    assert "**3 trajectories: held-out: in a family" in (folder / "rows" / "README.md").read_text()


def test_only_held_out_trajectories_are_nothing_to_export(folder: Path) -> None:
    words = ("trajectories", "export", "--format", "messages", "--unselected", "--out", "rows", "--kind", "terse")
    done = run(folder, *words)
    assert (done.exit_code, "--with-held-out exports them" in done.stderr) == (3, True)


def test_seeds_of_a_held_out_family_are_refused(folder: Path) -> None:
    words = ("trajectories", "export", "--format", "messages", "--unselected", "--with-held-out", "--out", "rows")
    assert run(folder, *words).exit_code == 0
    with ScriptedModel(lambda _: Turn(fault="401")) as model:  # the seeds are read before it is called
        given = ("--seeds", "rows", "--domain", "office", "--llm", model.url, "--model", "m", "--total", "2")
        words = ("simulate", "sft", *given, "--simulate-prefilter", "off", "--out")
        refused = run(folder, *words, "sft")
        wanted = run(folder, *words, "all", "--with-held-out")
    assert "3 seeds left out: held-out" in refused.stderr
    run_file = json.loads((folder / "sft" / "run.json").read_text())
    assert (len(run_file["seeds"]), "held_out" in run_file) == (2, False)
    assert "left out: held-out" not in wanted.stderr
    run_file = json.loads((folder / "all" / "run.json").read_text())
    assert (len(run_file["seeds"]), run_file["held_out"]) == (5, 3)


def test_a_simulator_is_not_measured_on_a_held_out_family(folder: Path) -> None:
    given = ("--llm", "http://127.0.0.1:9/v1", "--model", "m", "--submissions", "none")
    refused = run(folder, "simulate", "measure", *given, "--kind", "terse")
    assert "1 task left out: held-out" in refused.stderr
    assert "no certified task with lists of tests is selected" in refused.stderr


@pytest.mark.parametrize(
    ("command", "options"),
    [
        ("sft", ("--llm", "http://127.0.0.1:9/v1", "--total", "1")),
        ("env", ("--llm", "http://127.0.0.1:9/v1")),
        ("rl", ()),
    ],
)
def test_a_variant_alone_is_no_seed_of_any_simulation(folder: Path, command: str, options: tuple[str, ...]) -> None:
    words = ("trajectories", "export", "--format", "messages", "--unselected", "--with-held-out", "--kind", "terse")
    assert run(folder, *words, "--out", "rows").exit_code == 0
    with Store.open(make_url(folder)) as store:
        (task,) = (task for task in store.load_all(Task) if task.name == "ada__greet-3.bugfix")
        measure(store, task, wrong=35, paid=0)
    given = ("--seeds", "rows", "--domain", "office", "--model", "m", "--out", "out", *options)
    done = run_mergemill("simulate", command, *given, cwd=folder, MERGEMILL_DB=make_url(folder))
    assert (done.exit_code, (folder / "out").exists()) == (3, False), done.stderr
    assert "1 seed left out: held-out" in done.stderr
    assert "every seed is held out" in done.stderr


def test_scenarios_of_a_world_are_held_out_whatever_they_are_called(tmp_path: Path) -> None:
    world, other = make_world(name="env_5"), make_world(name="env_6")
    scenarios = [make_scenario(world).model_copy(update={"name": f"task-{number}"}) for number in (1, 2)]
    with Store.open(make_url(tmp_path)) as store:
        foreign = make_scenario(other).model_copy(update={"name": "task-3"})
        store.add(world, other, *scenarios, foreign)
        freeze(store, "secret", scenarios[:1], LIMITS, held_out=True)
        held_out = find_held_out(store)
    assert held_out.covers("0" * 64, "task-2")
    assert held_out.covers_world("env_5", ())
    assert held_out.covers_world("another", ["task-2"])
    assert not held_out.covers_world("env_6", ["task-3"])


def read_worlds(folder: Path) -> set[str]:
    return {json.loads(line)["world"] for line in (folder / "train.jsonl").read_text().splitlines()}


@needs_root
def test_a_held_out_world_is_left_out_of_exports_or_marked(tmp_path: Path) -> None:
    settings, lines = make_worlds(tmp_path, ("clinic_rota", "library_loans")), list[str]()
    with Store.open(settings.storage.db) as store:
        scenarios = [scenario for scenario in store.load_all(Scenario) if scenario.world == "library_loans"]
        freeze(store, "secret", scenarios[:1], LIMITS, held_out=True)
    reporter = Reporter(message=lines.append, open_progress=CountProgress)

    def export(name: str, **fields: Any) -> dict[str, Any]:
        out = tmp_path / name
        request = WorldExportRequest(words=(), formats=("messages",), out=out, **fields)
        (summary,) = export_worlds(request, settings, reporter, open_local_server)
        assert ("held-out: in a family" in (out / "README.md").read_text()) == bool(fields)
        return summary | {"notes": json.loads((out / "manifest.json").read_text()).get("notes")}

    summary = export("rows")
    assert (read_worlds(tmp_path / "rows"), summary["notes"]) == ({"clinic_rota"}, None)
    assert summary["left_out"] == {"held-out": len(scenarios)}
    assert lines[0].startswith("library_loans is left out: held-out: in a family of a frozen set")
    summary = export("all", with_held_out=True)
    assert (read_worlds(tmp_path / "all"), summary["left_out"]) == ({"clinic_rota", "library_loans"}, {})
    assert summary["notes"] == {MARK: len(scenarios)}


def test_a_world_that_ships_is_held_out_by_its_name(tmp_path: Path) -> None:
    settings = make_worlds(tmp_path, ("library_loans",))
    with Store.open(settings.storage.db) as store:
        freeze(store, "secret", find_current_scenarios(store, certified=True)[:1], LIMITS, held_out=True)
    words = ("worlds", "export", "library_loans", "--format", "messages", "--out", "rows")
    done = run_mergemill(*words, "--db", settings.storage.db, cwd=tmp_path)  # no container is started
    assert (done.exit_code, (tmp_path / "rows").exists()) == (3, False)
    assert "all these worlds are held out (--with-held-out exports them, too)" in done.stderr


HELD_SCENARIO = "library_loans.busy_morning"


@pytest.fixture
def origins(folder: Path) -> dict[str, dict[str, Any]]:
    """The fields by which rows name a held-out scenario or task, or none, in a database that holds both out."""
    world = make_world()
    with Store.open(make_url(folder)) as store:
        scenario = make_scenario(world)
        store.add(world, scenario)
        freeze(store, "worlds", [scenario], LIMITS, held_out=True)
        (held, *_) = (record for record in store.load_all(Trajectory) if record.name == "ada__greet-1.terse")
        (free, *_) = (record for record in store.load_all(Trajectory) if record.name == "ada__greet-3.bugfix")
        (task,) = (task for task in store.load_all(Task) if task.name == "ada__greet-1.bugfix")
    assert scenario.name == HELD_SCENARIO
    return {
        "scenario": {"scenario": HELD_SCENARIO},
        "sibling": {"scenario": "library_loans.quiet_evening"},
        "id": {"id": f"{HELD_SCENARIO}/oracle"},
        "task id": {"metadata": {"task": task.id}},
        "both": {"instance_id": "elsewhere", "task_id": task.name},
        "trajectory": {"trajectory_id": held.id},
        "ATIF": {"trajectory_id": f"{held.id}-3"},
        "simulated": {"metadata": {"seed_subjects": [HELD_SCENARIO]}},
        "table": {"metadata": json.dumps({"seed_name": f"{HELD_SCENARIO}/rollout-2"})},
        "free trajectory": {"trajectory_id": free.id},
        "free": {"instance_id": "ada__greet-3.bugfix", "scenario": "new", "metadata": "{"},
        "text": {"task": f"Do not do {HELD_SCENARIO}"},
        "unnamed": {},
    }


FREE = {"free trajectory", "free", "text", "unnamed"}


def count_held_out(folder: Path, *rows: dict[str, Any]) -> tuple[int, int]:
    """Return the numbers of seeds of some rows, and of those that are held out."""
    path = folder / "seeds.jsonl"
    path.write_text("".join(f"{json.dumps(row)}\n" for row in rows))
    storage = Settings(db=make_url(folder)).storage
    seeds, number = refuse_seeds(read_seeds(path).seeds, storage, print, with_held_out=True)
    return len(seeds), number


def make_row(text: str, **fields: Any) -> dict[str, Any]:
    return {"messages": [{"role": "user", "content": text}, {"role": "assistant", "content": "Done."}], **fields}


def test_seeds_are_recognised_by_all_that_their_sources_name(folder: Path, origins: dict[str, dict[str, Any]]) -> None:
    held = {name for name, fields in origins.items() if count_held_out(folder, make_row(name, **fields)) == (1, 1)}
    assert held == set(origins) - FREE
    # a conversation that was read before, from a file that names nothing
    assert count_held_out(folder, make_row("x"), make_row("x", **origins["scenario"])) == (1, 1)
    assert count_held_out(folder, make_row("x"), make_row("x", **origins["trajectory"])) == (1, 1)


def add_conversations(folder: Path, seeds: dict[str, dict[str, Any]]) -> None:
    """Add a simulated conversation for the provenance of each seed, as runs from before a set was frozen left them."""
    turns = (DialogueTurn(role=TurnRole.HUMAN, text="Hello."), DialogueTurn(role=TurnRole.ASSISTANT, text="Done."))
    made = [
        SimulatedTrajectory(
            id=name,
            parent=f"seed of {name}",
            domain="retail",
            pack_version="1",
            simulator="m",
            profile="default",
            prompt="1",
            seed={"name": "", "file": "seeds.json", "line": 1, "format": "messages", "turns": 2, "tools": [], **seed},
            sample=1,
            scenario="new",
            failure="",
            answer=name,
            license="MIT",
            turns=turns,
            n_generated=2,
        )
        for name, seed in seeds.items()
    ]
    pack = json.dumps({"name": "retail", "version": "1", "policy": "Be kind.", "tools": []}).encode()
    artifacts = Artifacts(folder / "mergemill-store" / "artifacts")
    with Store.open(make_url(folder)) as store:
        recorder = SimulationRecorder(
            store=store, artifacts=artifacts, domain="retail", profile="default", simulator="m", pack=pack
        )
        assert recorder.add_conversations(made) == len(made)


def test_simulated_conversations_of_held_out_seeds_are_left_out_or_marked(
    folder: Path, origins: dict[str, dict[str, Any]]
) -> None:
    trajectory = origins["trajectory"]["trajectory_id"]
    seeds: dict[str, dict[str, Any]] = {
        "named": {"subjects": [HELD_SCENARIO]},
        "of earlier versions": {"name": f"{HELD_SCENARIO}/oracle"},
        "of a trajectory": {"name": trajectory},
        "free": {"name": origins["free trajectory"]["trajectory_id"], "subjects": ["ada__greet-3.bugfix"]},
        "unnamed": {},
    }
    add_conversations(folder, seeds)
    words = ("simulate", "export", "--format", "messages", "--out")
    done = run(folder, *words, "rows", "--json")
    assert (done.exit_code, done.json["conversations"], done.json["held_out"]) == (0, 2, 3), done.stderr
    rows = [json.loads(line) for line in (folder / "rows" / "messages" / "train.jsonl").read_text().splitlines()]
    assert {row["id"]: row["metadata"]["seed_subjects"] for row in rows} == {
        "free": ["ada__greet-3.bugfix"],
        "unnamed": [],
    }
    assert "held-out" not in (folder / "rows" / "messages" / "README.md").read_text()
    assert "3 conversations left out: held-out" in run(folder, *words, "again").stderr
    done = run(folder, *words, "all", "--json", "--with-held-out")
    assert (done.json["conversations"], done.json["held_out"]) == (5, 0)
    for card in ("README.md", "messages/README.md"):
        assert f"**3 seeds: {MARK}.**" in (folder / "all" / card).read_text()


def test_an_export_of_held_out_conversations_alone_writes_nothing(
    folder: Path, origins: dict[str, dict[str, Any]]
) -> None:
    del origins  # the scenario is held out
    add_conversations(folder, {"named": {"subjects": [HELD_SCENARIO]}})
    done = run(folder, "simulate", "export", "--format", "messages", "--out", "rows")
    assert (done.exit_code, (folder / "rows").exists()) == (3, False)
    assert "1 are held out: --with-held-out exports them, too" in done.stderr


def test_a_table_of_tasks_says_how_many_are_held_out(folder: Path) -> None:
    done = run(folder, "tasks", "table", "--out", "tasks.parquet", "--json")
    assert (done.exit_code, done.json["tasks"], done.json["held_out"]) == (0, 5, 3), done.stderr
    metadata = pq.read_metadata(folder / "tasks.parquet").metadata
    assert metadata[b"held-out"].decode() == f"3 tasks: {MARK}"
    words = ("tasks", "table", "--family", "ada__greet-3", "--out", "tasks.parquet")
    assert "held-out" not in run(folder, *words).stderr
    assert b"held-out" not in (pq.read_metadata(folder / "tasks.parquet").metadata or {})
    assert f"3 tasks: {MARK}" in run(folder, *words[:2], *words[4:]).stderr

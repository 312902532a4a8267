"""Held-out sets: their subjects and families are refused as training data, and marked where they are wanted."""

from __future__ import annotations

import json
from collections.abc import Iterable
from pathlib import Path

import pytest

from backends.services import Services
from core.config import Settings
from exporters.bundle_writer import write_bundle
from exporters.item import ExportItem
from mergemill.bench.held_out import refuse_held_out
from mergemill.bench.sets import freeze
from mergemill.bundles.export import ItemReader
from mergemill.execution.progress import CountProgress
from mergemill.execution.services import make_services
from taskdb.artifacts import Artifacts
from taskdb.queries.bench import HeldOut, find_held_out
from taskdb.queries.task_filters import TaskFilters
from taskdb.queries.tasks import list_tasks
from taskdb.queries.worlds import find_current_scenarios
from taskdb.records import Kind, Stage, Task
from taskdb.records.bench import BenchLimits
from taskdb.records.work import StageResult
from taskdb.store import Store
from tests.cli import CommandResult, run_mergemill
from tests.mergemill.simulation.test_simulated_rl_export import measure
from tests.records import make_certificate
from tests.samplers.scripted_model import ScriptedModel, Turn
from tests.samplers.stored import add_rollout
from tests.samplers.worlds.database import make_database as make_worlds
from tests.taskdb.lineages import add_lineage, make_url

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

"""Exports for reinforcement learning with a simulator's rewards: rows, the refusal of simulators, and mixed exports."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import pytest

from taskdb.artifacts import Artifacts
from taskdb.records import Kind, Task
from taskdb.records.simulator_measurements import SimulatorMeasurement, SubmissionKind
from taskdb.store import Store
from tests.cli import CommandResult, run_mergemill
from tests.samplers.stored import add_rollout
from tests.simulators.making import write_seeds
from tests.taskdb.lineages import add_lineage, make_url


def export(folder: Path, *words: str) -> CommandResult:
    given = ("--seeds", "seeds.json", "--domain", "retail", "--out", "rl", "--model", "m", "--db", make_url(folder))
    return run_mergemill("simulate", "rl", *given, *words, cwd=folder)


def measure(store: Store, task: Task, *, wrong: int, paid: int, simulator: str = "m") -> None:
    """Store measurements of so many wrong submissions, of which the simulator pays some."""
    store.add(*(make_measurement(task, number, paid=number < paid, simulator=simulator) for number in range(wrong)))


def make_measurement(task: Task, number: int, *, paid: bool, simulator: str) -> SimulatorMeasurement:
    return SimulatorMeasurement(
        parent=task.id,
        name=task.name,
        simulator=simulator,
        prompt="simulated-run-1",
        kind=SubmissionKind.BUG,
        submission=f"{number:064}",
        samples=1,
        grader="g",
        resolved=False,
        predicted=(paid,),
    )


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    write_seeds(tmp_path / "seeds.json", range(3))
    return tmp_path


def test_rows_are_written_for_a_simulator_that_was_measured(folder: Path) -> None:
    with Store.open(make_url(folder)) as store:
        measure(store, add_lineage(store), wrong=35, paid=0)
    done = export(folder, "--json")
    assert done.exit_code == 0, done.stderr
    assert {name: done.json[name] for name in ("environment", "rows", "simulator", "domain")} == {
        "environment": "simulated",
        "rows": 3,
        "simulator": "m",
        "domain": "retail",
    }
    assert done.json["measured"]["false_pass"]["high"] == pytest.approx(0.0989, abs=1e-4)
    rows: list[dict[str, Any]] = json.loads((folder / "rl" / "rows.json").read_text())
    assert {row["environment"] for row in rows} == {"simulated"}
    first = rows[0]["conversations"]
    assert first[0] == {"from": "human", "value": "Hello, this is case number 0. I want to cancel an order."}
    assert {turn["from"] for turn in first} == {"human", "gpt"}
    assert first[3]["value"].startswith("<tool_call>\n{")
    assert "<tools>" in rows[0]["system"]
    prompts = pq.read_table(folder / "rl" / "verl.parquet").to_pylist()
    assert [row["extra_info"]["task"] for row in prompts] == [row["id"] for row in rows]
    assert {row["agent_name"] for row in prompts} == {"mergemill_simulated"}
    assert {row["extra_info"]["environment"] for row in prompts} == {"simulated"}
    card = (folder / "rl" / "README.md").read_text()
    assert "`environment: simulated`" in card
    assert "| wrong submissions that it pays | 0 | 35 | 0.000 to 0.099 |" in card
    again = export(folder)
    assert (again.exit_code, "rl is not empty" in again.stderr) == (3, True)


def test_profile_simia_has_the_seeds_own_system_prompt(folder: Path) -> None:
    with Store.open(make_url(folder)) as store:
        measure(store, add_lineage(store), wrong=35, paid=0)
    assert export(folder, "--profile", "simia").exit_code == 0
    rows = json.loads((folder / "rl" / "rows.json").read_text())
    assert rows[0]["system"] == "You serve the customers of a shop."


@pytest.mark.parametrize(
    ("wrong", "paid", "words", "line"),
    [
        (0, 0, (), "the simulator m was never measured (measured: other) (run `mergemill simulate measure --model m`"),
        (34, 0, (), "may pay up to 10.2% of wrong submissions (0 of 34 were paid), and 10.0% are allowed"),
        (100, 5, (), "may pay up to 11.2% of wrong submissions (5 of 100 were paid)"),
        (100, 5, ("--max-false-pass", "0.11"), "and 11.0% are allowed (measure more with"),
        (100, 5, ("--max-false-pass", "0.12"), ""),
        (100, 4, (), ""),
    ],
)
def test_a_simulator_that_may_pay_too_much_is_refused(
    folder: Path, wrong: int, paid: int, words: tuple[str, ...], line: str
) -> None:
    with Store.open(make_url(folder)) as store:
        task = add_lineage(store)
        measure(store, task, wrong=100, paid=0, simulator="other")
        measure(store, task, wrong=wrong, paid=paid)
    done = export(folder, *words)
    assert (done.exit_code, (folder / "rl").exists()) == ((3, False) if line else (0, True)), done.stderr
    assert line in done.stderr
    assert len(done.stderr.splitlines()) == bool(line)


def test_bad_options_are_a_line(folder: Path) -> None:
    missing = export(folder)
    assert (missing.exit_code, len(missing.stderr.splitlines())) == (3, 1)
    words = ("--seeds", "seeds.json", "--domain", "retail", "--out", "rl")
    unnamed = run_mergemill("simulate", "rl", *words, cwd=folder)
    assert (unnamed.exit_code, "the simulator is not named (set --model NAME)" in unnamed.stderr) == (2, True)


# ----------------------------------------------------------------------------------------------- mixed exports


@pytest.fixture
def mixed(tmp_path: Path) -> Path:
    """A database with a rollout of a verified task and one of a simulated task."""
    artifacts = Artifacts(tmp_path / "mergemill-store" / "artifacts")
    with Store.open(make_url(tmp_path)) as store:
        real, other = add_lineage(store, 1), add_lineage(store, 2)
        simulated = other.model_copy(
            update={"kind": Kind.SIMULATED, "environment": "simulated", "image": "", "name": "ada__greet-2.simulated"}
        )
        simulated = Task.model_validate(simulated.model_dump())
        store.add(simulated)
        for number in (1, 2):
            for text in (f"gold ada__greet-{number}", f"test ada__greet-{number}"):
                artifacts.put_text(text)
        for task in (real, simulated):
            add_rollout(store, artifacts, task, 1, token_ids=True)
        measure(store, real, wrong=35, paid=0, simulator="true")
        measure(store, real, wrong=35, paid=5, simulator="false")
    return tmp_path


def export_trajectories(folder: Path, *words: str) -> CommandResult:
    given = ("--out", "out", "--unselected", "--db", make_url(folder), "--json")
    return run_mergemill("trajectories", "export", *given, *words, cwd=folder)


def read_environments(folder: Path) -> list[str]:
    lines = (folder / "out" / "train.jsonl").read_text().splitlines()
    return sorted(json.loads(line)["metadata"]["environment"] for line in lines)


def test_simulated_rows_are_among_real_ones_only_where_that_is_wanted(mixed: Path) -> None:
    done = export_trajectories(mixed, "--format", "messages")
    assert done.exit_code == 0, done.stderr
    assert done.json["left_out"] == {"their tasks are simulated; --with-simulated exports them, too": 1}
    assert read_environments(mixed) == ["verified"]
    card = (mixed / "out" / "README.md").read_text()
    assert "the task is of a merged change" in card
    assert "- simulated" not in card
    assert "1 row left out: their tasks are simulated" in card


def test_simulated_rows_and_the_card_say_that_they_are(mixed: Path) -> None:
    done = export_trajectories(mixed, "--format", "messages", "--with-simulated")
    assert done.exit_code == 0, done.stderr
    assert read_environments(mixed) == ["simulated", "verified"]
    card = (mixed / "out" / "README.md").read_text()
    assert "- simulated" in card
    assert "nothing was run, and the reward is an estimate" in card
    assert "| `simulated` | 1 |" in card


@pytest.mark.parametrize(
    ("words", "code", "line"),
    [
        ((), 0, ""),
        (("--with-simulated",), 2, "name it with --simulator"),
        (("--with-simulated", "--simulator", "never"), 3, "the simulator never was never measured"),
        (("--with-simulated", "--simulator", "false"), 3, "may pay up to"),
        (("--with-simulated", "--simulator", "true"), 0, ""),
    ],
)
def test_rewards_of_a_simulator_are_exported_for_training_once_it_was_measured(
    mixed: Path, words: tuple[str, ...], code: int, line: str
) -> None:
    done = export_trajectories(mixed, "--format", "parquet", *words)
    assert (done.exit_code, line in done.stderr, (mixed / "out").exists()) == (code, True, code == 0), done.stderr


def test_simulated_rows_alone_are_named(mixed: Path) -> None:
    done = export_trajectories(mixed, "--format", "messages", "--kind", "simulated")
    assert done.exit_code == 3
    assert "1 are of simulated tasks: --with-simulated exports them" in done.stderr

"""Rollouts of scenarios in the commands on rollouts: never among those of tasks unless they are named."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
import yaml

from taskdb.artifacts import Artifacts
from taskdb.store import Store
from tests.cli import CommandResult, run_mergemill
from tests.samplers.stored import add_rollout, make_database
from tests.samplers.worlds.database import add_world
from tests.taskdb.lineages import make_url
from worlds.examples.loading import load_example_scenarios, load_example_world

WORLD = "library_loans"
BUSY, VISIT = "library_loans.busy_morning", "library_loans.school_visit"
SYNTHETIC = ("--environment", "synthetic")
CALLS = b'[{"tool": "pay_fine", "arguments": {"member_id": "M-%d"}}]'


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Folder with rollouts of two tasks and of two scenarios; a third scenario has none and is not certified."""
    folder = tmp_path_factory.mktemp("rollouts")
    make_database(folder)
    artifacts = Artifacts(folder / "mergemill-store" / "artifacts")
    with Store.open(make_url(folder)) as store:
        busy, visit = add_world(store, artifacts, load_example_world(WORLD), load_example_scenarios(WORLD))
        other = load_example_world("parcel_depot")
        add_world(store, artifacts, other, load_example_scenarios("parcel_depot")[:1], certified=False)
        given: dict[str, Any] = {"environment": "synthetic", "scaffold": "tools"}
        failed = (("pay", '{"success": false, "error": "no"}'), ("look", "{}"))
        for attempt, value in ((1, 1.0), (2, 1.0), (3, 0.5), (4, 0.0)):
            add_rollout(store, artifacts, busy, attempt, value=value, patch=CALLS % attempt, **given)  # type: ignore[arg-type]
        add_rollout(store, artifacts, visit, 1, commands=failed, patch=CALLS % 1, token_ids=True, **given)  # type: ignore[arg-type]
        add_rollout(store, artifacts, visit, 2, value=None, status="infrastructure", **given)  # type: ignore[arg-type]
    return folder


def run(folder: Path, *words: str) -> CommandResult:
    done = run_mergemill(*words, "--db", make_url(folder), cwd=folder)
    assert "Traceback" not in done.stderr
    return done


def list_names(folder: Path, *words: str) -> set[tuple[str, str]]:
    return {(row["name"], row["environment"]) for row in run(folder, "trajectories", "list", "--json", *words).lines}


def test_lists_have_one_environment_unless_others_are_named(folder: Path) -> None:
    ours = {(BUSY, "synthetic"), (VISIT, "synthetic")}
    default = list_names(folder)
    assert {environment for _, environment in default} == {"verified"}
    assert list_names(folder, *SYNTHETIC) == list_names(folder, "--world", WORLD) == ours
    assert list_names(folder, "--environment", "verified,synthetic") == default | ours
    assert list_names(folder, "--environment", "simulated") == set()
    assert list_names(folder, "--kind", "bugfix") == default
    assert list_names(folder, "--kind", "bugfix", "--environment", "verified") == default
    assert list_names(folder, "--world", "parcel_depot") == set()


def test_a_selection_looks_at_one_environment(folder: Path) -> None:
    tasks = run(folder, "trajectories", "select", "--json").lines
    assert tasks[-1]["trajectories"] == 6
    *counts, summary = run(folder, "trajectories", "select", *SYNTHETIC, "--json").lines
    effects = {row["rule"]: (row["before"], row["after"]) for row in counts}
    assert summary == {"event": "summary", "trajectories": 6, "selected": 2, "held_out": 0}
    assert effects["unscored"] == (6, 5)
    assert effects["reward"] == (5, 3)
    assert effects["tool_errors"] == (3, 2)  # half of its calls failed
    assert effects["test_only_patch"] == (3, 3)
    capped = run(folder, "trajectories", "select", *SYNTHETIC, "--per-task", "1", "--json").lines
    assert capped[-1]["selected"] == 1
    run(folder, "trajectories", "select", *SYNTHETIC)


def test_pass_rates_have_the_mean_reward_and_the_solution(folder: Path) -> None:
    assert {row["environment"] for row in run(folder, "difficulty", "--json").lines} == {"verified"}
    rows = {row["name"]: row for row in run(folder, "difficulty", *SYNTHETIC, "--json").lines}
    busy, visit = rows[BUSY], rows[VISIT]
    assert (busy["n"], busy["c"], busy["mean_value"], busy["band"]) == (4, 2, 0.625, "edge")
    assert (busy["n_calls"], busy["n_tools"], busy["query_share"]) == (6, 5, 0.0)
    assert (visit["n"], visit["c"], visit["mean_value"]) == (1, 1, 1.0)
    (total,) = run(folder, "difficulty", "--world", WORLD, "--total", "--json").lines
    assert (total["scaffold"], total["n"], total["mean_value"]) == ("tools", 5, 0.7)
    assert total["environments"] == {"synthetic": 2}
    assert (total["tasks"], total["families"], total["mean"], total["low"]) == (2, 1, 0.75, None)  # of one world
    mixed = run(folder, "difficulty", "--environment", "verified,synthetic")
    assert BUSY in mixed.stdout
    assert "query_share" in mixed.stdout
    assert run(folder, "difficulty", *SYNTHETIC, "--saturation", "subsets").exit_code == 2


@pytest.mark.parametrize("format_name", ["messages", "sharegpt", "parquet", "atif"])
def test_rows_and_card_name_the_environment(folder: Path, tmp_path: Path, format_name: str) -> None:
    words = ("trajectories", "export", "--format", format_name, "--unselected", "--json")
    only = run(folder, *words, "--out", str(tmp_path / "worlds"), "--world", WORLD)
    assert only.exit_code == 0, only.stderr
    mixed = run(folder, *words, "--out", str(tmp_path / "mixed"), "--environment", "verified,synthetic")
    tasks = run(folder, *words, "--out", str(tmp_path / "tasks"))
    if format_name == "parquet":  # no rollout of a task has token ids
        assert (only.json["rows"], mixed.json["rows"]) == (1, 1)
    else:
        assert tasks.exit_code == 0
        assert only.json["rows"] == 5  # those with a value
        assert mixed.json["rows"] == only.json["rows"] + tasks.json["rows"]
        assert {row["environment"] for row in read_rows(tmp_path / "tasks", format_name)} == {"verified"}
    rows = read_rows(tmp_path / "worlds", format_name)
    assert {(row["environment"], row["repo"], row["license"]) for row in rows} == {("synthetic", WORLD, "Apache-2.0")}
    front = read_front(tmp_path / "worlds")
    assert (front["environment"], front["pretty_name"]) == (
        ["synthetic"],
        "Trajectories of agents in synthesised tool environments",
    )
    card = (tmp_path / "worlds" / "README.md").read_text()
    assert "| `synthetic` |" in card
    assert "verified" not in card
    manifest = json.loads((tmp_path / "worlds" / "manifest.json").read_text())
    assert {trajectory["environment"] for trajectory in manifest["trajectories"]} == {"synthetic"}
    if format_name != "parquet":
        assert read_front(tmp_path / "mixed")["environment"] == ["synthetic", "verified"]
        assert "synthetic" not in (tmp_path / "tasks" / "README.md").read_text()


def read_rows(folder: Path, format_name: str) -> list[dict[str, Any]]:
    if format_name == "parquet":
        import pyarrow.parquet as pq  # noqa: PLC0415 - for one format

        return list(pq.read_table(folder / "data").to_pylist())
    if format_name == "atif":
        return [json.loads(path.read_text())["extra"] for path in sorted((folder / "trajectories").iterdir())]
    return [json.loads(line) for line in (folder / "train.jsonl").read_text().splitlines()]


def read_front(folder: Path) -> dict[str, Any]:
    front: dict[str, Any] = yaml.safe_load((folder / "README.md").read_text().split("---\n")[1])
    return front


def test_a_trajectory_of_a_scenario_is_shown(folder: Path) -> None:
    row = run(folder, "trajectories", "list", *SYNTHETIC, "--role", "main", "--json").lines[0]
    shown = run(folder, "trajectories", "show", row["rollout"], "--json").json
    assert (shown["id"], shown["environment"], shown["name"]) == (row["id"], "synthetic", BUSY)


def test_views_name_the_environment(folder: Path) -> None:
    query = "SELECT environment, kind, repo, count(*) AS n FROM rollouts GROUP BY environment, kind, repo ORDER BY 1"
    rows = run(folder, "sql", query, "--json").lines
    assert rows[0] == {"environment": "synthetic", "kind": "scenario", "repo": WORLD, "n": 6}
    assert {row["environment"] for row in rows} == {"synthetic", "verified"}


@pytest.mark.parametrize(
    ("words", "exit_code", "message"),
    [
        (("trajectories", "list", "--environment", "real"), 2, "--environment: real is unknown"),
        (("trajectories", "list", *SYNTHETIC, "--language", "python"), 2, "filters of tasks select no scenarios"),
        (("trajectories", "list", "--world", WORLD, "--environment", "verified"), 2, "--world selects synthetic"),
        (("difficulty", "--world", "atlantis"), 3, "there is no world atlantis"),
        (("sample", "--scaffold", "tools"), 2, "--scaffold tools is for scenarios (add --environment synthetic)"),
        (("sample", "--scaffold", "react", *SYNTHETIC), 2, "--scaffold: react is unknown for scenarios"),
        (("sample", "--scaffold", "tools", *SYNTHETIC), 2, "--model is missing"),
        (("sample", "--scaffold", "dialogue", *SYNTHETIC, "--model", "m"), 2, "a conversation needs a user"),
        (("sample", "--scaffold", "noop", "--user", "scripted"), 2, "--user is for scenarios"),
        (("sample", "--scaffold", "noop", *SYNTHETIC, "--kind", "bugfix"), 2, "filters of tasks select no scenarios"),
        (("sample", "--scaffold", "noop", "--environment", "none,synthetic"), 2, "tasks and scenarios are sampled by"),
        (("sample", "--scaffold", "noop", "--world", "atlantis"), 3, "there is no world atlantis"),
        (("sample", "--scaffold", "noop", *SYNTHETIC, "--only", "x.y"), 3, "there is no scenario x.y"),
        (("sample", "--scaffold", "noop", "--world", "parcel_depot"), 3, "no certified scenario is selected"),
        (
            ("sample", "--scaffold", "noop", *SYNTHETIC, "--only", "parcel_depot.full_shelf"),
            3,
            "parcel_depot.full_shelf is not certified",
        ),
    ],
)
def test_mistakes_are_one_line(folder: Path, words: tuple[str, ...], exit_code: int, message: str) -> None:
    done = run(folder, *words)
    assert (done.exit_code, done.stderr.count("\n")) == (exit_code, 1), done.stderr
    assert message in done.stderr

"""`mergemill trajectories` and `mergemill difficulty` as commands, on a database with rollouts."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.cli import CommandResult, run_mergemill
from tests.samplers.stored import make_database


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("rollouts")
    make_database(folder)
    return folder


def run(folder: Path, *words: str, **variables: str) -> CommandResult:
    done = run_mergemill(*words, "--db", f"sqlite:///{folder}/m.db", cwd=folder, **variables)
    assert "Traceback" not in done.stderr
    return done


def test_selection_prints_each_rule_and_lists_show_what_was_selected(folder: Path) -> None:
    done = run(folder, "trajectories", "select", "--json")
    assert done.exit_code == 0
    *counts, summary = done.lines
    effects = {row["rule"]: (row["before"], row["after"], row["alone"]) for row in counts}
    assert effects["unscored"] == (6, 5, 1)
    assert effects["reward"] == (5, 4, 1)
    assert effects["tool_errors"] == (4, 3, 1)  # a lucky pass: half of its calls failed, and its reward is 1
    assert effects["repeats"] == (3, 2, 0)
    assert effects["loops"] == (2, 2, 0)
    assert effects["duplicate"] == (2, 1, 1)
    assert summary == {"event": "summary", "trajectories": 6, "selected": 1, "held_out": 0}
    rows = run(folder, "trajectories", "list", "--selected", "--json").lines
    assert [(row["attempt"], row["role"]) for row in rows] == [(1, "side"), (1, "main")]
    assert rows[1].keys() >= {
        "id",
        "rollout",
        "task",
        "scaffold",
        "model",
        "attempt",
        "value",
        "n_requests",
        "selected",
    }
    refused = run(
        folder, "trajectories", "list", "--role", "main", "--not-selected", "--min-value", "1", "--json"
    ).lines
    assert {row["attempt"]: row["refused_by"] for row in refused} == {2: "tool_errors", 3: "repeats", 5: "duplicate"}


def test_a_limit_is_an_option_and_a_variable(folder: Path) -> None:
    strict = run(folder, "trajectories", "select", "--select-tool-errors", "0.5", "--scaffold", "react", "--json").lines
    assert strict[-1]["selected"] == 2
    by_variable = run(folder, "trajectories", "select", "--json", MERGEMILL_SELECT_TOOL_ERRORS="0.5")
    assert by_variable.lines[-1]["selected"] == 2


def test_a_trajectory_is_shown_by_its_own_id_or_its_rollouts(folder: Path) -> None:
    [row] = run(folder, "trajectories", "list", "--scaffold", "codex", "--role", "main", "--json").lines
    by_rollout = run(folder, "trajectories", "show", row["rollout"][:16], "--json").json
    assert by_rollout["id"] == row["id"]
    assert [message["role"] for message in by_rollout["conversations"][0]] == [
        "system",
        "user",
        "assistant",
        "tool",
        "assistant",
    ]
    assert by_rollout["states"] == {
        "steps": 3,
        "unchanged": 1,
        "unchanged_share": round(1 / 3, 6),
        "returns": 1,
        "return_share": round(1 / 3, 6),
    }
    other, *_ = run(folder, "trajectories", "list", "--role", "main", "--scaffold", "react", "--json").lines
    assert run(folder, "trajectories", "show", other["id"], "--json").json["states"] is None
    shown = run(folder, "trajectories", "show", row["id"][:16]).stdout
    assert '> bash {"command": "ls"}' in shown
    assert "--- tool\ngreet.py" in shown


@pytest.mark.parametrize(
    ("words", "exit_code", "message"),
    [
        (("show", "abc123"), 3, "there is no trajectory or rollout abc123"),
        (("list", "--role", "boss"), 2, "--role: boss is unknown"),
        (("select", "--mix", "react"), 2, "--mix: 'react' is no share"),
        (("select", "--mix", "react=inf"), 2, "--mix: 'react=inf' is no share"),
        (("select", "--rubric", "no-such-file"), 3, "cannot read the rubric"),
    ],
)
def test_mistakes_are_one_line(folder: Path, words: tuple[str, ...], exit_code: int, message: str) -> None:
    done = run(folder, "trajectories", *words)
    assert done.exit_code == exit_code
    assert message in done.stderr
    assert done.stderr.count("\n") == 1


@pytest.mark.parametrize(
    ("row", "message"),
    [
        ('{"tasks": 10}', "needs `tasks` and `score`"),
        ('{"tasks": 1e400, "score": 0.5}', "needs `tasks` and `score`"),
        ('{"tasks": 10, "score": NaN}', "nan is no score"),
        ('{"tasks": 10, "score": 1e308}', "1e+308 is no score"),
    ],
)
def test_a_score_that_is_none_is_named_by_its_line(folder: Path, tmp_path: Path, row: str, message: str) -> None:
    whole = [f'{{"tasks": {n}, "score": 0.5}}' for n in (1, 2, 3, 4)]
    (tmp_path / "scores.jsonl").write_text("\n".join([*whole, row]))
    done = run(folder, "difficulty", "--scores", str(tmp_path / "scores.jsonl"))
    assert (done.exit_code, done.stdout, done.stderr.count("\n")) == (3, "", 1)
    assert f"line 5: {message}" in done.stderr


def test_difficulty_is_by_task_and_in_total(folder: Path) -> None:
    rows = run(folder, "difficulty", "--json").lines
    assert [(row["scaffold"], row["n"], row["c"], row["band"]) for row in rows] == [
        ("codex", 1, 0, "unknown"),
        ("react", 4, 4, "always"),
    ]
    [total] = run(folder, "difficulty", "--total", "--scaffold", "react", "--json").lines
    assert (total["tasks"], total["n"], total["pass_at"]["4"]) == (1, 4, 1.0)
    assert (total["families"], total["mean"], total["low"], total["high"]) == (1, 1.0, None, None)
    assert run(folder, "difficulty", "--band", "edge", "--json").lines == []


def test_nested_subsets_are_files_of_ids_and_scores_give_a_curve(folder: Path, tmp_path: Path) -> None:
    rows = run(folder, "difficulty", "--saturation", str(tmp_path / "subsets"), "--json").lines
    whole = next(row for row in rows if row["dimension"] == "all" and row["share"] == "1")
    assert whole["tasks"] == 2
    ids = (tmp_path / "subsets" / whole["file"]).read_text().split()
    assert run(folder, "tasks", "list", "--ids", str(tmp_path / "subsets" / whole["file"]), "--count").stdout == "2\n"
    assert len(ids) == 2
    scores = tmp_path / "scores.jsonl"
    scores.write_text("".join(f'{{"tasks": {n}, "score": {0.5 - 1 / n}}}\n' for n in (10, 20, 40, 80, 160)))
    curve = run(folder, "difficulty", "--scores", str(scores), "--json").json
    assert curve["limit"] == pytest.approx(0.5, abs=0.001)
    assert curve["is_flat"]
    scores.write_text(json.dumps({"tasks": 10}))
    assert run(folder, "difficulty", "--scores", str(scores)).exit_code == 3

"""Simulated conversations in the task database: what a run adds, and rows that are made of it again."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import pytest

from taskdb.queries import readonly
from taskdb.store import Store
from tests.cli import CommandResult, run_mergemill
from tests.samplers.scripted_model import ModelRequest, ScriptedModel, Turn
from tests.simulators.making import answer_well, find_case, is_verdict, read_lines, simulate, write_seeds

N_SEEDS, N_SAMPLES = 3, 2
WORDS = ("--per-seed", str(N_SAMPLES), "--out", "sft", "--seeds-license", "MIT")


def answer_with_faults(request: ModelRequest) -> Turn:
    """Seed 0 is incomplete, and conversations of seed 1 call an unknown tool."""
    if is_verdict(request) and find_case(request) == 0:
        verdict = json.loads(answer_well(request).text)
        return Turn(text=json.dumps({**verdict, "completeness": {**verdict["completeness"], "holds": False}}))
    turn = answer_well(request)
    if not is_verdict(request) and find_case(request) == 1:
        return Turn(text=turn.text.replace("get_order_details", "look_up_order"))
    return turn


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The run, twice into one folder and once into another."""
    folder = tmp_path_factory.mktemp("database")
    write_seeds(folder / "seeds.json", range(N_SEEDS))
    (folder / "copy").mkdir()
    write_seeds(folder / "copy" / "again.json", range(N_SEEDS))
    with ScriptedModel(answer_with_faults) as model:
        first = simulate(folder, model, *WORDS)
        assert (first.exit_code, first.lines[-1]["new"], first.lines[-1]["kept"]) == (0, 5, 2), first.stderr
        n_requests = len(model.requests)
        again = simulate(folder, model, *WORDS)
        assert (again.lines[-1]["new"], again.lines[-1]["kept"], len(model.requests)) == (0, 2, n_requests)
        elsewhere = simulate(folder, model, *WORDS[:2], "--out", "sft2", *WORDS[4:], seeds="copy/again.json")
        assert (elsewhere.lines[-1]["new"], elsewhere.lines[-1]["kept"]) == (0, 2)  # the scripted model repeats itself
    return folder


def query(folder: Path, statement: str) -> list[dict[str, Any]]:
    with Store.open(f"sqlite:///{folder}/mergemill.db") as store:
        return list(readonly.run_query(store, statement))


def test_a_run_stores_conversations_and_rejections_once(folder: Path) -> None:
    lines = read_lines(folder / "sft" / "trajectories.jsonl")
    rows = query(folder, "SELECT * FROM simulated_conversations ORDER BY sample")
    assert [row["trajectory"] for row in rows] == [line["id"] for line in lines]
    assert {(row["environment"], row["domain"], row["license"]) for row in rows} == {("simulated", "retail", "MIT")}
    assert [row["seed"] for row in rows] == [line["parent"] for line in lines]
    assert [(row["n_turns"], row["n_calls"]) for row in rows] == [
        (len(line["turns"]), sum(len(turn.get("calls", ())) for turn in line["turns"])) for line in lines
    ]
    rejected = query(folder, "SELECT name, step, reason, detail FROM simulation_rejections ORDER BY step, name")
    dropped = read_lines(folder / "sft" / "dropped.jsonl")
    (unused,) = [line for line in read_lines(folder / "sft" / "seeds.jsonl") if not line["used"]]
    assert sorted(tuple(row.values()) for row in rejected) == sorted(
        [
            *((line["name"], line["step"], line["reason"], line["detail"]) for line in dropped),
            (unused["id"], "pre-filter", "seed-incomplete", unused["detail"]),
        ]
    )


def test_funnel_has_the_counts_of_the_run(folder: Path) -> None:
    rows = run_mergemill("funnel", "--of", "simulations", "--json", cwd=folder).lines
    assert rows[0] == {"step": "pre-filter", "in": 3, "out": 2, "rejected": {"seed-incomplete": 1}}
    counted = {row["step"]: row for row in rows}
    assert counted["4 tools"] == {"step": "4 tools", "in": 4, "out": 2, "rejected": {"unknown-tool": 2}}
    assert (rows[1]["in"], rows[-1]["out"]) == (4, 2)
    assert run_mergemill("funnel", "airline", "--of", "simulations", "--json", cwd=folder).lines[0]["in"] == 0


def test_why_finds_a_conversation_by_what_the_files_call_it(folder: Path) -> None:
    dropped = read_lines(folder / "sft" / "dropped.jsonl")[0]
    kept = read_lines(folder / "sft" / "sharegpt" / "train.jsonl")[0]
    story = run_mergemill("why", dropped["name"], "--json", cwd=folder).json
    assert [(event["step"], event["reason"]) for event in story["events"]] == [("4 tools", "unknown-tool")]
    for word in (kept["id"], kept["id"][:12], kept["metadata"]["answer"]):
        assert run_mergemill("why", word, "--json", cwd=folder).json["events"][0]["ok"], word
    of_seed = run_mergemill("why", kept["based_on_sample"], cwd=folder).stdout
    assert of_seed.startswith(f"{kept['based_on_sample']} (environment: simulated): 2 of 2 conversations kept\n")


def test_rows_from_the_database_are_those_of_the_run(folder: Path) -> None:
    done = export(folder, "all", "--json")
    assert done.json["rows"] == {"sharegpt": 2, "sharegpt-hermes": 2, "messages": 2, "parquet": 2}, done.stderr
    assert (done.json["environment"], done.json["licenses"]) == ("simulated", {"MIT": 2})
    for name in ("sharegpt", "sharegpt-hermes", "messages"):
        assert read_rows(folder / "all" / name) == read_rows(folder / "sft" / name)
    table = "parquet/data/train-00000-of-00001.parquet"
    tables = [pq.read_table(folder / config / table).sort_by("id") for config in ("all", "sft")]
    assert tables[0] == tables[1]
    card = (folder / "all" / "messages" / "README.md").read_text()
    assert "environment: simulated" in card
    assert "| 4 tools | 4 | - | 2 | 2 |" in card
    assert "selected by" not in card


def export(folder: Path, out: str, *words: str) -> CommandResult:
    return run_mergemill("simulate", "export", "--out", out, *words, cwd=folder)


def read_rows(folder: Path) -> dict[str, Any]:
    return {row["id"]: row for row in read_lines(folder / "train.jsonl")}


def test_a_selection_is_written_and_named_on_the_card(folder: Path) -> None:
    done = export(folder, "some", "--per-seed", "1", "--license", "MIT", "--format", "messages")
    assert done.exit_code == 0, done.stderr
    assert done.stdout == "1 conversation in some (rows: messages 1; environment: simulated)\n"
    assert "| selected by | license: MIT; per_seed: 1 |" in (folder / "some" / "messages" / "README.md").read_text()
    listed = run_mergemill("simulate", "list", "--per-seed", "1", "--json", cwd=folder).lines
    assert [row["trajectory"] for row in listed] == list(read_rows(folder / "some" / "messages"))
    for other in (["--license", "GPL-3.0-only"], ["--domain", "airline"], ["--profile", "simia"]):
        refused = export(folder, "none", *other)
        assert refused.exit_code == 3
        assert refused.stderr.startswith("mergemill: no simulated conversation matches (")
    assert export(folder, "some").exit_code == 3
    assert export(folder, "none", "--format", "parket").exit_code == 2


def test_domains_are_not_mixed_in_an_export(folder: Path, tmp_path: Path) -> None:
    write_seeds(tmp_path / "seeds.json", range(1))
    copy_pack(tmp_path / "own")
    with ScriptedModel(answer_well) as model:
        for domain in ("retail", "own"):
            words = ("--domain", "./own" if domain == "own" else domain, "--per-seed", "1", "--out", f"sft-{domain}")
            assert simulate(tmp_path, model, *words).exit_code == 0
    refused = export(tmp_path, "both")
    assert refused.exit_code == 2
    assert refused.stderr == (
        "mergemill: conversations of several values of domain match: own, retail (choose: --domain)\n"
    )
    # the pack was kept with the conversations, so it may change or go
    (tmp_path / "own" / "policy.md").unlink()
    assert export(tmp_path, "alone", "--domain", "own", "--format", "messages").exit_code == 0
    (row,) = read_lines(tmp_path / "alone" / "messages" / "train.jsonl")
    assert row["messages"][0]["content"] == "Own policy."


def copy_pack(target: Path) -> None:
    """Make a pack with the tools of `retail` and a policy of its own."""
    import simulators.domains.pack as packs  # noqa: PLC0415 - for its folder

    target.mkdir()
    (target / "tools.json").write_text((packs.PACKS_FOLDER / "retail" / "tools.json").read_text())
    (target / "policy.md").write_text("Own policy.\n")


def test_show_prints_the_turns(folder: Path) -> None:
    (line, _) = read_lines(folder / "sft" / "trajectories.jsonl")
    shown = run_mergemill("simulate", "show", line["id"][:12], "--json", cwd=folder).json
    assert (shown["turns"], shown["trajectory"]) == (line["turns"], line["id"])
    text = run_mergemill("simulate", "show", shown["name"], cwd=folder).stdout
    assert "environment   simulated\n" in text
    assert f"HUMAN: {line['turns'][0]['text']}\n" in text


def test_a_run_without_its_database_adds_all_again_and_pays_nothing(tmp_path: Path) -> None:
    write_seeds(tmp_path / "seeds.json", range(1))
    with ScriptedModel(answer_well) as model:
        assert simulate(tmp_path, model, *WORDS).lines[-1]["new"] == N_SAMPLES
        n_requests = len(model.requests)
        for path in tmp_path.glob("mergemill.db*"):
            path.unlink()
        assert simulate(tmp_path, model, *WORDS).lines[-1]["new"] == N_SAMPLES
        assert len(model.requests) == n_requests


def test_a_database_that_cannot_be_written_ends_a_run_before_anything_is_paid(tmp_path: Path) -> None:
    write_seeds(tmp_path / "seeds.json", range(1))
    (tmp_path / "m.db").write_text("no database")
    with ScriptedModel(answer_well) as model:
        done = simulate(tmp_path, model, *WORDS, "--db", "sqlite:///m.db")
        assert (done.exit_code, model.requests) == (3, [])
    assert "is not a database" in done.stderr

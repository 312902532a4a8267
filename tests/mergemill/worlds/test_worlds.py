"""`mergemill worlds list|show|why`, and `funnel` and `why` of worlds, as a user calls them."""

from __future__ import annotations

from pathlib import Path

import pytest

from taskdb.artifacts import Artifacts
from taskdb.records.worlds import ScenarioCertificate, World, WorldStep
from taskdb.store import Store
from tests.cli import run_mergemill
from tests.taskdb.lineages import add_lineage
from tests.taskdb.worlds import CHECK, SOLUTION, TOOL, add_library, make_world, reject


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with a database of a task and of a certified, a rejected and a waiting world."""
    folder = tmp_path_factory.mktemp("worlds")
    artifacts = Artifacts(folder / "mergemill-store" / "artifacts")
    with Store.open(f"sqlite:///{folder}/mergemill.db") as store:
        add_lineage(store)
        library = add_library(store, artifacts)
        texts = {name: getattr(library, name) for name in ("program", "documentation", "states", "tools")}
        clinic = make_world(name="clinic", license="Apache-2.0", n_tools=20, **texts)
        log = artifacts.put_text("find(id='x') changed books\n")
        store.add(clinic, make_world(name="depot", **texts))
        store.add(reject(clinic.id, "clinic", WorldStep.ASSESS, detail="find", log=log))
    return folder


def test_list_prints_keys_that_scripts_depend_on(folder: Path) -> None:
    done = run_mergemill("worlds", "list", "--json", cwd=folder)
    assert [line["name"] for line in done.lines] == ["clinic", "depot", "library_loans"]
    assert list(done.lines[2].items())[1:] == [
        ("name", "library_loans"),
        ("origin", "synthesised"),
        ("environment", "synthetic"),
        ("source", "tasks.jsonl"),
        ("license", "MIT"),
        ("status", "certified"),
        ("reason", None),
        ("n_tools", 16),
        ("n_queries", 7),
        ("n_changes", 9),
        ("rounds", 100),
        ("pass_rate", 0.84),
        ("score", 0.85),
        ("scenarios", 1),
        ("certified_scenarios", 1),
    ]


@pytest.mark.parametrize(
    ("words", "names"),
    [
        ("--status rejected,waiting", ["clinic", "depot"]),
        ("--origin written --license MIT", ["depot"]),
        ("--min-score 0.85", ["library_loans"]),
        ("--name cli --limit 1", ["clinic"]),
        ("--min-tools 17", ["clinic"]),
    ],
)
def test_list_takes_filters(folder: Path, words: str, names: list[str]) -> None:
    done = run_mergemill("worlds", "list", "--json", *words.split(), cwd=folder)
    assert (done.exit_code, [line["name"] for line in done.lines]) == (0, names), done.stderr


def test_show_prints_a_world_with_certificate_tools_and_scenarios(folder: Path) -> None:
    shown = run_mergemill("worlds", "show", "library_loans", "--json", cwd=folder).json
    assert (shown["status"], shown["environment"], shown["tools"]) == ("certified", "synthetic", [TOOL])
    assert (shown["certificate"]["pass_rate"], shown["certificate"]["score"]) == (0.84, 0.85)
    assert [scenario["name"] for scenario in shown["scenarios"]] == ["library_loans.busy_morning"]
    assert set(World.model_fields) <= set(shown)
    text = run_mergemill("worlds", "show", shown["id"][:12], cwd=folder).stdout
    for part in ("Members borrow books.", "lend_book", "0.85", "changes", "library_loans.busy_morning"):
        assert part in text
    assert "Only to members" not in text
    assert run_mergemill("worlds", "show", "clinic", "--program", cwd=folder).stdout == "class Library: ...\n"


def test_show_prints_a_scenario_with_task_checks_and_solution(folder: Path) -> None:
    shown = run_mergemill("worlds", "show", "library_loans.busy_morning", "--json", cwd=folder).json
    assert (shown["task"], shown["checks"], shown["solution"]) == ("Lend three books.", [CHECK], SOLUTION)
    assert set(ScenarioCertificate.model_fields) <= set(shown["certificate"])
    text = run_mergemill("worlds", "show", "library_loans.busy_morning", cwd=folder).stdout
    for part in ("Lend three books.", "Has lent the book", "lend_book", "book_id: b1", "synthetic"):
        assert part in text


def test_why_follows_a_world_and_prints_the_log_of_its_rejection(folder: Path) -> None:
    story = run_mergemill("worlds", "why", "clinic", "--json", cwd=folder).json
    assert story == run_mergemill("why", "clinic", "--json", cwd=folder).json
    assert [(event["step"], event["reason"]) for event in story["events"]] == [
        ("build", None),
        ("assess", "query-mutates"),
    ]
    text = run_mergemill("why", "clinic", cwd=folder).stdout
    assert text.startswith("clinic of tasks.jsonl (environment: synthetic): rejected by assess, query-mutates\n")
    assert run_mergemill("why", "clinic", "--log", cwd=folder).stdout == "find(id='x') changed books\n"
    certified = run_mergemill("why", "library_loans.busy_morning", cwd=folder).stdout
    assert "library_loans.busy_morning of tasks.jsonl (environment: synthetic): certified\n" in certified


def test_funnel_counts_worlds_apart_from_changes(folder: Path) -> None:
    rows = run_mergemill("funnel", "--of", "worlds", "--json", cwd=folder).lines
    assert [(row["step"], row["in"], row["out"], row["waiting"]) for row in rows] == [
        ("discover", 1, 1, 0),
        ("build", 1, 1, 0),
        ("assess", 3, 1, 1),
        ("scenarios", 1, 1, 0),
    ]
    text = run_mergemill("funnel", "--of", "worlds", cwd=folder).stdout
    assert "query-mutates" in text
    assert "clinic" in text
    assert run_mergemill("funnel", "--json", cwd=folder).lines[0]["in"] == 1
    assert len(run_mergemill("tasks", "list", "--json", cwd=folder).lines) == 1


@pytest.mark.parametrize(
    ("words", "code", "message"),
    [
        ("worlds show nothing", 3, "there is no world or scenario nothing"),
        ("worlds why nothing", 3, "there is no seed task, theme, world or scenario nothing"),
        ("why nothing", 3, "there is no change nothing"),
        ("why library_loans --log", 3, "library_loans has no log of a rejection"),
        ("why library_loans --conversation", 2, "library_loans is no change"),
        ("worlds show library_loans.busy_morning --program", 2, "has no program (name its world)"),
        ("worlds list --status certifed", 2, "--status: certifed is unknown (of waiting, certified, rejected)"),
        ("worlds list --origin me", 2, "--origin: me is unknown"),
        ("worlds list --min-score 2", 2, "--min-score"),
        ("worlds nothing", 2, "No such command"),
        ("funnel --of worlds --by repo", 2, "--by is for changes"),
        ("funnel --of simulations --repo a/b", 2, "--repo is for changes"),
        ("worlds list --db sqlite:///none.db", 3, "there is no database none.db"),
    ],
)
def test_mistakes_get_one_line(folder: Path, words: str, code: int, message: str) -> None:
    done = run_mergemill(*words.split(), cwd=folder)
    assert done.exit_code == code, done.stderr
    assert message in done.stderr
    assert len(done.stderr.strip().splitlines()) == 1
    assert done.stdout == ""


def test_a_world_without_its_artifacts_is_one_line(folder: Path) -> None:
    done = run_mergemill("worlds", "show", "library_loans", "--store", "elsewhere", cwd=folder)
    assert done.exit_code == 3
    assert "is missing or damaged in elsewhere" in done.stderr

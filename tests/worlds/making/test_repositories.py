"""Discovery from the repositories of the task database: README of a base tree, else problem statements; licences."""

from __future__ import annotations

from pathlib import Path

from taskdb.records import Stage
from taskdb.store import Store
from tests.cli import run_mergemill
from tests.sample import make_sample
from tests.taskdb.lineages import add_lineage
from tests.worlds.making.answers import find_kind, open_scripted_model, read_prompt
from tests.worlds.making.running import count_reasons, list_records, make_worlds

STATEMENTS = {
    "acme/depot": ("Parcels are lost when a courier ends the tour", "MIT"),
    "acme/rota": ("The clinic's night shift is published twice", "GPL-3.0-only"),
    "acme/shelf": ("A library member cannot renew a loan", "Apache-2.0"),
    "acme/lint": ("A rule of the linter crashes", "MIT"),
}


def fill(folder: Path) -> None:
    """Write a database with a candidate of each repository."""
    with Store.open(f"sqlite:///{folder}/mergemill.db") as store:
        for number, (repo, (statement, license_id)) in enumerate(STATEMENTS.items(), 1):
            add_lineage(store, number, to=Stage.BUILD, repo=repo, problem_statement=statement, license=license_id)


def test_each_repository_gives_a_seed_task_under_its_licence(tmp_path: Path) -> None:
    fill(tmp_path)
    with open_scripted_model() as model:
        done = make_worlds("discover", tmp_path, model, "--tasks", "swe", "--licenses", "MIT,Apache-2.0")
        assert done.exit_code == 0, done.stderr
        (step,) = done.lines[-1]["steps"]
        assert (step["found"], step["kept"], step["left"]) == (4, 2, 0)
        assert step["rejected"] == {"license": 1, "no-domain": 1}
        asked = [read_prompt(request) for request in model.requests if find_kind(request) == "repository-task"]
        assert sorted("clinic" in text for text in asked) == [False, False, False]
        paid = model.paid
        assert make_worlds("discover", tmp_path, model, "--tasks", "swe").exit_code == 0  # now with the clinic
        assert model.paid == paid + 3
    themes = {record["name"]: record for _, record in list_records(tmp_path)["Theme"]}
    assert {name: theme["license"] for name, theme in themes.items()} == {
        "library_loans": "Apache-2.0",
        "parcel_depot": "MIT",
        "clinic_rota": "GPL-3.0-only",
    }
    assert {theme["source"] for theme in themes.values()} == {"swe"}
    assert count_reasons(tmp_path) == {"license": 1, "no-domain": 1}


def test_the_readme_of_the_base_tree_goes_before_problem_statements(tmp_path: Path) -> None:
    make_sample(tmp_path / "ada__greet")
    assert run_mergemill("mine", "git:ada__greet", cwd=tmp_path).exit_code == 0
    with open_scripted_model() as model:
        done = make_worlds("discover", tmp_path, model, "--tasks", "swe")
        assert done.exit_code == 0, done.stderr
        assert done.lines[-1]["steps"][0]["rejected"] == {"no-domain": 1}
        text = read_prompt(model.requests[0])
        assert "# greet\nSays hello." in text
        assert "Words are miscounted" not in text

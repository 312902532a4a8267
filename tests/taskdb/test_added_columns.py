"""A new column of tasks is one declaration, its filter another: those in CONTRIBUTING.md, taken from that page."""

from __future__ import annotations

import json
import os
import re
import runpy
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from sqlalchemy import inspect

from core.errors import InputError
from exporters.task_table import SCHEMA
from taskdb.queries import tasks as queries
from taskdb.queries.histograms import HistogramBin, count_bins
from taskdb.queries.sources import iterate_base_commits
from taskdb.queries.task_filters import parse_filters
from taskdb.records import Kind, Stage
from taskdb.records.oracles import MaterialSize, ReviewOracle
from taskdb.schema.task_columns import EXPORTED, RANGE_FILTERS, VALUE_TYPES, WORD_FILTERS
from taskdb.store import Store
from tests import records
from tests.taskdb.lineages import add_lineage, make_url

ROOT = Path(__file__).parents[2]
NAME = "hint_tokens"
HINTS = "Look at `count`."
N_TOKENS = 6
PROGRAM = """
import json, sys
from exporters.task_table import SCHEMA
from taskdb import listing
from taskdb.queries import tasks as queries
from taskdb.queries.task_filters import parse_filters
from taskdb.schema.columns import TASK_COLUMNS
from taskdb.store import Store

with Store.open(sys.argv[1]) as store:
    def select(**given):
        return [row["name"] for row in queries.list_tasks(store, parse_filters(given))]
    before = queries.list_tasks(store, parse_filters({}), columns=TASK_COLUMNS)
    with store.write_transaction() as connection:
        listing.rebuild(connection)
    print(json.dumps({
        "values": {row["name"]: row["hint_tokens"] for row in before},
        "kept": before == queries.list_tasks(store, parse_filters({}), columns=TASK_COLUMNS),
        "where": select(where="hint_tokens > 5"),
        "filter": select(hint_tokens="6"),
        "parquet": str(SCHEMA.field("hint_tokens").type),
    }))
"""


@pytest.fixture
def tree(tmp_path: Path) -> Path:
    """A copy of what the declarations are in and of what is written from them, with those of CONTRIBUTING.md."""
    folder = tmp_path / "tree"
    for name in ("taskdb", "client", "docs"):
        shutil.copytree(ROOT / name, folder / name, ignore=shutil.ignore_patterns("__pycache__"))
    (folder / "scripts").mkdir()
    shutil.copy(ROOT / "scripts" / "task-columns", folder / "scripts")
    page = (ROOT / "CONTRIBUTING.md").read_text(encoding="utf-8")
    column, condition = re.findall(r"```py\n(.*?)```", page, re.DOTALL)
    file = folder / "taskdb" / "schema" / "task_columns.py"
    code = file.read_text(encoding="utf-8")
    columns, rest = code.split("\n\n# ----", 1)
    filters, rest = rest.split("\n\n\ndef get_value_type", 1)
    file.write_text(f"{columns.rstrip()}\n{column}\n\n# ----{filters}\n{condition}\n\ndef get_value_type{rest}")
    return folder


def run(tree: Path, *command: str | Path) -> str:
    path = os.pathsep.join(str(folder) for folder in (tree, tree / "client", ROOT))
    done = subprocess.run(
        [sys.executable, *command],
        cwd=tree,
        env=os.environ | {"PYTHONPATH": path, "NO_COLOR": "1", "COLUMNS": "200"},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


def add_task_with_hints(store: Store) -> None:
    pull = records.make_pull_request(1)
    candidate = records.make_candidate(pull)
    environment = records.make_environment(candidate)
    verification = records.make_verification(environment)
    store.add_mined_changes((pull, candidate, 0.1))
    store.add(environment, verification, records.make_task(verification, candidate, hints=HINTS))


def test_databases_of_before_get_a_declared_column_with_its_values(db: str, tree: Path) -> None:
    with Store.open(db) as store:
        add_task_with_hints(store)
        add_lineage(store, 2, to=Stage.DERIVE)
    answer: dict[str, Any] = json.loads(run(tree, "-c", PROGRAM, db))
    first, second = "ada__greet-1.bugfix", "ada__greet-2.bugfix"
    assert answer == {
        "values": {first: N_TOKENS, second: 0},
        "kept": True,
        "where": [first],
        "filter": [first],
        "parquet": "int64",
    }
    with pytest.raises(InputError, match=r"newer mergemill \(column hint_tokens\)"):
        Store.open(db)


def test_a_new_database_has_a_declared_column(tree: Path, tmp_path: Path) -> None:
    answer = json.loads(run(tree, "-c", PROGRAM, make_url(tmp_path)))
    assert (answer["values"], answer["kept"]) == ({}, True)


def test_a_declared_filter_is_an_option_and_a_filter_of_the_client(tree: Path, tmp_path: Path) -> None:
    with Store.open(make_url(tmp_path)) as store:
        add_task_with_hints(store)
        add_lineage(store, 2)
    script = "from mergemill.cli import main; main()"
    listed = run(
        tree,
        "-c",
        script,
        "tasks",
        "list",
        "--db",
        make_url(tmp_path),
        "--hint-tokens",
        "1:",
        "--columns",
        NAME,
        "--json",
    )
    assert json.loads(listed) == {NAME: N_TOKENS}
    assert "Select by the length of the hints in tokens." in run(tree, "-c", script, "tasks", "list", "--help")
    written = run(tree, tree / "scripts" / "task-columns").splitlines()
    assert sorted(written) == ["client/mergemill_client/columns.py", "docs/guide/query/query.md"]
    assert f"| `{NAME}` | words and signs of the hints |\n" in (tree / "docs/guide/query/query.md").read_text(
        encoding="utf-8"
    )
    program = (
        "import sys, mergemill_client as c\n"
        "with c.open(sys.argv[1]) as d: print([t['hint_tokens'] for t in d.tasks(hint_tokens=(1, None))])"
    )
    assert run(tree, "-c", program, make_url(tmp_path)) == f"[{N_TOKENS}]\n"
    hook = "import sys; sys.path.insert(0, 'docs/hooks'); import reference; print(reference.describe_task_columns())"
    assert f"| `{NAME}` | int | words and signs of the hints | `--hint-tokens` |" in run(tree, "-c", hook)


def test_what_is_written_from_the_declarations_is_current() -> None:
    files = runpy.run_path(str(ROOT / "scripts" / "task-columns"))["render_files"]()
    assert len(files) == 2
    for path, text in files.items():
        assert path.read_text(encoding="utf-8") == text, "run scripts/task-columns"


def test_filters_are_over_columns_of_their_type_and_exported_columns_are_documented() -> None:
    assert {VALUE_TYPES[name] for name in WORD_FILTERS} == {str}
    assert {VALUE_TYPES[name] for name in RANGE_FILTERS} == {int, float}
    assert [name for name in SCHEMA.names if name in VALUE_TYPES] == list(VALUE_TYPES)
    page = (ROOT / "docs/guide/query/export.md").read_text(encoding="utf-8")
    assert not [name for name in EXPORTED if f"`{name}`" not in page]


def test_reviews_are_selected_by_their_form_and_the_size_of_their_material(tmp_path: Path) -> None:
    with Store.open(make_url(tmp_path)) as store:
        for number, material in enumerate(
            [None, MaterialSize(files=3, n_bytes=900), MaterialSize(files=9, n_bytes=90)]
        ):
            candidate = records.make_candidate(pull := records.make_pull_request(number))
            environment = records.make_environment(candidate)
            verification = records.make_verification(environment)
            target = "diff" if material is None else "cross-file"
            tree = None if material is None else str(number) * 40
            oracle = ReviewOracle(target=target, files="0" * 64, diff=None, defects=(), tree=tree, material=material)
            name = f"{candidate.name}.review-1"
            task = records.make_task(verification, candidate, kind=Kind.REVIEW, name=name, oracle=oracle)
            store.add_mined_changes((pull, candidate, 0.1))
            store.add(environment, verification, task)

        def select(**given: str) -> list[str]:
            return [row["name"].partition(".")[0][-1] for row in queries.list_tasks(store, parse_filters(given))]

        kept = {commit for _, _, commit in iterate_base_commits(store, [task.source])}
        assert kept == {task.base_commit, "1" * 40, "2" * 40}
        assert sorted(select(review_form="cross-file")) == ["1", "2"]
        assert select(material_files="4:") == ["2"]
        assert select(material_bytes="100:") == ["1"]
        assert count_bins(store, parse_filters({}))["material_files"] == [
            HistogramBin(2, 5, 1),
            HistogramBin(5, 10, 1),
        ]


def test_the_tables_have_the_declared_columns(tmp_path: Path) -> None:
    with Store.open(make_url(tmp_path)) as store:
        columns = [column["name"] for column in inspect(store.engine).get_columns("tasks")]
    assert columns == list(VALUE_TYPES)

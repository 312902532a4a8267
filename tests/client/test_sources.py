"""The client gives the same rows from SQLite, PostgreSQL, a bundle and a server: those that mergemill selects."""

from __future__ import annotations

import json
from collections.abc import Iterator
from datetime import date
from pathlib import Path
from typing import Any

import duckdb
import mergemill_client
import pytest
from mergemill_client.filters import FILTERS as CLIENT_FILTERS
from mergemill_client.filters import format_filters

from taskdb.artifacts import Artifacts
from taskdb.queries import tasks as queries
from taskdb.queries.sampling import sample_tasks
from taskdb.queries.task_filters import FILTERS, TASK_COLUMNS, TaskFilters, parse_filters
from taskdb.schema.task_columns import RANGE_FILTERS
from taskdb.store import Store
from tests.client.task_server import serve_tasks
from tests.taskdb.lineages import add_lineage, make_url
from tests.taskdb.listing import find_middle, is_listed, make_listing, make_varied_rows

ROWS = make_varied_rows(120)
KINDS = ("sqlite", "postgresql", "bundle", "server")
REQUESTS: list[dict[str, Any]] = [
    {},
    {"language": "python,go"},
    {"language": ["python", "go"], "status": "certified"},
    {"repo": "ADA/greet", "license": "apache-2.0,mit"},
    {"kind": "simulated"},
    {"environment": ("simulated", "verified"), "split": "test"},
    {"tests": "model-written"},
    {"tests": ("model-written", "all"), "language": "go"},
    {"audited": "none"},
    {"audited": ["clean", "none"], "family": "CHANGE-3"},
    {"min_f2p": 4},
    {"changed_lines": (10, 50)},
    {"changed_lines": "100:", "changed_files": 2},
    {"strength": (0.5, None), "flaky_bound": ":0.2"},
    {"n_fail_to_pass": "2:3", "n_pass_to_pass": (None, 60)},
    {"test_seconds": 11, "statement_tokens": "1:1000"},
    {"underspecified": (0, 0.3), "unfair_tests": (0, 0.5), "control_bound": 0.25},
    {"created": ("2021-03", "2022")},
    {"created": "2022"},
    {"since": date(2021, 6, 1), "until": "2022-06"},
    {"difficulty": "0.2:0.5"},
    {"difficulty": "acme/big/REACT:0.8:"},
    {"where": "strength > 0.5 AND changed_lines / 2 > 20 AND repo LIKE 'Ada/%'"},
    {"where": "audited IS NULL OR language IN ('go')"},
    {"ids": [ROWS[3]["id"], ROWS[4]["name"], ROWS[6]["id"][:64]]},
    {"sample": 20, "seed": 3},
    {"sample": 30, "seed": "x", "stratify": "language,year", "where": "changed_lines > 20"},
    {"sample": 30, "stratify": ["license"], "allocate": "equal", "per_family": 1},
    {"per_repo": 4, "per_family": 1, "language": "go,rust"},
    {"operators": ["Operators-1", "none"], "findings": "findings-2,findings-1"},
    {"findings": "%,findings_1,findings-2"},
    {"per_edit_group": 2, "per_failing_set": 1},
    {"per_functions": 1, "per_operators": 2, "seed": "y"},
    *({name: tuple(find_middle(ROWS, name))} for name in RANGE_FILTERS),
]


def write_bundle(folder: Path) -> None:
    """Write the manifest of a bundle of all rows."""
    tasks = [
        {"name": row["name"], "id": row["id"], "row": {k: v for k, v in row.items() if k != "added_at"}} for row in ROWS
    ]
    folder.mkdir()
    (folder / "manifest.json").write_text(json.dumps({"kind": "mergemill-bundle", "tasks": tasks, "files": {}}))


@pytest.fixture(scope="module")
def listing(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Store]:
    with make_listing(make_url(tmp_path_factory.mktemp("listing")), ROWS) as store:
        yield store


@pytest.fixture(
    scope="module", params=[pytest.param(k, marks=pytest.mark.postgres) if k == "postgresql" else k for k in KINDS]
)
def place(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory, listing: Store) -> Iterator[str]:
    """The URL of the same tasks in each of the four places, which no test of them changes."""
    folder = tmp_path_factory.mktemp(request.param)
    if request.param == "postgresql":
        url = request.getfixturevalue("server").create_database()
        with make_listing(url, ROWS) as store, store.engine.begin() as connection:
            connection.exec_driver_sql("CREATE SEQUENCE one")
        yield url
    elif request.param == "bundle":
        write_bundle(folder / "bundle")
        yield str(folder / "bundle")
    elif request.param == "server":
        with serve_tasks(listing, folder) as address:
            yield address
    else:
        yield listing.url


@pytest.fixture
def database(place: str, monkeypatch: pytest.MonkeyPatch) -> Iterator[mergemill_client.TaskDatabase]:
    """The tasks in one of the places; the server's pages are short."""
    monkeypatch.setattr("mergemill_client.server.PAGE_SIZE", 25)
    with mergemill_client.open(place) as opened:
        yield opened


def select(store: Store, given: dict[str, Any]) -> list[dict[str, Any]]:
    """Return the rows that mergemill itself selects, without the column that bundles lack."""
    filters = parse_filters(format_filters(given))
    if filters.named:
        ids = tuple(row["id"] for row in ROWS if filters.named and {row["id"], row["name"]} & set(filters.named))
        filters = TaskFilters(ids=ids)
    if filters.is_sampled:
        filters = TaskFilters(ids=sample_tasks(store, filters))
    rows = queries.list_tasks(store, filters, columns=TASK_COLUMNS)
    return [row | {"difficulty": json.loads(row["difficulty"]), "added_at": None} for row in rows]


def test_all_sources_give_the_rows_that_mergemill_selects(
    database: mergemill_client.TaskDatabase, listing: Store
) -> None:
    sizes = set()
    for given in REQUESTS:
        expected = select(listing, given)
        rows = [row | {"added_at": None} for row in database.tasks(**given)]
        assert rows == expected, given
        assert database.count(**given) == len(expected), given
        sizes.add(len(expected))
    assert len(sizes) > 10
    assert 0 not in sizes


def test_pages_and_single_tasks(database: mergemill_client.TaskDatabase) -> None:
    everything = [row["name"] for row in database.tasks(columns=["name"])]
    first = [row["name"] for row in database.tasks(limit=30)]
    rest = [row["name"] for row in database.tasks(after=first[-1])]
    assert first + rest == everything
    (row,) = database.tasks(ids="ada__greet-3.bugfix")
    assert row["changed_lines"] == 6
    with pytest.raises(mergemill_client.TaskNotFoundError, match="ada__greet-9999"):
        database.task("ada__greet-9999.bugfix")


@pytest.mark.parametrize("kind", ["sqlite", "server"])
def test_one_task_of_a_real_database(kind: str, tmp_path: Path) -> None:
    artifacts = Artifacts(tmp_path / "artifacts")
    patches = {"gold_patch": artifacts.put(b"gold\n"), "test_patch": artifacts.put(b"test\n")}
    with Store.open(make_url(tmp_path)) as store:
        task = add_lineage(store, 1, **patches)
        add_lineage(store, 2, **patches)
        with (
            serve_tasks(store, tmp_path) as address,
            mergemill_client.open(address if kind == "server" else store.url) as database,
        ):
            fetched = database.task(task.id[:30])
            assert database.task("ada__greet-1.bugfix") == fetched
            assert [row["name"] for row in database.tasks(since="2024-03-03")] == ["ada__greet-2.bugfix"]
    assert set(mergemill_client.TASK_COLUMNS) <= set(fetched)
    assert (fetched["id"], fetched["status"], fetched["strength"], fetched["difficulty"]) == (
        task.id,
        "certified",
        None,
        {},
    )
    assert (fetched.get("patch"), fetched.get("FAIL_TO_PASS")) == (
        ("gold\n", ["tests/test_greet.py::test_new"]) if kind == "server" else (None, None)
    )


def test_tables_have_the_types_of_the_columns(database: mergemill_client.TaskDatabase) -> None:
    tasks = database.tasks(language="go", columns=["name", "changed_lines", "strength", "difficulty"])
    frame, table, rows = tasks.to_pandas(), tasks.to_arrow(), list(tasks)
    assert list(frame.columns) == table.column_names == ["name", "changed_lines", "strength", "difficulty"]
    assert frame["name"].tolist() == table["name"].to_pylist() == [row["name"] for row in rows]
    assert [str(field.type) for field in table.schema] == ["string", "int64", "double", "string"]
    assert table["strength"].to_pylist() == [row["strength"] for row in rows]
    assert json.loads(table["difficulty"][0].as_py()) == rows[0]["difficulty"]
    nothing = database.tasks(where="changed_lines > 99999")
    assert nothing.to_arrow().num_rows == 0
    assert list(nothing.to_pandas().columns) == list(mergemill_client.TASK_COLUMNS)


def test_duckdb_reads_tables_of_the_client(listing: Store) -> None:
    with mergemill_client.open(listing.url) as database:
        tasks = database.tasks().to_arrow()
        query = "SELECT language, count(*), max(changed_lines) FROM tasks GROUP BY language ORDER BY language"
        counted = duckdb.sql(query).fetchall()
        languages = {row["language"] for row in ROWS}
        expected = [
            (name, database.count(language=name), max(task["changed_lines"] for task in database.tasks(language=name)))
            for name in sorted(languages)
        ]
    assert tasks.num_rows == sum(number for _, number, _ in expected)
    assert counted == expected


MISTAKES: list[tuple[dict[str, Any], str]] = [
    ({"color": "red"}, "no filter 'color'"),
    ({"changed_lines": "ten"}, "changed[-_]lines: 'ten' is not LO:HI"),
    ({"changed_lines": (5, 1)}, "LO:HI"),
    ({"language": {"python": 1}.values}, "language"),
    ({"created": "soon"}, "a date such as"),
    ({"stratify": "name", "sample": 3}, "'name' is not one of"),
    ({"allocate": "fair", "sample": 3, "stratify": "repo"}, "proportional or equal"),
    ({"where": "color = 'red'"}, "color"),
    ({"where": "1=1; DROP TABLE tasks"}, ""),
    ({"where": "1=1); DELETE FROM tasks; --"}, ""),
    ({"where": "(SELECT load_extension('x')) = 1"}, ""),
    ({"where": "(SELECT count(*) FROM pragma_table_list) > 0"}, ""),
    ({"where": "nextval('one') > 0"}, ""),
    ({"ids": "nothing,ada__greet-1.bugfix"}, "1 of 2 tasks are not found: nothing"),
]


@pytest.mark.parametrize(("given", "problem"), MISTAKES, ids=range(len(MISTAKES)))
def test_a_mistake_is_an_error_of_the_client(
    database: mergemill_client.TaskDatabase, given: dict[str, Any], problem: str, listing: Store
) -> None:
    with pytest.raises(mergemill_client.ClientError, match=problem or None) as caught:
        list(database.tasks(**given))
    assert "\n" not in str(caught.value)
    assert database.count() == len([row for row in ROWS if is_listed(row)])


def test_the_client_has_the_columns_and_filters_of_mergemill() -> None:
    assert tuple(mergemill_client.TASK_COLUMNS) == TASK_COLUMNS
    assert set(CLIENT_FILTERS) == set(FILTERS)


@pytest.mark.parametrize(
    ("url", "problem"),
    [
        ("missing.db", "no database"),
        ("sqlite:///missing.db", "no database"),
        (".", "no bundle"),
        ("mysql://localhost/x", "not supported"),
        ("http://127.0.0.1:9", "127.0.0.1:9"),
    ],
)
def test_what_cannot_be_opened_is_named(
    url: str, problem: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    with pytest.raises(mergemill_client.ClientError, match=problem):
        mergemill_client.open(url).count()

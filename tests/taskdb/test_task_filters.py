"""Filters of tasks: what each selects on both databases, and their form as text."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping
from typing import Any

import pytest

from core.errors import UsageError
from taskdb.queries.task_filters import FILTERS, DateRange, PassRate, Range, TaskFilters, format_filters, parse_filters
from taskdb.schema.task_columns import RANGE_FILTERS
from taskdb.store import Store
from tests.taskdb.listing import find_middle, is_listed, make_listing, make_varied_rows, select_numbers

ROWS = make_varied_rows(80)


@pytest.fixture
def listing(empty_db: str) -> Iterator[Store]:
    with make_listing(empty_db, ROWS, {"c7": "security"}) as store:
        yield store


def is_between(row: Mapping[str, Any], name: str, low: float, high: float) -> bool:
    return row[name] is not None and low <= row[name] <= high


SELECTING: list[tuple[dict[str, str], Callable[[dict[str, Any]], bool]]] = [
    ({}, lambda row: True),
    ({"repo": "ada/greet"}, lambda row: row["repo"] == "Ada/Greet"),
    ({"repo": "ADA/greet, guido/snake"}, lambda row: row["repo"] in ("Ada/Greet", "Guido/snake")),
    ({"language": "Go,rust"}, lambda row: row["language"] in ("go", "rust")),
    ({"license": "mit"}, lambda row: row["license"] == "MIT"),
    ({"status": "certified,derived"}, lambda row: row["status"] != "rejected"),
    ({"change-kind": "security"}, lambda row: row["candidate"] == "c7"),
    ({"change_kind": "bugfix,security"}, lambda row: True),
    ({"family": "change-3,CHANGE-4"}, lambda row: row["family"] in ("change-3", "change-4")),
    ({"split": "test"}, lambda row: row["split"] == "test"),
    ({"audited": "findings"}, lambda row: row["audited"] == "findings"),
    ({"audited": "none,clean"}, lambda row: row["audited"] in (None, "clean")),
    ({"source": "GIT:greet"}, lambda row: True),
    ({"min-f2p": "4"}, lambda row: row["n_fail_to_pass"] >= 4),
    ({"n-fail-to-pass": "2:3"}, lambda row: row["n_fail_to_pass"] in (2, 3)),
    ({"changed-lines": "10:20"}, lambda row: 10 <= row["changed_lines"] <= 20),
    ({"changed-lines": ":20"}, lambda row: row["changed_lines"] <= 20),
    ({"changed-lines": "20:"}, lambda row: row["changed_lines"] >= 20),
    ({"changed-lines": "20"}, lambda row: row["changed_lines"] == 20),
    ({"changed-files": "4"}, lambda row: row["changed_files"] == 4),
    ({"statement-tokens": "70:140"}, lambda row: 70 <= row["statement_tokens"] <= 140),
    ({"test-seconds": "1.5:2.5"}, lambda row: 1.5 <= row["test_seconds"] <= 2.5),
    ({"strength": "0:1"}, lambda row: row["strength"] is not None),
    ({"strength": "0.9:"}, lambda row: is_between(row, "strength", 0.9, 1)),
    ({"control-bound": ":0.3"}, lambda row: row["control_bound"] is not None),
    ({"flaky-bound": ":0.1"}, lambda row: row["flaky_bound"] <= 0.1),
    (
        {"underspecified": ":0.25", "unfair-tests": ":0.5"},
        lambda r: r["underspecified"] <= 0.25 and r["unfair_tests"] <= 0.5,
    ),
    ({"since": "2022"}, lambda row: row["created_at"] >= "2022"),
    ({"until": "2021-06"}, lambda row: row["created_at"] < "2021-07"),
    ({"since": "2021-03-04", "until": "2021-12-31"}, lambda row: "2021-03-04" <= row["created_at"] < "2022"),
    ({"created": "2021-12:2022"}, lambda row: "2021-12" <= row["created_at"] < "2023"),
    ({"created": ":2021"}, lambda row: row["created_at"] < "2022"),
    ({"created": "2021-02-02"}, lambda row: row["created_at"].startswith("2021-02-02")),
    ({"difficulty": "0.2:0.5"}, lambda row: 0.2 <= read_rate(row) <= 0.5),
    ({"difficulty": "ACME/Big/react:0.8:"}, lambda row: read_rate(row) >= 0.8),
    ({"difficulty": "tiny/react::1"}, lambda row: False),
    ({"where": "changed_lines > 100", "language": "go"}, lambda r: r["changed_lines"] > 100 and r["language"] == "go"),
]


def read_rate(row: Mapping[str, Any]) -> float:
    """Pass rate of the first model of a row, -1 without one."""
    rate = json.loads(row["difficulty"]).get("acme/Big/react")
    return float(rate["c"] / rate["n"]) if rate else -1


def test_a_filter_selects_the_same_rows_on_both_databases(listing: Store) -> None:
    for given, wanted in SELECTING:
        real = [int(row["id"], 16) for row in ROWS if is_listed(row) and wanted(row)]
        assert select_numbers(listing, parse_filters(given)) == real, given
    assert {len(select_numbers(listing, parse_filters(given))) for given, _ in SELECTING[:6]} > {59, 15}


def test_every_range_selects_what_lies_in_it(listing: Store) -> None:
    for name in RANGE_FILTERS:
        low, high = find_middle(ROWS, name)
        real = [int(row["id"], 16) for row in ROWS if is_listed(row) and is_between(row, name, low or 0, high or 0)]
        assert 0 < len(real) < len([row for row in ROWS if is_listed(row)]) or low == high, name
        assert select_numbers(listing, parse_filters({name: f"{low}:{high}"})) == real, name


def test_simulated_tasks_are_selected_by_kind_environment_or_id_alone(listing: Store) -> None:
    simulated = [int(row["id"], 16) for row in ROWS if row["environment"] == "simulated"]
    assert select_numbers(listing, parse_filters({"kind": "simulated", "tests": "all"})) == simulated
    assert select_numbers(listing, parse_filters({"environment": "simulated", "tests": "all"})) == simulated
    assert select_numbers(listing, parse_filters({"kind": "simulated,bugfix", "tests": "all"})) == list(range(1, 81))
    assert select_numbers(listing, TaskFilters(ids=tuple(row["id"] for row in ROWS[3:6]))) == [4, 5, 6]
    assert select_numbers(listing, TaskFilters(ids=())) == []


def test_tasks_with_model_written_tests_are_selected_by_tests_or_id_alone(listing: Store) -> None:
    real = [row for row in ROWS if row["environment"] != "simulated"]
    written = [int(row["id"], 16) for row in real if row["tests"] == "model-written"]
    assert select_numbers(listing, parse_filters({"tests": "model-written"})) == written
    assert select_numbers(listing, parse_filters({"tests": "all"})) == [int(row["id"], 16) for row in real]
    assert not set(written) & set(select_numbers(listing, parse_filters({"language": "python,go,rust"})))
    assert select_numbers(listing, TaskFilters(ids=(f"{written[0]:064x}",))) == written[:1]


def test_many_ids_are_one_parameter(listing: Store) -> None:
    ids = tuple(f"{number:064x}" for number in range(70, 50_000))
    assert select_numbers(listing, TaskFilters(ids=ids)) == list(range(70, 81))
    real = [int(row["id"], 16) for row in ROWS[:69] if is_listed(row)]
    assert select_numbers(listing, TaskFilters(excluded_ids=ids)) == real


@pytest.mark.parametrize(
    ("given", "problem"),
    [
        ({"color": "red"}, "no filter 'color'"),
        ({"kind": "bugfix,bugfx"}, "--kind: 'bugfx' is not one of bugfix"),
        ({"status": "done"}, "--status: 'done' is not one of derived, certified, rejected, imported"),
        ({"repo": ","}, "--repo"),
        ({"changed-lines": "ten"}, "--changed-lines: 'ten' is not LO:HI"),
        ({"changed-lines": "20:10"}, "'20:10' is not LO:HI"),
        ({"changed-lines": ":"}, "LO:HI"),
        ({"changed-lines": ""}, "LO:HI"),
        ({"changed-lines": "1:2:3"}, "LO:HI"),
        ({"strength": "nan:1"}, "LO:HI"),
        ({"strength": "0:inf"}, "LO:HI"),
        ({"created": "2024-13-01:"}, "a date such as"),
        ({"created": ":"}, "DATE:DATE"),
        ({"since": "yesterday"}, "--since: 'yesterday' is not a date"),
        ({"until": "9999"}, "a date such as"),
        ({"min-f2p": "-1"}, "--min-f2p"),
        ({"sample": "0"}, "a whole number from 1"),
        ({"per-repo": "1.5"}, "--per-repo"),
        ({"stratify": "name"}, "--stratify: 'name' is not one of repo"),
        ({"allocate": "fair"}, "proportional or equal"),
        ({"difficulty": "react:x:y"}, "--difficulty"),
    ],
)
def test_a_text_that_is_no_value_is_named(given: dict[str, str], problem: str) -> None:
    with pytest.raises(UsageError) as caught:
        parse_filters(given)
    assert problem in str(caught.value)


def test_filters_are_parsed_and_formatted() -> None:
    given = {
        "repo": "a/b,c/d",
        "created": "2024-02:2024-03-05",
        "changed-lines": "1:2.5",
        "difficulty": "org/m/react:0.1:0.9",
        "where": "name LIKE 'a,b%'",
        "ids": "one,two",
        "selection": "small",
        "sample": "5",
        "stratify": "repo,year",
        "allocate": "equal",
        "seed": "7",
        "per-repo": "2",
        "audited": "none",
        "decontaminated": "swe-bench",
    }
    filters = parse_filters(given)
    assert filters.repo == ("a/b", "c/d")
    assert filters.created == DateRange("2024-02-01", "2024-03-06")
    assert filters.changed_lines == Range(1, 2.5)
    assert filters.difficulty == PassRate("org/m/react", Range(0.1, 0.9))
    assert filters.named == ("one", "two")
    assert not filters.is_resolved
    assert parse_filters(format_filters(filters)) == filters
    assert format_filters(TaskFilters()) == {}
    assert {name.replace("-", "_") for name in given} <= set(FILTERS)


def test_given_filters_replace_those_of_a_saved_selection() -> None:
    saved = parse_filters({"repo": "a/b", "language": "go", "sample": "5"})
    merged = saved.merge(parse_filters({"language": "rust", "seed": "3"}))
    assert merged == parse_filters({"repo": "a/b", "language": "rust", "sample": "5", "seed": "3"})

"""Variety of tasks, near duplicates, and the limits that keep them out of a selection."""

from __future__ import annotations

import math
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from taskdb.queries.diversity import ALL_KINDS, compute_diversity, compute_effective_number
from taskdb.queries.sampling import sample_tasks
from taskdb.queries.task_filters import TaskFilters, format_filters, parse_filters
from taskdb.queries.tasks import list_tasks
from taskdb.records import ChangedCode, FailureKind, Injection, Kind
from taskdb.records.verdicts import Finding, QuoteSource
from taskdb.store import Store
from tests.taskdb.lineages import add_lineage, make_url
from tests.taskdb.listing import make_listing, make_row

NO_KEYS = dict.fromkeys(("functions", "operators", "edit_group", "failing_set"))


def make_rows() -> list[dict[str, Any]]:
    """Return six injected tasks, of which four are one group, and two bug fixes without keys."""
    keys = [
        ("a.py::f", "constant", "e1", "t1"),
        ("a.py::f", "constant", "e1", "t2"),
        ("a.py::f", "negate", "e2", "t2"),
        ("a.py::g", "negate", "e3", "t2"),
        ("a.py::f,b.py::h", "constant,negate", "e4", "t4"),
        ("a.py::f", "constant", "e5", "t5"),
    ]
    names = tuple(NO_KEYS)
    rows = [
        make_row(at, kind="injected", repo="ada/a", **dict(zip(names, of, strict=True))) for at, of in enumerate(keys)
    ]
    rows[5]["repo"] = "Ada/B"
    return [*rows, *(make_row(at, repo="ada/a", **NO_KEYS) for at in (6, 7))]


@pytest.fixture
def store(tmp_path: Path) -> Iterator[Store]:
    with make_listing(make_url(tmp_path), make_rows()) as opened:
        yield opened


def test_the_effective_number_is_that_of_equally_frequent_values() -> None:
    assert compute_effective_number([7, 7, 7]) == pytest.approx(3)
    assert compute_effective_number([9]) == pytest.approx(1)
    assert compute_effective_number([3, 1]) == pytest.approx(4 / 3**0.75)
    assert compute_effective_number([]) is None


def test_kinds_are_described_by_what_their_tasks_are_made_of(store: Store) -> None:
    bugfix, injected, both = compute_diversity(store, TaskFilters())
    assert (injected.kind, injected.tasks, injected.repos, injected.failing_sets) == ("injected", 6, 2, 4)
    assert (injected.functions, injected.operators) == (4, 2)
    assert injected.effective_operators == pytest.approx(math.exp(-(4 / 7 * math.log(4 / 7) + 3 / 7 * math.log(3 / 7))))
    assert injected.largest_group == pytest.approx(4 / 6)
    assert injected.near_duplicates == pytest.approx(3 / 6)
    assert (bugfix.kind, bugfix.tasks, bugfix.functions, bugfix.effective_operators) == ("bugfix", 2, None, None)
    assert (bugfix.largest_group, bugfix.near_duplicates) == (0.5, 0)
    assert (both.kind, both.tasks, both.near_duplicates) == (ALL_KINDS, 8, 3 / 8)
    assert compute_diversity(store, TaskFilters(repo="ada/b"))[0].kind == "injected"
    assert compute_diversity(store, TaskFilters(repo="no/one")) == []


@pytest.mark.parametrize(
    ("limits", "number"),
    [
        ({"per-edit-group": "1"}, 7),
        ({"per-failing-set": "1"}, 6),
        ({"per-failing-set": "2"}, 7),
        ({"per-functions": "1"}, 6),
        ({"per-operators": "1"}, 5),
        ({"per-edit-group": "1", "per-failing-set": "1", "per-repo": "1"}, 2),
    ],
    ids=str,
)
def test_limits_leave_at_most_so_many_tasks_of_a_value_and_all_tasks_without_one(
    store: Store, limits: dict[str, str], number: int
) -> None:
    for seed in range(3):
        filters = parse_filters({**limits, "seed": str(seed)})
        assert len(sample_tasks(store, filters)) == number
        assert parse_filters(format_filters(filters)) == filters


def test_lists_of_words_are_matched_word_by_word(store: Store) -> None:
    def select(**given: str) -> int:
        return len(list_tasks(store, parse_filters(given)))

    assert (select(operators="CONSTANT"), select(operators="negate,constant"), select(operators="none")) == (4, 6, 2)
    assert (select(operators="const"), select(operators="c%"), select(operators="const_nt")) == (0, 0, 0)


def test_a_task_is_listed_with_its_functions_operators_and_findings(tmp_path: Path) -> None:
    def inject(operator: str) -> Injection:
        return Injection(path="a.py", function="f", operator=operator, line=1, detail="")

    code = ChangedCode(functions=("a.py::f", "b.py"), files=3, lines=9, hunks=4, call_depth=2)
    made = {"kind": Kind.INJECTED, "changed_code": code, "injections": (inject("negate"), inject("constant"))}
    findings = tuple(
        Finding(rule=rule, quote="x", detail="", quote_source=QuoteSource.TESTS)
        for rule in ("name-not-stated", "a", "name-not-stated")
    )
    columns = ("functions", "operators", "changed_files", "changed_lines", "changed_hunks", "call_depth")
    keys = ("edit_group", "failing_set", "n_findings", "findings")
    with Store.open(make_url(tmp_path)) as opened:
        add_lineage(opened, 1, task_fields=made, verdict_fields={"findings": findings})
        add_lineage(opened, 2, task_fields=made | {"repo": "Ada/Greet"})
        add_lineage(opened, 3, task_fields={"FAIL_TO_PASS": (("t.py::b", FailureKind.ERROR),)})
        rows = {row["name"]: row for row in list_tasks(opened, TaskFilters(), columns=("name", *columns, *keys))}
        first, second, third = (rows[f"ada__greet-{number}.bugfix"] for number in (1, 2, 3))
        assert [first[name] for name in columns] == ["a.py::f,b.py", "constant,negate", 3, 9, 4, 2]
        assert (first["n_findings"], first["findings"]) == (3, "a,name-not-stated")
        assert [third[name] for name in columns] == [None, None, 1, 4, None, None]
        assert (third["edit_group"], third["n_findings"], third["findings"]) == (None, 0, "")
        assert first["edit_group"] == second["edit_group"]
        assert first["failing_set"] == second["failing_set"] != third["failing_set"]
        named = {given: list_tasks(opened, parse_filters({"findings": given})) for given in ("a", "none", "b")}
        assert [len(of) for of in named.values()] == [1, 2, 0]
        assert [row.near_duplicates for row in compute_diversity(opened, TaskFilters(kind="injected"))] == [0.5]

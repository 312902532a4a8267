"""Expressions of `--where`: what they select on both databases, and what is rejected."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import pytest

from core.errors import UsageError
from taskdb.queries.task_filters import TaskFilters, parse_filters
from taskdb.store import Store
from tests.taskdb.listing import is_listed, make_listing, make_varied_rows, select_numbers

ROWS = [row for row in make_varied_rows(60) if is_listed(row)]


@pytest.fixture
def listing(empty_db: str) -> Iterator[Store]:
    with make_listing(empty_db, ROWS) as store:
        if store.engine.dialect.name == "postgresql":  # a database whose order of texts is not that of their bytes
            with store.engine.begin() as connection:
                connection.exec_driver_sql('ALTER TABLE tasks ALTER COLUMN repo TYPE varchar COLLATE "en-x-icu"')
        yield store


SELECTING: list[tuple[str, Callable[[dict[str, Any]], bool]]] = [
    ("kind = 'bugfix'", lambda row: True),
    ("changed_lines < 50 AND language = 'python'", lambda r: r["changed_lines"] < 50 and r["language"] == "python"),
    ("changed_lines BETWEEN 10 AND 30", lambda row: 10 <= row["changed_lines"] <= 30),
    ("repo LIKE 'ADA/%' OR repo ILIKE '%GIT'", lambda row: row["repo"] in ("Ada/Greet", "linus/git")),
    ("repo NOT LIKE '%r_et'", lambda row: row["repo"] != "Ada/Greet"),
    ("repo NOT ILIKE 'ada%' AND repo NOT LIKE 'grace%'", lambda row: row["repo"] in ("linus/git", "Guido/snake")),
    ("changed_lines NOT BETWEEN 10 AND 30", lambda row: not 10 <= row["changed_lines"] <= 30),
    (r"repo LIKE '%r\_et'", lambda row: False),
    ("strength IS NULL", lambda row: row["strength"] is None),
    ("NOT strength IS NULL AND strength >= 0.5", lambda row: (row["strength"] or 0) >= 0.5),
    ("strength <> 0.5", lambda row: row["strength"] not in (None, 0.5)),
    ("coalesce(strength, -1) = -1", lambda row: row["strength"] is None),
    (
        "language IN ('go', 'rust') AND status NOT IN ('derived')",
        lambda r: r["language"] != "python" and r["status"] != "derived",
    ),
    ("n_fail_to_pass IN (1, -2, 3)", lambda row: row["n_fail_to_pass"] in (1, 3)),
    ("n_pass_to_pass / n_fail_to_pass > 10.5", lambda row: row["n_pass_to_pass"] / row["n_fail_to_pass"] > 10.5),
    ("changed_lines / 4 = 2.5", lambda row: row["changed_lines"] == 10),
    ("changed_lines / (changed_files - changed_files) > 0", lambda row: False),
    ("(changed_lines + 2) * 2 = 24", lambda row: row["changed_lines"] == 10),
    ("changed_lines - 2 - 2 = 6", lambda row: row["changed_lines"] == 10),
    ("-changed_lines < - -10 - 30", lambda row: row["changed_lines"] > 20),
    ("created_at >= '2022-05' AND created_at < '2023'", lambda row: "2022-05" <= row["created_at"] < "2023"),
    ("repo < 'a'", lambda row: row["repo"][0].isupper()),
    ("repo BETWEEN 'A' AND 'Z'", lambda row: row["repo"][0].isupper()),
    (
        "lower(repo) = 'ada/greet' OR upper(language) = 'GO'",
        lambda r: r["repo"] == "Ada/Greet" or r["language"] == "go",
    ),
    ("length(repo) = 9 AND substr(repo, 1, 3) = 'Ada'", lambda row: row["repo"] == "Ada/Greet"),
    ("kind || '-' || language = 'bugfix-go'", lambda row: row["language"] == "go"),
    ("abs(n_fail_to_pass - 3) = 2", lambda row: row["n_fail_to_pass"] in (1, 5)),
    ("TRUE", lambda row: True),
    ("FALSE OR NOT TRUE", lambda row: False),
    ("set_aside IS NOT NULL AND tasks.split = 'train'", lambda r: r["set_aside"] is not None and r["split"] == "train"),
    ("license = 'x''; DROP TABLE tasks; --'", lambda row: False),
    ("NAME = 'ada__greet-1.bugfix'", lambda row: row["name"] == "ada__greet-1.bugfix"),
    (" OR ".join(f"changed_lines = {n}" for n in range(400)), lambda row: row["changed_lines"] < 400),
    (f"changed_lines IN ({', '.join(map(str, range(5000)))})", lambda row: True),
]


def test_an_expression_selects_the_same_rows_on_both_databases(listing: Store) -> None:
    for text, wanted in SELECTING:
        expected = [int(row["id"], 16) for row in ROWS if wanted(row)]
        assert select_numbers(listing, parse_filters({"where": text})) == expected, text


REJECTED = [
    ("", "empty"),
    ("   ", "empty"),
    ("kind", "is no condition"),
    ("1", "is no condition"),
    ("color = 'red'", "there is no column color"),
    ('kind = "bugfix"', "single quotes"),
    ("kind = 'x'; DROP TABLE tasks", "';'"),
    ("kind = 'x';", "';'"),
    ("1=1 -- rest", "comments"),
    ("1=1 /* rest */", "comments"),
    ("1=1 UNION SELECT 1", "not one SQL expression"),
    ("1=1 ORDER BY 1", "not one SQL expression"),
    ("1=1) OR (1=1", "not one SQL expression"),
    ("id IN (SELECT id FROM task)", "not possible: query"),
    ("id IN (name)", "IN is followed by"),
    ("EXISTS (SELECT 1)", "not possible"),
    ("(SELECT 1) = 1", "not possible"),
    ("SELECT 1", "not"),
    ("DELETE FROM task", "not"),
    ("PRAGMA query_only", "not"),
    ("load_extension('x') = 1", "LOAD_EXTENSION('x') is not possible; functions: abs"),
    ("pg_read_file('/etc/passwd') = 'x'", "not possible"),
    ("pg_sleep(10) IS NULL", "not possible"),
    ("lo_import('/etc/passwd') > 0", "not possible"),
    ("readfile('x') = 'x'", "not possible"),
    ("randomblob(1000000000) = 'x'", "not possible"),
    ("printf('%1000000000d', 1) = 'x'", "not possible"),
    ("repeat('x', 1000000000) = 'x'", "not possible"),
    ("regexp_like(name, '(a+)+$')", "not possible"),
    ("name ~ '(a+)+$'", "not one SQL expression"),
    ("changed_lines BETWEEN SYMMETRIC 9 AND 1", "symmetric"),
    ("db.tasks.kind = 'x'", "there is no column"),
    ("name COLLATE nocase = 'x'", "not possible"),
    ("changed_lines % 2 = 0", "not possible"),
    ("name GLOB '*'", "not possible"),
    ("count(*) > 1", "not possible"),
    ("row_number() OVER () = 1", "not possible"),
    ("CASE WHEN 1=1 THEN TRUE ELSE FALSE END", "not possible"),
    ("changed_lines::text = '1'", "not possible"),
    ("name = ?", "not possible"),
    ("name = :x", "not possible"),
    ("name = $1", "there is no column"),
    ("changed_lines = '5'", "is a number and '5' a text"),
    ("name > 5", "is a text and 5 a number"),
    ("name + 1 = 2", "name is a text, not a number"),
    ("strength = NULL", "IS NULL"),
    ("strength > NULL", "IS NULL"),
    ("kind IS 'bugfix'", "IS is followed by"),
    ("(kind = 'x') = TRUE", "joined by AND"),
    ("kind AND language", "is a text, not a condition"),
    ("name LIKE other", "LIKE is followed by a text"),
    ("name LIKE 'x%' ESCAPE '!'", "not possible"),
    ("name LIKE 'x\\'", "escape character"),
    ("other.kind = 'x'", "there is no column other.kind"),
    ("sqlite_master.name = 'x'", "there is no column"),
    ("tasks.* = 1", "no column"),
    ("* = 1", "not"),
    ("(kind, repo) = ('a', 'b')", "not possible"),
    ("name = 'a\x00b'", "control characters"),
    ("name = '\udc80'", "control characters"),
    ("name = 'unfinished", "not one SQL expression"),
    ("changed_lines = 1e400", "too large"),
    ("changed_lines = 99999999999999999999", "too large"),
    ("changed_lines" + " * 1000000000000000" * 30 + " > 0", "operators of arithmetic"),
    ("(" * 3000 + "1=1" + ")" * 3000, "nested too deeply"),
    ("NOT " * 3000 + "1=1", "nested too deeply"),
    (" AND ".join(["kind = 'x'"] * 3000), "more than 500 operators"),
    ("kind = '" + "x" * 100_001 + "'", "longer than"),
    ("substr(name, 0) = 'x'", "number 1"),
    ("substr(name, changed_lines) = 'x'", "whole numbers"),
    ("lower(name, 'x') = 'x'", "not"),
    ("trim(BOTH 'x' FROM name) = 'x'", "not possible"),
]


@pytest.mark.parametrize(
    ("text", "problem"), REJECTED, ids=[text[:40].encode("unicode_escape").decode() for text, _ in REJECTED]
)
def test_anything_else_is_rejected_in_one_line_that_names_it(text: str, problem: str) -> None:
    with pytest.raises(UsageError) as caught:
        parse_filters({"where": text})
    line = str(caught.value)
    assert line.startswith("--where: ")
    assert problem in line
    assert len(line) < 1200
    assert "\n" not in line


def test_a_filter_that_needs_the_database_is_no_condition() -> None:
    with pytest.raises(ValueError, match="resolve_filters"):
        TaskFilters(selection="small").apply(None)  # type: ignore[arg-type]

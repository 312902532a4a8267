"""The table of kinds and formats is current: its rows, its columns and its reasons."""

from __future__ import annotations

import importlib.machinery
import importlib.util
from types import ModuleType

from exporters import FORMATS
from taskdb.records import Kind
from tests.docs.test_examples import ROOT


def load_script() -> ModuleType:
    loader = importlib.machinery.SourceFileLoader("format_table", str(ROOT / "scripts" / "format-table"))
    spec = importlib.util.spec_from_loader(loader.name, loader)
    assert spec is not None
    module = importlib.util.module_from_spec(spec)
    loader.exec_module(module)
    return module


def test_the_table_of_formats_is_what_the_script_writes() -> None:
    script = load_script()
    page = script.PAGE.read_text()
    cells = script.read_cells(page)
    table = page.partition(script.BEGIN)[2].partition(script.END)[0]
    assert table == script.render_table(cells, is_whole=script.WHOLE in page), "run scripts/format-table"
    assert {(cell.gold, cell.nothing) for cell in cells.values()} <= {("1", "0")}
    assert all(kind in list(Kind) and name in FORMATS for kind, name in cells)


def test_a_reason_replaces_rewards_and_a_mark_names_what_they_rest_on() -> None:
    script = load_script()
    rewards = {"test-writing": True, "bugfix": True, "feature": False}
    cells = {(kind, "swebench"): script.Cell("1", "0", by_consumer) for kind, by_consumer in rewards.items()}
    table = script.render_table(cells)
    rows = {line.split(" | ")[0].strip("| "): line.split(" | ") for line in table.splitlines() if " | " in line}
    column = next(iter(rows.values())).index("swebench")
    assert rows["test-writing"][column] == "(b)"
    assert (rows["bugfix"][column], rows["feature"][column]) == ("1 / 0", "1 / 0 *")
    assert "- (a) performance is not graded by lists of tests alone" in table
    assert "- `swebench`: " in table
    assert script.render_table(cells, is_whole=True) == table + script.WHOLE
    del cells["test-writing", "swebench"]
    assert script.read_cells(table) == cells

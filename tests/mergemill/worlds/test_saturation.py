"""`mergemill worlds saturation`: curves over the worlds, scenarios and tools of a database."""

from __future__ import annotations

from pathlib import Path

import pytest

from mergemill.cli.worlds.saturation import UNIT_WORDS
from mergemill.worlds.saturation import UNITS, build_saturation
from taskdb.artifacts import Artifacts
from taskdb.store import Store
from tests.cli import run_mergemill
from tests.samplers.worlds.database import make_database


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("worlds")
    make_database(folder)
    return folder


def test_curves_are_over_worlds_scenarios_or_tools(folder: Path) -> None:
    assert tuple(UNITS) == UNIT_WORDS
    counts = {}
    with Store.open(f"sqlite:///{folder}/mergemill.db", create=False) as store:
        artifacts = Artifacts(folder / "mergemill-store" / "artifacts")
        reports = {unit: build_saturation(store, artifacts, unit, orders=20, seed=0) for unit in UNITS}
    for unit, n_units in (("world", 3), ("scenario", 6), ("tool", 48)):
        further = {row["measure"]: row for row in reports[unit].further}
        assert {(row["units"], row["families"]) for row in further.values()} == {(n_units, 3)}
        assert {(row["low"], row["high"]) for row in further.values()} == {(None, None)}  # of three worlds
        for measure, row in further.items():
            curve = [point for point in reports[unit].points if point["measure"] == measure]
            assert curve[-1]["n"] == n_units
            assert curve[-1]["distinct"] == curve[-1]["distinct_low"] == row["distinct"]
            assert curve[0]["gain"] == curve[0]["distinct"]
        counts[unit] = {measure: row["distinct"] for measure, row in further.items()}
    assert counts["world"]["tools"] == counts["tool"]["tools"] == 48
    assert counts["world"]["rules"] == counts["tool"]["rules"] > counts["scenario"]["rules"]
    assert counts["world"]["sequences"] == counts["scenario"]["sequences"]
    assert "sequences" not in counts["tool"]


def test_the_command_prints_points_and_what_a_further_unit_adds(folder: Path) -> None:
    done = run_mergemill("worlds", "saturation", cwd=folder)
    points, further = done.stdout.split("\n\n")
    assert points.splitlines()[0].split()[:4] == ["by", "measure", "n", "distinct"]
    assert further.splitlines()[1].split()[:6] == ["world", "tools", "3", "3", "48", "16"]
    lines = run_mergemill("worlds", "saturation", "--by", "scenario", "--orders", "2", "--json", cwd=folder).lines
    assert {(line["event"], line["by"]) for line in lines} == {("point", "scenario"), ("further", "scenario")}
    assert run_mergemill("worlds", "saturation", "--by", "moon", cwd=folder).exit_code == 2

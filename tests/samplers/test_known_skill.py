"""Agents in containers on a set of several kinds: exact means, and the same report after kills."""

from __future__ import annotations

import shutil
import sys
from pathlib import Path

import pytest

from benchmarks import known_skill
from mergemill.bench.sets import freeze, write_set
from taskdb.records import Kind, Task
from taskdb.records.bench import BenchLimits
from taskdb.store import Store

KINDS = (Kind.BUGFIX, Kind.REVIEW, Kind.TEST_WRITING)


@pytest.mark.slow
@pytest.mark.docker
def test_two_scaffolds_have_the_known_mean_before_and_after_kills(
    tasks_of_all_kinds: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    folder = shutil.copytree(tasks_of_all_kinds, tmp_path / "copy")
    with Store.open(f"sqlite:///{folder}/mergemill.db") as store:
        tasks = [task for task in store.load_all(Task) if task.kind in KINDS]
        assert {task.kind for task in tasks} == set(KINDS)
        made = freeze(store, "mixed", tasks, BenchLimits(turns=20, seconds=600.0), held_out=True)
    write_set(made, tmp_path / "mixed.json")
    words = [str(tmp_path / "mixed.json"), "--database", str(folder / "mergemill.db")]
    words += ["--scaffolds", "react,mini-swe-agent", "--skill", "0.5", "--kills", "3"]
    monkeypatch.setattr(sys, "argv", ["known_skill", *words])
    assert known_skill.main() == 0, capsys.readouterr().out
    assert "reports are equal" in capsys.readouterr().out

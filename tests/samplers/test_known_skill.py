"""Agents in containers on a set of several kinds: exact means, and the same report after kills."""

from __future__ import annotations

import shutil
import sys
from pathlib import Path

import pytest

from benchmarks import known_skill

KINDS = ("bugfix", "review", "scenario", "test-writing")


@pytest.mark.slow
@pytest.mark.docker
def test_two_scaffolds_have_the_known_mean_before_and_after_kills(
    tasks_of_all_kinds: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    folder = shutil.copytree(tasks_of_all_kinds, tmp_path / "copy")
    words = ["--database", str(folder / "mergemill.db"), "--per-kind", "1"]
    words += ["--kills", "3"]
    monkeypatch.setattr(sys, "argv", ["known_skill", *words])
    assert known_skill.main() == 0, capsys.readouterr().out
    printed = capsys.readouterr().out
    assert "reports are equal" in printed
    assert f"8 rollouts of {', '.join(f'1 {kind}' for kind in KINDS)} in" in printed

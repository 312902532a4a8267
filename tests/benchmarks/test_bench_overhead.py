"""The comparison of `bench run` with `sample` comes out bad where the former is slower, or makes other rollouts."""

from __future__ import annotations

from pathlib import Path

import pytest

from benchmarks import bench_overhead
from benchmarks.bench_overhead import Comparison, MeasuredCommand, main

PLANS = frozenset({"a", "b"})


def compare(
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    factor: float,
    added: float = 0.01,
    plans: frozenset[str] = PLANS,
) -> tuple[int, str, list[str]]:
    """Return exit code, output and names of the folders.

    `sample` takes a second, `bench run` `factor` of them, and `added` seconds of processor time more.
    """
    folders: list[str] = []

    def run(seconds: float, cpu_seconds: float, made: frozenset[str], folder: Path) -> MeasuredCommand:
        folder.mkdir()
        folders.append(folder.name)
        return MeasuredCommand(seconds=seconds, cpu_seconds=cpu_seconds, plans=made)

    monkeypatch.setattr(bench_overhead, "make_source", lambda _: 2)
    monkeypatch.setattr(Comparison, "run_sample", lambda _, folder: run(1.0, 0.5, PLANS, folder))
    monkeypatch.setattr(Comparison, "run_bench", lambda _, folder: run(factor, 0.5 + added, plans, folder))
    code = main(["--attempts", "1", "--rounds", "3"])
    return code, capsys.readouterr().out, folders


def test_both_commands_are_first_in_turn(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    code, printed, folders = compare(monkeypatch, capsys, 1.01)
    assert (code, folders) == (0, ["sample-0", "bench-0", "bench-1", "sample-1", "sample-2", "bench-2"])
    assert "2 rollouts: sample 1.0 s, bench run 1.0 s: 1.010 times (1.010, 1.010, 1.010)" in printed
    assert "bench run uses 0.01 s of processor time more: 1.010 times" in printed


def test_a_slow_command_and_other_rollouts_end_with_1(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    assert compare(monkeypatch, capsys, 1.03)[0] == 1
    assert compare(monkeypatch, capsys, 1.0, added=0.03)[0] == 1
    assert compare(monkeypatch, capsys, 1.0, plans=frozenset({"a"}))[0] == 1

"""The benchmark of the gateway runs small and judges its goals by what it measured."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from benchmarks.gateway.__main__ import judge_goals, render_result, summarise

ROOT = Path(__file__).parents[2]


def test_it_measures_model_gateway_and_streams() -> None:
    options = ["--rounds", "1", "--requests", "20", "--seconds", "0.3", "--streams", "20", "--tokens", "4"]
    done = subprocess.run(
        [sys.executable, "-m", "benchmarks.gateway", *options, "--pause", "0.1", "--no-litellm", "--json"],
        cwd=ROOT,
        env=os.environ | {"PYTHONPATH": str(ROOT)},
        capture_output=True,
        text=True,
        check=True,
    )
    result = json.loads(done.stdout)
    assert set(result["rows"]) == {"model alone", "gateway"}
    assert result["rows"]["gateway"]["added median at 1"] > 0
    assert 0 < result["rows"]["gateway"]["requests/s"] < result["rows"]["model alone"]["requests/s"]
    streams = result["streams"]["gateway"]
    assert (streams["finished"], streams["failed"]) == (20, 0)
    assert streams["recorded"] >= 20 + 2 * 20
    assert result["goals"]["5 times LiteLLM's throughput"] is None
    assert "- not measured: 5 times LiteLLM's throughput" in render_result(result)


@pytest.mark.parametrize(("added", "rate", "failed", "reached"), [(2, 60, 0, True), (4, 40, 1, False)])
def test_a_goal_is_reached_or_missed_by_the_figures(added: float, rate: float, failed: int, reached: bool) -> None:
    rates = {
        ("model alone", "median at 1"): [0.001, 0.002],
        ("gateway", "median at 1"): [0.001 + added / 1000, 0.002 + added / 1000],
        ("gateway", "requests/s"): [rate],
        ("model alone", "requests/s"): [1000.0],
        ("LiteLLM", "requests/s"): [10.0],
    }
    result = {"rows": summarise(rates), "streams": {"gateway": {"failed": failed}}}
    assert set(judge_goals(result).values()) == {reached}

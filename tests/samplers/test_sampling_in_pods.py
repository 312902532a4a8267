"""Agents in pods: their programs are copied into them, and they reach the gateway without a network."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.cli import run_mergemill
from tests.samplers.conftest import BUGFIX, OTHER_BUGFIX, WORDS
from tests.samplers.scripted_model import ScriptedModel
from tests.samplers.shell_player import ShellPlayer

FIX = "sed \"s/split(' ')/split()/\" greet/words.py > /tmp/words.py && cp /tmp/words.py greet/words.py"
"""Without `sed -i`, which Qwen Code refuses for a file that its model has not read."""
SCAFFOLDS = ("react", "mini-swe-agent", "claude-code", "qwen-code")
"""One that runs its commands from outside, a program in Python, and two in JavaScript with either dialect."""


@pytest.mark.kubernetes
@pytest.mark.timeout(1500)
def test_agents_with_programs_of_their_own_solve_a_task_in_pods(tasks: Path, cluster_registry: str) -> None:
    pods = ("--sandbox", "kubernetes", "--kubernetes-registry", cluster_registry)
    with ScriptedModel(ShellPlayer({WORDS: [FIX, "git diff --stat"]})) as model:
        words = ("--scaffold", ",".join(SCAFFOLDS), "--model", "scripted", "--upstream", model.url, "--json", *pods)
        done = run_mergemill("sample", *words, cwd=tasks)
    assert done.exit_code == 0, done.stderr
    values = {(event["scaffold"], event["task"]): event["value"] for event in done.lines[:-1]}
    solved = {(name, BUGFIX): 1.0 for name in SCAFFOLDS}
    assert values == solved | {(name, OTHER_BUGFIX): 0.0 for name in SCAFFOLDS}
    assert {event["status"] for event in done.lines[:-1]} == {"done"}

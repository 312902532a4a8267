"""A history that fills the window is cleared in the requests of a real rollout, which its trajectories show."""

from __future__ import annotations

from dataclasses import replace

import pytest

from samplers.context.rules import CLEARED, PRESETS, ClearingRule
from samplers.scaffolds.react import ReactScaffold
from taskdb.records.rollouts import RolloutStatus
from tests.samplers.bench import AgentBench
from tests.samplers.shell_player import ShellPlayer

pytestmark = pytest.mark.docker


def test_outputs_of_older_turns_are_cleared_by_the_rule_that_the_version_names(bench: AgentBench) -> None:
    talk = PRESETS["talk"]
    assert isinstance(talk, ClearingRule)
    scaffold = ReactScaffold(replace(talk, window=1, trigger=0.0, first=1, last=1))
    commands = ["seq 3", "seq 4 5", *bench.script_gold()]
    result = bench.run(scaffold, ShellPlayer(dict.fromkeys(bench.make_player().commands, commands)))
    rollout = result.rollout
    assert (rollout.status, rollout.value) == (RolloutStatus.DONE, 1.0), rollout.detail
    assert rollout.scaffold_version == scaffold.version
    assert scaffold.version.startswith("1+talk(window=1,")
    outputs = [
        [message["content"] for message in request.body["messages"] if message["role"] == "tool"]
        for request in result.requests
    ]
    assert [len(texts) for texts in outputs] == [0, 1, 2, 3, 4]
    assert all(texts[0] == "1\n2\n3\n\n[exit code 0]" for texts in outputs[1:])
    assert [[text == CLEARED for text in texts[1:]] for texts in outputs[2:]] == [
        [False],
        [True, False],
        [True, True, False],
    ]
    [trajectory] = result.trajectories
    # The third, fourth and fifth request continue the second, whose answer has no output yet.
    assert (trajectory.n_requests, trajectory.n_branches) == (5, 3)

"""EnvScaler's own programs on our files: its environment for ROLL, and its way from trajectories to alpaca rows.

Its source is at hand where MERGEMILL_TESTS_ENVSCALER names a folder with a clone of RUC-NLPIR/EnvScaler.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from tests.worlds.bundles.making import bundle_examples, write_examples
from tests.worlds.bundles.test_training_rows import read_lines

ROLL = """\
import json, sys, types
from pathlib import Path
gem = types.ModuleType("gem")
gem.Env = type("Env", (), {"reset": lambda self, seed=None: None})
dotenv = types.ModuleType("dotenv")
dotenv.load_dotenv = lambda *_, **__: None
sys.modules.update(gem=gem, dotenv=dotenv)
source, folder, calls = Path(sys.argv[1]), Path(sys.argv[2]), json.loads(sys.argv[3])
sys.path.insert(0, str(source / "rl" / "roll" / "pipeline" / "agentic" / "env"))
from envscaler_env import EnvScalerNonConvRLEnv
env = EnvScalerNonConvRLEnv("train", str(folder / "environments.json"), str(folder / "scenarios.json"))
end = {"content": "Task Completed"}
for number, task in enumerate(env.task_items):
    rewards = []
    for plan in (calls[task["task_id"]], []):
        observation, info = env.reset(task_index=number)
        assert observation["content"] == task["task"]
        assert info["tools"][0]["function"]["name"]
        for call in plan:
            observation, reward, terminated, truncated, info = env.step({"tool_calls": [{"function": call}]})
            assert observation["type"] == "tool" and not terminated, observation
        observation, reward, terminated, truncated, info = env.step(end)
        assert terminated
        rewards.append(reward)
    sys.stderr.write(json.dumps([task["task_id"], rewards]) + "\\n")
"""
ALPACA = """\
import json, sys
from pathlib import Path
sys.path.insert(0, str(Path(sys.argv[1]) / "sft"))
from step2_process_llamafactory_format import process_alpaca_mask_history
print(json.dumps(process_alpaca_mask_history(json.loads(sys.stdin.read()))))
"""


@pytest.fixture(scope="module")
def source() -> Path:
    folder = os.environ.get("MERGEMILL_TESTS_ENVSCALER")
    if not folder:
        pytest.skip("MERGEMILL_TESTS_ENVSCALER names no clone of RUC-NLPIR/EnvScaler")
    return Path(folder)


def test_its_environment_for_roll_pays_the_oracle_1_and_nothing_0(source: Path, tmp_path: Path) -> None:
    write_examples("envscaler", tmp_path / "out")
    calls = {
        scenario.definition.name: [
            {"name": call.tool, "arguments": json.dumps(dict(call.arguments))} for call in scenario.conversation.calls
        ]
        for world in bundle_examples()
        for scenario in world.scenarios
        if scenario.conversation is not None
    }
    command = [sys.executable, "-c", ROLL, source, tmp_path / "out", json.dumps(calls)]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    rewards = dict(json.loads(line) for line in done.stderr.splitlines() if line.startswith('["'))
    assert rewards == {name: [1.0, 0.0] for name in calls}


def test_its_alpaca_rows_are_ours(source: Path, tmp_path: Path) -> None:
    """Between its two steps a tokenizer writes calls and results as text, which is what our rows have."""
    write_examples("alpaca", tmp_path / "out")
    ours = read_lines(tmp_path / "out" / "train.jsonl")
    conversations: dict[str, list[dict[str, Any]]] = {}
    for row in ours:
        messages = conversations.setdefault(row["scenario"], [{"role": "system", "content": row["system"]}])
        messages += [{"role": "user", "content": row["instruction"]}, {"role": "assistant", "content": row["output"]}]
    given = json.dumps([{"messages": messages} for messages in conversations.values()])
    command = [sys.executable, "-c", ALPACA, source]
    done = subprocess.run(command, input=given, capture_output=True, text=True, check=True)
    keys = ("instruction", "input", "output", "system", "history")
    assert json.loads(done.stdout) == [{key: row[key] for key in keys} for row in ours]

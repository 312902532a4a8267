"""Instruction tasks in Harbor itself: its oracle earns 1, and an agent is given what its log is graded on."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

import exporters
from evaluation.instructions.agent_log import write_agent_log
from tests.containers import make_services
from tests.exporters.consumers import run_harbor
from tests.exporters.instructed import CARELESS, DUTIFUL, REPOSITORY, make_instructed_task
from tests.exporters.verifier_images import make_trusting_base

pytestmark = [pytest.mark.slow, pytest.mark.docker, pytest.mark.timeout(1800)]

AGENT = '''\
import base64, json, os, shlex
from harbor.agents.base import BaseAgent
from harbor.agents.capabilities import AgentCapabilities

CALLS = [
    {"jsonrpc": "2.0", "id": 1, "method": "initialize", "params": {}},
    {"jsonrpc": "2.0", "id": 2, "method": "tools/list", "params": {}},
    {"jsonrpc": "2.0", "id": 3, "method": "tools/call", "params": {"name": "notes", "arguments": {}}},
]


class ScriptedAgent(BaseAgent):
    """Writes what it is given to SEEN, applies a patch, and leaves the log of the file LOG, if any."""

    capabilities = AgentCapabilities(atif=True, skills=True, mcp_servers=True)

    @staticmethod
    def name():
        return "scripted"

    def version(self):
        return "1"

    async def setup(self, environment):
        return

    async def run(self, instruction, environment, context):
        async def read(command):
            result = await environment.exec(command)
            return result.stdout or result.stderr

        lines = "\\n".join(json.dumps(call) for call in CALLS)
        seen = {"instruction": instruction}
        for server in self.mcp_servers:
            command = shlex.join([server.command, *server.args])
            seen[server.name] = await read(f"printf '%s\\\\n' {shlex.quote(lines)} | {command}")
        seen["skills"] = await read(f"cat {self.skills_dir}/*/SKILL.md")
        for name in ("AGENTS.md", "CLAUDE.md", "QWEN.md"):
            seen[name] = await read(f"cat {name}")
        patch = base64.b64encode(open(os.environ["PATCH"], "rb").read()).decode()
        seen["applied"] = await read(f"echo {patch} | base64 -d | git apply && git status --short")
        with open(os.environ["SEEN"], "w") as file:
            json.dump(seen, file)
        # As agents of Harbor do it: on its side, after the run.
        if log := os.environ.get("LOG"):
            (self.logs_dir / "trajectory.json").write_bytes(open(log, "rb").read())
'''


@pytest.fixture(scope="module")
def bundle(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("harbor")
    services = make_services(folder)
    exporters.export_tasks("harbor", [make_instructed_task(services, folder)], {}, folder / "out", services)
    (folder / "out" / "scripted_agent.py").write_text(AGENT)
    return folder / "out"


@pytest.fixture(scope="module")
def base(tmp_path_factory: pytest.TempPathFactory) -> str:
    folder = tmp_path_factory.mktemp("base")
    return make_trusting_base(make_services(folder), folder / "context")


@pytest.mark.parametrize(("agent", "reward"), [("oracle", 1), ("nop", 0)])
def test_the_oracle_of_harbor_earns_1_and_an_agent_that_does_nothing_0(
    agent: str, reward: int, bundle: Path, base: str, tmp_path: Path
) -> None:
    ((name, rewards),) = run_harbor(bundle, tmp_path, agent, base=base).items()
    assert (name, rewards["reward"]) == ("ada__words-1.instructions", reward)


@pytest.mark.parametrize("name", ["dutiful", "test-before-finish", ""])
def test_an_agent_is_given_the_instructions_and_graded_on_its_log(
    name: str, bundle: Path, base: str, tmp_path: Path
) -> None:
    variables = {
        "PATCH": str(bundle / "ada__words-1.instructions/solution/gold.patch"),
        "SEEN": str(tmp_path / "seen.json"),
    }
    if name:
        answers = {"dutiful": DUTIFUL, **CARELESS}[name]
        (tmp_path / "log.json").write_bytes(write_agent_log(answers, agent="scripted", given=[REPOSITORY.text]))
        variables["LOG"] = str(tmp_path / "log.json")
    trials = run_harbor(bundle, tmp_path, "scripted_agent:ScriptedAgent", base=base, **variables)
    seen = json.loads((tmp_path / "seen.json").read_text())
    assert "Wide gaps are miscounted" in seen["instruction"]
    assert seen["AGENTS.md"] == f"# Words\n\n- {REPOSITORY.text}\n"
    assert seen["CLAUDE.md"] == seen["QWEN.md"] == f"- {REPOSITORY.text}\n"
    assert "Test it." in seen["skills"]
    answers = [json.loads(line)["result"] for line in seen["project"].splitlines()]
    assert answers[1]["tools"][0]["description"] == "Call it before you edit."
    assert answers[2]["content"] == [{"type": "text", "text": "None."}]
    assert seen["applied"].split() == ["M", "AGENTS.md", "M", "words.py"]
    if not name:  # without a log there is no value
        assert trials == {}
        return
    (rewards,) = trials.values()
    assert rewards["reward"] == (1 if name == "dutiful" else 0)
    assert rewards["failed_constraints"] == (0 if name == "dutiful" else 1)

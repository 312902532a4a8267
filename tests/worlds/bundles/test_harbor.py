"""Harbor tasks: layout, the world as a command and an MCP server, the verifier; played on this machine."""

from __future__ import annotations

import asyncio
import json
import os
import re
import shutil
import subprocess
import sys
import tomllib
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import pytest

import exporters
from tests.exporters.consumers import install_harbor, run_command, run_harbor
from tests.worlds.bundles.making import bundle_world, write_examples
from tests.worlds.programs import CHECKS, SOLUTION, make_scenario, make_world
from worlds.bundles.formats import FORMATS
from worlds.bundles.writer import write_bundle

KEPT = CHECKS + '\n\ndef has_vase(final_state):\n    return final_state["items"]["I-2"]["name"] == "vase"\n'


@dataclass(frozen=True)
class LocalTrial:
    """A task's folder with the paths in its scripts moved to a folder of the test."""

    task: Path
    root: Path

    def run(self, *words: str, given: str = "") -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            [self.root / "bin" / "world", *words],
            input=given,
            env={**os.environ, "PATH": self.path},
            capture_output=True,
            text=True,
            check=False,
        )

    @property
    def path(self) -> str:
        return f"{self.root / 'bin'}:{os.environ['PATH']}"

    def solve(self) -> None:
        script = self.task / "solution" / "solve.sh"
        subprocess.run([script], env={**os.environ, "PATH": self.path}, check=True, capture_output=True)

    def verify(self) -> dict[str, float]:
        config = tomllib.loads((self.task / "task.toml").read_text())
        command = self.move(config["verifier"]["collect"][0]["command"])
        subprocess.run(["bash", "-c", command], check=True)
        script = self.root / "test.sh"
        script.write_text(self.move((self.task / "tests" / "test.sh").read_text()))
        subprocess.run(["sh", script], env={**os.environ, "PATH": self.path}, check=True)
        reward: dict[str, float] = json.loads((self.root / "logs" / "verifier" / "reward.json").read_text())
        return reward

    def move(self, text: str) -> str:
        places = {
            "/opt/mergemill-world": self.task / "environment" / "programs",
            "/var/lib/mergemill-world": self.root / "state",
            "/logs/": f"{self.root}/logs/",
            "'/tests'": f"'{self.task / 'tests'}'",
        }
        for old, new in places.items():
            text = text.replace(old, str(new))
        return text


def start_trial(task: Path, root: Path) -> LocalTrial:
    trial = LocalTrial(task, root)
    for name in ("bin", "state", "logs/artifacts"):
        (root / name).mkdir(parents=True)
    (root / "bin" / "python3").symlink_to(sys.executable)
    world = root / "bin" / "world"
    world.write_text(trial.move((task / "environment" / "world").read_text()))
    world.chmod(0o755)
    return trial


@pytest.fixture(scope="module")
def examples(tmp_path_factory: pytest.TempPathFactory) -> Path:
    out = tmp_path_factory.mktemp("harbor") / "out"
    write_examples("harbor", out)
    return out


@pytest.fixture
def trial(tmp_path: Path) -> LocalTrial:
    """A trial of the small world of the tests, whose last check is a kept one."""
    world = bundle_world(make_world(), [make_scenario(KEPT)])
    write_bundle([world], tmp_path / "out", FORMATS["harbor"], left_out={}, files={})
    return start_trial(tmp_path / "out" / "store.first", tmp_path / "trial")


def call_tool(trial: LocalTrial, tool: str, **arguments: Any) -> Any:
    return json.loads(trial.run("call", tool, json.dumps(arguments)).stdout)


def test_the_oracle_earns_1_and_nothing_0(examples: Path, tmp_path: Path) -> None:
    tasks = sorted(path.parent for path in examples.glob("*/task.toml"))
    assert len(tasks) == 6
    for task in tasks[::2]:  # one of each world
        idle = start_trial(task, tmp_path / "idle" / task.name)
        assert idle.verify() == {"reward": 0.0, "solved": 0.0}
        solved = start_trial(task, tmp_path / "solved" / task.name)
        solved.solve()
        assert solved.verify() == {"reward": 1.0, "solved": 1.0}


def test_a_part_earns_its_share_and_a_broken_kept_check_nothing(trial: LocalTrial) -> None:
    assert call_tool(trial, "move_item", item_id="I-1", shelf_id="S-2") == {"success": True, "message": "moved"}
    assert trial.verify()["reward"] == pytest.approx(1 / 3)
    call_tool(trial, "rename_item", item_id="I-2", name="jug")
    assert trial.verify()["reward"] == 0.0
    body = json.loads((trial.root / "logs" / "verifier" / "checks.json").read_text())
    assert body[-1] == {"function": "has_vase", "holds": False, "held_at_start": True}


def test_the_command_prints_results_and_says_what_is_wrong(trial: LocalTrial) -> None:
    assert [tool["name"] for tool in json.loads(trial.run("tools").stdout)][:2] == ["get_item", "count_items"]
    failed = trial.run("call", "get_item", '{"item_id": "I-9"}')
    assert (failed.returncode, json.loads(failed.stdout)["success"]) == (1, False)
    assert "there is no tool fly" in trial.run("call", "fly").stdout
    for words in (["call", "get_item", "{broken"], ["call", "get_item", "[]"], ["call"], []):
        done = trial.run(*words)
        assert (done.returncode, "usage: world" in done.stderr, "Traceback" in done.stderr) == (2, True, False)


def test_the_state_of_the_agents_container_does_not_count(trial: LocalTrial) -> None:
    """Only the log of calls does, and what it earns is what these calls lead to."""
    call_tool(trial, "count_items")
    saved = json.loads((trial.root / "state" / "state.json").read_text())
    saved["state"]["items"]["I-1"] |= {"name": "floor lamp", "shelf_id": "S-2"}
    (trial.root / "state" / "state.json").write_text(json.dumps(saved))
    assert trial.verify()["reward"] == 0.0
    log = trial.root / "state" / "calls.jsonl"
    log.write_text('nonsense\n{"tool": 3}\n[[[\n{"tool": "fly", "arguments": {}}\n' + log.read_text())
    assert trial.verify()["reward"] == 0.0
    log.unlink()
    log.symlink_to("/dev/zero")
    assert trial.verify()["reward"] == 0.0


def test_a_fault_of_the_world_earns_nothing(tmp_path: Path) -> None:
    world = bundle_world(make_world("# take", "1 / 0"), [make_scenario(KEPT)])
    write_bundle([world], tmp_path / "out", FORMATS["harbor"], left_out={}, files={})
    trial = start_trial(tmp_path / "out" / "store.first", tmp_path / "trial")
    trial.solve()
    assert trial.verify()["reward"] == 1.0
    answer = call_tool(trial, "take_items", item_id="I-1", count=1)
    assert answer["error"].startswith("the environment has a fault: raises: ZeroDivisionError")
    assert trial.verify()["reward"] == 0.0


def test_a_client_of_mcp_lists_and_calls_tools(trial: LocalTrial) -> None:
    call = {"name": "move_item", "arguments": {"item_id": "I-1", "shelf_id": "S-2"}}
    messages: list[Any] = [
        {"jsonrpc": "2.0", "id": 1, "method": "initialize", "params": {"protocolVersion": "2025-03-26"}},
        {"jsonrpc": "2.0", "method": "notifications/initialized"},
        {"jsonrpc": "2.0", "id": 2, "method": "tools/list"},
        {"jsonrpc": "2.0", "id": "three", "method": "tools/call", "params": call},
        {"jsonrpc": "2.0", "id": 4, "method": "tools/call", "params": {**call, "arguments": {"item_id": 5}}},
        {"jsonrpc": "2.0", "id": 5, "method": "tools/call", "params": {"name": 5}},
        {"jsonrpc": "2.0", "id": 6, "method": "resources/list"},
        {"jsonrpc": "2.0", "id": 7, "method": "ping"},
        ["no request"],
    ]
    given = "".join(json.dumps(message) + "\n" for message in messages) + "no json\n"
    done = trial.run("mcp", given=given)
    assert done.returncode == 0, done.stderr
    answers = [json.loads(line) for line in done.stdout.splitlines()]
    assert [answer["id"] for answer in answers] == [1, 2, "three", 4, 5, 6, 7, None, None]
    assert answers[0]["result"]["protocolVersion"] == "2025-03-26"
    assert answers[0]["result"]["capabilities"] == {"tools": {}}
    tools = answers[1]["result"]["tools"]
    assert [tool["name"] for tool in tools][:2] == ["get_item", "count_items"]
    assert tools[0]["inputSchema"]["required"] == ["item_id"]
    assert answers[2]["result"]["isError"] is False
    assert json.loads(answers[2]["result"]["content"][0]["text"]) == {"success": True, "message": "moved"}
    assert answers[3]["result"]["isError"] is True
    assert [answer["error"]["code"] for answer in answers if "error" in answer] == [-32602, -32601, -32600, -32700]
    assert trial.verify()["reward"] == pytest.approx(1 / 3)


def test_the_reference_client_of_mcp_solves_a_task(trial: LocalTrial) -> None:
    mcp = pytest.importorskip("mcp")

    async def solve() -> None:
        command = mcp.StdioServerParameters(
            command=str(trial.root / "bin" / "world"), args=["mcp"], env={"PATH": trial.path}
        )
        async with mcp.stdio_client(command) as streams, mcp.ClientSession(*streams) as session:
            await session.initialize()
            listed = await session.list_tools()
            assert [tool.name for tool in listed.tools][:2] == ["get_item", "count_items"]
            for call in SOLUTION:
                done = await session.call_tool(call.tool, dict(call.arguments))
                assert json.loads(done.content[0].text)["success"] is True

    asyncio.run(solve())
    assert trial.verify() == {"reward": 1.0, "solved": 1.0}


def test_the_layout_is_that_of_a_sealed_task(examples: Path) -> None:
    task = examples / "library_loans.busy_morning"
    config = tomllib.loads((task / "task.toml").read_text())
    assert config["schema_version"] == "1.4"
    assert config["task"]["name"] == "mergemill/library_loans.busy_morning"
    assert config["agent"]["user"] == "mergemill"
    [server] = config["environment"]["mcp_servers"]
    assert (server["transport"], server["args"]) == ("stdio", ["mcp"])
    verifier = config["verifier"]
    assert (verifier["environment_mode"], verifier["environment"]["network_mode"]) == ("separate", "no-network")
    assert "docker_image" not in verifier["environment"]
    assert config["metadata"]["environment"] == "synthetic"
    for script in ("environment/world", "solution/solve.sh", "tests/test.sh"):
        assert (task / script).stat().st_mode & 0o111
    hidden = [path for path in (task / "environment").rglob("*") if path.is_file() and b"has_paid" in path.read_bytes()]
    assert hidden == []
    assert b"check_process" not in b"".join(p.read_bytes() for p in (task / "environment").rglob("*.py"))
    text = (task / "instruction.md").read_text()
    assert "Bruno Keller (M-2) pays 300 cents" in text
    assert "## Rules" in text
    dockerfile = (task / "environment" / "Dockerfile").read_text()
    assert re.search(r"^ARG BASE=python@sha256:[0-9a-f]{64}$", dockerfile, re.MULTILINE)


def test_what_cannot_be_a_folder_is_left_out(tmp_path: Path) -> None:
    scenario = replace(make_scenario(), name="../../evil")
    world = bundle_world(make_world(), [scenario, make_scenario()])
    counts = write_bundle([world], tmp_path / "out", FORMATS["harbor"], left_out={}, files={})
    assert (counts.rows, counts.scenarios, dict(counts.left_out)) == (1, 1, {"its name cannot be that of a folder": 1})
    assert not (tmp_path.parent / "evil").exists()


@pytest.mark.slow
def test_harbor_lint_finds_nothing(examples: Path, tmp_path: Path) -> None:
    tasks = sorted(path.parent for path in examples.glob("*/task.toml"))
    variables = {"LITELLM_LOCAL_MODEL_COST_MAP": "True"}
    output = run_command(install_harbor(), "harbor", "lint", "--json", *tasks, cwd=tmp_path, **variables)
    assert json.loads(output) == []


@pytest.mark.docker
@pytest.mark.slow
def test_harbor_runs_the_tasks_in_containers(examples: Path, tmp_path: Path) -> None:
    """Its own program, with the oracle and with an agent that does nothing."""
    bundle = tmp_path / "bundle"
    for task in sorted(path.parent for path in examples.glob("*/task.toml"))[::2]:  # one of each world
        shutil.copytree(task, bundle / task.name)
    engine = Path(exporters.__file__).with_name("harbor_engine.py")
    (bundle / "harbor_engine.py").write_bytes(engine.read_bytes())
    names = {path.parent.name for path in bundle.glob("*/task.toml")}
    for agent, reward in (("oracle", 1.0), ("nop", 0.0)):
        trials = run_harbor(bundle, tmp_path, agent)
        assert {name: result["reward"] for name, result in trials.items()} == dict.fromkeys(names, reward)

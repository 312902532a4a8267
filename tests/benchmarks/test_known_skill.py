"""A model of known skill does its part of each subject, and another mean than the known one is named."""

from __future__ import annotations

import json
import subprocess
from pathlib import Path

from benchmarks.known_skill import ScriptedScenario, ScriptedSubject, SkilledModel, check_means, write_file
from tests.samplers.scripted_model import Call, ModelRequest, Turn
from tests.samplers.worlds.player import COMPLETED
from worlds.definitions import Call as WorldCall

FIRST = ScriptedSubject(instruction="Fix it.\nAll of it.", command="echo 1", value=1.0)
SECOND = ScriptedSubject(instruction="Fix it.", command="echo 2", value=0.0)
BASH = {"type": "function", "function": {"name": "bash", "parameters": {"properties": {"command": {"type": "string"}}}}}


def ask(*texts: str) -> list[str]:
    """Return the commands of a conversation with these messages."""
    messages = [{"role": "user", "content": [{"type": "text", "text": text}]} for text in texts]
    body = {"messages": messages, "tools": [BASH]}
    request = ModelRequest(path="/v1", headers={}, body=body, raw=json.dumps(body).encode(), at=0.0)
    turn = SkilledModel([FIRST, SECOND])(request)
    return [dict(call.arguments)["command"] for call in turn.calls]  # type: ignore[call-overload]


def test_a_conversation_gets_the_commands_of_its_instruction() -> None:
    assert ask("Begin.", "Now: Fix it.\nAll of it. Go.") == ["echo 1\necho 2"]
    assert ask("Fix it. Go.") == ["echo 2"]
    assert ask("A title, please.") == ["true"]


def test_a_scenario_gets_the_calls_of_its_solution_or_none() -> None:
    opened = WorldCall(tool="open_loan", arguments={"member": "m1"})
    scenarios = [
        ScriptedScenario(task="Lend it.", calls=(opened,), value=1.0),
        ScriptedScenario(task="Take it back.", calls=(), value=0.0),
    ]
    model = SkilledModel([FIRST], scenarios)

    def play(task: str, *results: str) -> Turn:
        messages = [{"role": "user", "content": task}, *({"role": "tool", "content": result} for result in results)]
        return model(ModelRequest(path="/v1", headers={}, body={"messages": messages}, raw=b"", at=0.0))

    assert play("A library.\nLend  it.").calls == (Call("open_loan", {"member": "m1"}),)
    assert play("A library.\nLend  it.", '{"success": true}') == COMPLETED
    assert play("A library. Take it back.") == COMPLETED


def test_a_file_is_written_as_it_is(tmp_path: Path) -> None:
    path = tmp_path / "a b"
    subprocess.run(["sh", "-c", write_file(b"'$x'\n\xff", str(path))], check=True)
    assert path.read_bytes() == b"'$x'\n\xff"


def test_another_mean_is_named() -> None:
    figures = [{"run": "a", "column": "value", "mean": 0.5}, {"run": "a", "column": "resolved", "mean": 0.1}]
    report = json.dumps({"figures": [*figures, {"run": "b", "column": "value", "mean": 0.25}]}).encode()
    assert check_means(report, 0.5) == ["b: mean 0.25, known 0.5"]

"""Play the conversations through the real programs and keep what was recorded.

By hand, where a scaffold's version changes or `key.py` does (an engine and the network are needed, for minutes)::

    python -m tests.evaluation.instructions.keyed.record [--scaffold NAME ...] [--folder FOLDER]

`--folder` keeps the certified task between calls. No verdict is printed: the key is not to be written from one. What
programs themselves write, such as their system prompts, is left out of the recordings: of system prompts, messages of
the user and descriptions of tools only the task's own texts are kept, and results of tools not at all.
"""

from __future__ import annotations

import argparse
import html
import json
import subprocess
import sys
import tempfile
from collections.abc import Iterable, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

from evaluation.instructions.submission import read_submission
from samplers.gateway.exchanges import Exchange
from samplers.rollouts.wordings import list_wordings
from samplers.scaffolds.registry import load_scaffold
from samplers.subjects.instructions import join_texts, make_guidance
from samplers.subjects.task_subject import make_task_subject
from taskdb.records import Kind, Score, Task
from taskdb.records.instructions import InstructionOracle, InstructionSource
from taskdb.records.rollouts import RolloutStatus
from tests.cli import WITH_KEPT_RUNS, WITHOUT_CONTROLS, make_command_environment
from tests.evaluation.instructions.keyed.key import CONVERSATIONS, KeyedConversation
from tests.evaluation.instructions.keyed.recordings import KEPT, PLACEHOLDER, RECORDINGS, Recording, write_recordings
from tests.evaluation.instructions.keyed.sets import make_oracle
from tests.evaluation.instructions.keyed.steps import Draft, render
from tests.sample import make_sample
from tests.samplers.bench import AgentBench, BenchResult, open_bench
from tests.samplers.conftest import BUGFIX
from tests.samplers.scripted_model import ModelRequest, Turn
from tests.samplers.shell_player import find_shell_tool


class DraftPlayer:
    """Model that answers with the steps of a draft, each in its place of the conversation."""

    def __init__(self, steps: Draft, scaffold: str) -> None:
        self.turns = render(steps, scaffold)

    def __call__(self, request: ModelRequest) -> Turn:
        """Return the answer of the place; a short text to requests for a title."""
        if find_shell_tool(request.body) is None:
            return Turn(text="A short text")
        return self.turns[min(request.place, len(self.turns) - 1)]


def instruct(task: Task, oracle: InstructionOracle) -> Task:
    """Return the task with instructions."""
    statement = f"{task.problem_statement}\n\n{join_texts(oracle.constraints, InstructionSource.TURN, 1)}".strip()
    fields = {"kind": Kind.INSTRUCTIONS, "oracle": oracle, "problem_statement": statement}
    return task.model_copy(update=fields)


def record(bench: AgentBench, conversation: KeyedConversation, steps: Draft) -> tuple[Recording, BenchResult]:
    """Play a draft of a conversation through its program and return what was recorded; nothing is graded."""
    oracle = make_oracle(conversation.set_name, conversation.scaffold)
    task = instruct(bench.task, oracle)
    scaffold = load_scaffold(conversation.scaffold)
    score = Score(task=task.name, value=0.0, resolved=False, f2p_rate=0.0, p2p_rate=0.0)
    scaffold.calculate_reward = lambda *_: score  # type: ignore[method-assign]
    player = DraftPlayer(steps, conversation.scaffold)
    result = replace(bench, task=task).run(scaffold, player)
    rollout = result.rollout
    if (rollout.status, rollout.reason) != (RolloutStatus.DONE, None):
        raise SystemExit(f"{conversation.name}: {rollout.reason} {rollout.detail}\n{result.log[-3000:]}")
    n_answers = sum(bool(json.loads(exchange.request).get("tools")) for exchange in result.exchanges)
    if n_answers != len(player.turns):
        raise SystemExit(f"{conversation.name}: {n_answers} of {len(player.turns)} answers\n{result.log[-3000:]}")
    subject = make_task_subject(task, bench.services, "patch")
    own = [subject.instruction, *(wording.text for wording in list_wordings(make_guidance(oracle)))]
    recording = Recording(
        name=conversation.name,
        texts={constraint.name: constraint.text for constraint in oracle.constraints},
        patch=read_submission(result.patch).patch,
        exchanges=[cut_exchange(exchange, own) for exchange in result.exchanges],
    )
    return recording, result


def cut_exchange(exchange: Exchange, own: Iterable[str]) -> dict[str, Any]:
    """Return an exchange without what the program wrote: its number, request and answer.

    Args:
        exchange: exchange in the form of chat completions.
        own: texts of the task.
    """
    request = json.loads(exchange.request)
    assert exchange.upstream_dialect == "chat", exchange.upstream_dialect
    assert exchange.response is not None
    return {
        "exchange": exchange.exchange,
        "request": {
            "messages": [_cut_message(message, list(own)) for message in request["messages"]],
            "tools": [_cut_tool(tool, list(own)) for tool in request.get("tools") or ()],
        },
        "response": {"choices": [{"message": exchange.response["choices"][0]["message"]}]},
    }


def _cut_message(message: Mapping[str, Any], own: list[str]) -> dict[str, Any]:
    role, content = message["role"], message.get("content")
    if role == "assistant":
        kept = {"role": role, "content": content}
        return kept | ({"tool_calls": message["tool_calls"]} if message.get("tool_calls") else {})
    if role == "tool":
        return {"role": role, "tool_call_id": message.get("tool_call_id"), "content": PLACEHOLDER}
    if isinstance(content, list):
        return {
            "role": role,
            "content": [{"type": "text", "text": _cut(part.get("text", ""), own)} for part in content],
        }
    return {"role": role, "content": _cut(content or "", own)}


def _cut_tool(tool: Mapping[str, Any], own: list[str]) -> dict[str, Any]:
    function = tool["function"]
    return {
        "type": "function",
        "function": {"name": function["name"], "description": _cut(function["description"], own)},
    }


def _cut(text: str, own: list[str]) -> str:
    """Return the parts of a text that are the task's own, with a placeholder for what is between them."""
    places = [
        (text.index(form), form)
        for wording in own
        for form in dict.fromkeys((wording, wording.strip(), html.escape(wording)))
        if form in text
    ]
    parts, at = [], 0
    for place, form in sorted(places, key=lambda pair: (pair[0], -len(pair[1]))):
        if place < at:
            continue
        if text[at:place].strip():
            parts.append(PLACEHOLDER)
        parts.append(form)
        at = place + len(form)
    if text[at:].strip():
        parts.append(PLACEHOLDER)
    return "\n".join(parts)


def certify(folder: Path) -> None:
    """Make the certified task in a folder, unless it is there."""
    if (folder / "mergemill.db").exists():
        return
    make_sample(folder / "ada__greet")
    environment = make_command_environment(**WITHOUT_CONTROLS, **WITH_KEPT_RUNS)
    subprocess.run(["mergemill", "--quiet", "run", "git:ada__greet"], cwd=folder, env=environment, check=True)


def record_all(folder: Path, scaffold: str) -> None:
    """Record the conversations of a scaffold, and the drafts without it of those with one breach."""
    bench = open_bench(folder, BUGFIX)
    recordings = []
    for conversation in CONVERSATIONS:
        if conversation.scaffold != scaffold:
            continue
        recording, result = record(bench, conversation, conversation.broken or conversation.kept)
        recordings.append(recording)
        _show(recording, result)
        if conversation.has_counterpart:
            recording, result = record(bench, conversation, conversation.kept)
            recordings.append(replace(recording, name=f"{conversation.name}/{KEPT}"))
            _show(recordings[-1], result)
    write_recordings(RECORDINGS / f"{scaffold}.jsonl.xz", recordings)


def _show(recording: Recording, result: BenchResult) -> None:
    """Print what the tools answered and the patch, to see that the steps were really made."""
    messages = json.loads(result.exchanges[-1].request)["messages"]
    answers = [str(message["content"]) for message in messages if message["role"] == "tool"]
    lines = [f"== {recording.name}", *(f"   {' | '.join(answer.splitlines())}"[:300] for answer in answers)]
    sys.stdout.write("\n".join([*lines, recording.patch, ""]))
    sys.stdout.flush()


def main() -> None:
    """Record."""
    names = sorted({conversation.scaffold for conversation in CONVERSATIONS})
    parser = argparse.ArgumentParser(description="Record the keyed conversations.")
    parser.add_argument("--scaffold", action="append", choices=names, help="a scaffold; all without one")
    parser.add_argument("--folder", type=Path, help="folder of the certified task, which is made there")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as temporary:
        folder = options.folder or Path(temporary)
        folder.mkdir(exist_ok=True)
        certify(folder)
        for scaffold in options.scaffold or names:
            record_all(folder, scaffold)


if __name__ == "__main__":
    main()

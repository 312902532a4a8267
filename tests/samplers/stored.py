"""A database with tasks, rollouts and trajectories, for tests of commands."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from samplers.trajectories.build import build_trajectories
from taskdb.artifacts import Artifacts
from taskdb.records import Task
from taskdb.records.rollouts import ObservedState, Rollout, Trajectory
from taskdb.store import Store
from tests.samplers.selection.making import PATCH
from tests.samplers.trajectories.making import SYSTEM, TASK, call, give
from tests.samplers.trajectories.test_build import STOPPED, exchange
from tests.taskdb.lineages import add_lineage, make_url
from tests.taskdb.test_rollouts import make_rollout

Pairs = tuple[tuple[str, str], ...]
TITLE = [{"role": "system", "content": "Write a title."}, TASK]
NO_TOOLS: dict[str, Any] = {"tools": []}


def add_rollout(
    store: Store,
    artifacts: Artifacts,
    task: Task,
    attempt: int,
    *,
    commands: Pairs = (("ls", "greet.py"),),
    value: float | None = 1.0,
    patch: bytes | None = None,
    token_ids: bool = False,
    **fields: Any,
) -> tuple[Rollout, list[Trajectory]]:
    """Add a rollout of these commands, with a call for a title before them; return it with its trajectories."""
    own = PATCH.replace(b"hello", b"hello%d" % attempt) if patch is None else patch
    rollout = make_rollout(task, attempt, value, submission=artifacts.put(own), **fields)
    messages: list[dict[str, Any]] = [SYSTEM, TASK]
    answers = [*(call(number, command) for number, (command, _) in enumerate(commands)), STOPPED]
    results = [give(number, result) for number, (_, result) in enumerate(commands)]
    ids = list(range(1, 6))
    exchanges = []
    if not token_ids:
        exchanges.append(exchange(0, TITLE, {"role": "assistant", "content": "Greetings"}, body=NO_TOOLS))
    for number, answer in enumerate(answers):
        more: dict[str, Any] = {}
        if token_ids:
            completion = (100 + number, 200 + number)
            probs = tuple({"token": "x", "logprob": -0.5} for _ in completion)
            more = {"prompt_token_ids": tuple(ids), "completion_token_ids": completion, "logprobs": probs}
            ids += [*completion, 300 + number]
        exchanges.append(exchange(number + 1, list(messages), answer, **more))
        messages += [answer, *results[number : number + 1]]
    made = build_trajectories(rollout, exchanges, artifacts, statement=str(TASK["content"]))
    store.add(rollout, *made)
    return rollout, made


def make_database(folder: Path) -> tuple[Task, Task]:
    """Make a database with two tasks: good, lucky, looping and failed rollouts of one, an unscored one of the other."""
    artifacts = Artifacts(folder / "mergemill-store" / "artifacts")
    with Store.open(make_url(folder)) as store:
        task, other = add_lineage(store, 1), add_lineage(store, 2)
        for stored_task in (task, other):
            change = stored_task.name.rpartition(".")[0]
            for text in (f"gold {change}", f"test {change}"):  # their hashes stand in the records
                artifacts.put_text(text)
        add_rollout(store, artifacts, task, 1)
        failed = (("pytest", "Error: no such file"), ("ls", "greet.py"))
        add_rollout(store, artifacts, task, 2, commands=failed)
        add_rollout(store, artifacts, task, 3, commands=(("a", "1"), ("b", "2")) * 3)
        states = tuple(ObservedState(exchange=number, tree=tree * 40) for number, tree in enumerate("aaba"))
        add_rollout(store, artifacts, task, 4, value=0.0, scaffold="codex", states=states)
        add_rollout(store, artifacts, task, 5, patch=PATCH.replace(b"hello", b"hello1"))
        add_rollout(store, artifacts, other, 1, value=None, status="infrastructure")
    return task, other


def make_branched_exchanges() -> list[Any]:
    """Return a conversation with reasoning, text before calls and parallel calls, then an edited history."""
    spoken = call(0) | {"content": "I look first.", "reasoning_content": "Where is the greeting?"}
    parallel = call(1, "cat greet.py")
    parallel["tool_calls"] = [*parallel["tool_calls"], *call(2, "pwd")["tool_calls"]]
    first = [SYSTEM, TASK, spoken, give(0, "greet.py")]
    second = [*first, parallel, give(1, "def greet"), give(2, "/repo"), {"role": "user", "content": "Hurry up."}]
    edited = [*first, parallel, give(1, "[deleted]"), give(2, "[deleted]")]
    return [
        exchange(0, [SYSTEM, TASK], spoken),
        exchange(1, first, parallel),
        exchange(2, second, {"role": "assistant", "content": "Branch one."}),
        exchange(3, edited, {"role": "assistant", "content": "Branch two."}),
    ]

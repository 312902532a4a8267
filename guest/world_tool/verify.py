"""Verifier of a Harbor task: plays the agent's calls against the world again, then runs the checks on the final state.

Arguments: folder of the verifier's files, log of calls, folder of the reward. The log is the agent's; nothing else of
its container counts.
"""

from __future__ import annotations

import json
import os
import signal
import sys
import time
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from guest.world.check_process import run_check
from guest.world_tool.world_tool import WORLD_FILE, freeze_process, run_apart

MAX_LOG_BYTES = 16 * 1024 * 1024
MAX_CALLS = 500
"""Calls that are played; an agent that needs more has not solved the task."""
CHECK_SECONDS = 10
PASSED = "passed"
Check = Mapping[str, str]


def read_calls(path: Path) -> Iterator[tuple[str, dict[str, Any]]]:
    """Yield tool and arguments of the calls of a log; lines that are none are left out."""
    if not path.is_file():
        return
    with path.open("rb") as log:
        lines = log.read(MAX_LOG_BYTES).decode(errors="replace").splitlines()
    for line in lines[:MAX_CALLS]:
        try:
            value = json.loads(line)
        except (ValueError, RecursionError):
            continue
        match value:
            case {"tool": str(tool), "arguments": dict(arguments)}:
                yield tool, arguments


def play(world: Mapping[str, Any], calls: Iterator[tuple[str, dict[str, Any]]], deadline: float) -> Any | None:
    """Return the state after calls; None where the world had a fault or time is up."""
    state: Any = world["state"]
    for step, (tool, arguments) in enumerate(calls):
        if time.monotonic() > deadline:
            return None
        answer = run_apart(world, state, step, tool, arguments)
        if "fault" in answer:
            return None
        state = answer["state"]
    return state


def run_checks(checks: Sequence[Check], initial: Any, final: Any) -> list[bool]:
    """Return which checks hold, each run in a process of its own."""
    return [run_check_apart(check, initial, final) == PASSED for check in checks]


def compute_reward(at_start: Sequence[bool], at_end: Sequence[bool]) -> float:
    """Return the share of the checks that hold now and did not at the start; 0 where a check that did is broken."""
    if not all(now for before, now in zip(at_start, at_end, strict=True) if before):
        return 0.0
    earning = [now for before, now in zip(at_start, at_end, strict=True) if not before]
    return sum(earning) / len(earning) if earning else 0.0


def run_check_apart(check: Check, initial: Any, final: Any, *, seed: int = 0) -> str:
    """Return the outcome of a check, which is run in a process of its own; `crashed` where it gave none."""
    reading, writing = os.pipe()
    child = os.fork()
    if child == 0:
        try:
            os.close(reading)
            signal.alarm(CHECK_SECONDS)
            freeze_process(seed)
            outcome, _ = run_check(check, initial, final)
            os.write(writing, outcome.value.encode())
        finally:
            os._exit(0)
    os.close(writing)
    with os.fdopen(reading, "rb") as channel:
        outcome_text = channel.read().decode()
    os.waitpid(child, 0)
    return outcome_text or "crashed"


def main(folder: str, log: str, out: str) -> None:
    """Write `reward.json` and `checks.json`."""
    Path(out).mkdir(parents=True, exist_ok=True)
    write_reward(out, 0.0)  # what stays if this process is killed
    world = json.loads((Path(folder) / WORLD_FILE).read_text(encoding="utf-8"))
    checks = world["checks"]
    final = play(world, read_calls(Path(log)), time.monotonic() + world["verifier_seconds"])
    at_start = run_checks(checks, world["state"], world["state"])
    at_end = [False] * len(checks) if final is None else run_checks(checks, world["state"], final)
    reports = [
        {"function": check["function"], "holds": now, "held_at_start": before}
        for check, before, now in zip(checks, at_start, at_end, strict=True)
    ]
    (Path(out) / "checks.json").write_text(json.dumps(reports, indent=1) + "\n", encoding="utf-8")
    write_reward(out, 0.0 if final is None else compute_reward(at_start, at_end))


def write_reward(out: str, reward: float) -> None:
    """Write the reward; `solved` is 1 where it is 1."""
    content = json.dumps({"reward": reward, "solved": float(reward == 1.0)}) + "\n"
    (Path(out) / "reward.json").write_text(content, encoding="utf-8")


if __name__ == "__main__":
    main(*sys.argv[1:])

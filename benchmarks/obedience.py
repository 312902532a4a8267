"""Measure what instructions cost, as ratios within one run: `python -m benchmarks.obedience [--page FILE]`.

Everything is done with two bug fixes of a small repository whose tests take a fraction of a second, which is the worst
case for ratios to tests. Printed are, each with its bound:

- the seconds of deciding a conversation of `--requests` requests on a task with more instructions than usual, to those
  of grading the tests of its patch;
- the seconds of deriving instruction tasks, their scripts included, to those of certifying the originals;
- the seconds from the beginning of a rollout to its first request with instructions from every source that a scaffold
  delivers, to those without instructions: `react`, whose loop is in the driver, and the program of `claude-code`.

Each figure is the median over `--rounds`, whose order alternates; derivation and certification are measured once. A
Docker engine is needed, and the network where the program is not installed yet. The exit code is 1 above a bound.
"""

from __future__ import annotations

import argparse
import json
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from benchmarks.page_table import write_table
from evaluation.instructions.actions import ModelAnswer
from evaluation.instructions.submission import read_submission, write_submission
from samplers.scaffolds.registry import load_scaffold
from samplers.subjects.guidance import Guidance
from taskdb.records import Score
from tests.cli import make_command_environment
from tests.evaluation.instructions.keyed.record import instruct
from tests.evaluation.instructions.keyed.sets import make_oracle
from tests.sample import make_sample
from tests.samplers.bench import AgentBench, open_bench
from tests.samplers.conftest import BUGFIX
from tests.samplers.guidance import GUIDANCE, keep_sources
from tests.samplers.shell_player import ShellPlayer
from verifiers import grade
from verifiers.rewards.instructions import check, read_log

SCAFFOLDS = ("react", "claude-code")
DECIDING_BOUND, DERIVING_BOUND, START_BOUND = 0.1, 3.0, 1.1
SET = "order"
"""Set of instructions that the conversation is decided on: it has more than a task has by default."""
LINES = (
    "sed -n '1,200p' greet/words.py",
    "grep -rn 'def ' greet tests | head -n 40",
    "cd /testbed && git status --short && git diff --stat",
    "timeout 60 python -m pytest -q tests 2>&1 | tail -n 20",
    "python3 - <<'END'\nimport pathlib\np = pathlib.Path('greet/words.py')\np.write_text(p.read_text())\nEND",
    "cat > greet/lines.py <<'END'\n" + "def count_lines(text):\n    return len(text.splitlines())\n\n\n" * 20 + "END",
)
"""Commands of the conversation, in turn."""


@dataclass(frozen=True, kw_only=True)
class Ratio:
    """A measured ratio. `seconds` and `base`: seconds that are compared."""

    name: str
    seconds: float
    base: float
    bound: float

    @property
    def value(self) -> float:
        """The ratio."""
        return self.seconds / self.base

    @property
    def is_kept(self) -> bool:
        """Whether it is within its bound."""
        return self.value <= self.bound


def make_answers(requests: int) -> list[ModelAnswer]:
    """Return the answers of a conversation with so many requests, all but the last with a command."""
    answers = []
    for number in range(requests - 1):
        function = {"name": "bash", "arguments": json.dumps({"command": LINES[number % len(LINES)]})}
        calls = [{"id": f"call_{number}", "type": "function", "function": function}]
        message = {"role": "assistant", "content": f"Step {number}: I go on.", "tool_calls": calls}
        answers.append(ModelAnswer(exchange=number, message=message))
    end = {"role": "assistant", "content": "All is done.\n\nWork complete."}
    return [*answers, ModelAnswer(exchange=requests - 1, message=end)]


def measure(*functions: Callable[[], object], rounds: int) -> list[float]:
    """Return the median seconds of functions that are called in turn; which is first alternates."""
    seconds: list[list[float]] = [[] for _ in functions]
    for number in range(rounds):
        order = list(enumerate(functions))
        for place, function in order if number % 2 == 0 else order[::-1]:
            began = time.perf_counter()
            function()
            seconds[place].append(time.perf_counter() - began)
    return [statistics.median(measured) for measured in seconds]


def measure_deciding(bench: AgentBench, requests: int, rounds: int) -> Ratio:
    """Return the ratio of deciding a conversation to grading the tests of its patch."""
    oracle = make_oracle(SET, "react")
    task = instruct(bench.task, oracle)
    submission = write_submission(bench.gold, make_answers(requests))

    def decide() -> None:
        given = read_submission(submission)
        check(task, bench.services, given, read_log(task, given))

    deciding, grading = measure(decide, lambda: grade(bench.task, bench.services, bench.gold), rounds=rounds)
    name = f"deciding {requests} requests on {len(oracle.constraints)} instructions, to grading the tests"
    return Ratio(name=name, seconds=deciding, base=grading, bound=DECIDING_BOUND)


def run_stages(folder: Path, *words: str) -> dict[str, float]:
    """Run a command and return the seconds of each of its stages."""
    command = ["mergemill", *words, "--json"]
    done = subprocess.run(command, cwd=folder, env=make_command_environment(), capture_output=True, check=True)
    events = [json.loads(line) for line in done.stdout.splitlines()]
    seconds: dict[str, float] = {}
    for event in events:
        if event["event"] == "record":
            seconds[event["stage"]] = seconds.get(event["stage"], 0.0) + event["seconds"]
    return seconds


def measure_deriving(folder: Path) -> Ratio:
    """Make the certified originals in a folder and return the ratio of deriving to certifying."""
    make_sample(folder / "ada__greet")
    certifying = run_stages(folder, "run", "git:ada__greet")["certify"]
    deriving = run_stages(folder, "derive", "--kind", "instructions")["derive"]
    name = "deriving an instruction task of each bug fix, to certifying the bug fixes"
    return Ratio(name=name, seconds=deriving, base=certifying, bound=DERIVING_BOUND)


def measure_start(bench: AgentBench, name: str, rounds: int) -> Ratio:
    """Return the ratio of a scaffold's start with instructions to its start without."""
    scaffold = load_scaffold(name)
    score = Score(task=bench.task.name, value=0.0, resolved=False, f2p_rate=0.0, p2p_rate=0.0)
    scaffold.calculate_reward = lambda *_: score  # type: ignore[method-assign]
    guidance = replace(keep_sources(GUIDANCE, scaffold.delivers), turns=())
    seconds: dict[bool, list[float]] = {True: [], False: []}
    start_once(bench, scaffold, None)  # the program is installed, and its files are in memory
    for number in range(rounds):
        for is_guided in (True, False) if number % 2 == 0 else (False, True):
            seconds[is_guided].append(start_once(bench, scaffold, guidance if is_guided else None))
    guided, plain = (statistics.median(seconds[key]) for key in (True, False))
    return Ratio(name=f"start of {name} with instructions, to without", seconds=guided, base=plain, bound=START_BOUND)


def start_once(bench: AgentBench, scaffold: Any, guidance: Guidance | None) -> float:
    """Return the seconds from the beginning of a rollout to its first request that offers tools."""
    began = time.time()
    result = bench.run(scaffold, ShellPlayer({}), guidance=guidance)
    if result.rollout.reason is not None:
        raise SystemExit(f"{scaffold.name}: {result.rollout.reason} {result.rollout.detail}")
    return next(request.at for request in result.requests if request.tools) - began


def format_table(ratios: Sequence[Ratio]) -> str:
    """Return the table in Markdown."""
    lines = ["| | seconds | to seconds | ratio | bound |", "|---|---:|---:|---:|---:|"]
    for ratio in ratios:
        mark = "" if ratio.is_kept else " **above**"
        lines.append(
            f"| {ratio.name} | {ratio.seconds:.2f} | {ratio.base:.2f} | {ratio.value:.3f}{mark} | {ratio.bound:g} |"
        )
    return "\n" + "\n".join(lines) + "\n\n"


def main(words: Sequence[str] | None = None) -> int:
    """Print the ratios; return the exit code."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--requests", type=int, default=100, help="requests of the conversation")
    parser.add_argument("--rounds", type=int, default=7)
    parser.add_argument("--page", type=Path, metavar="FILE", help="write the table between the marks of this page")
    options = parser.parse_args(words)
    with tempfile.TemporaryDirectory(prefix="mergemill-") as name:
        folder = Path(name)
        ratios = [measure_deriving(folder)]
        bench = open_bench(folder, BUGFIX)
        ratios.insert(0, measure_deciding(bench, options.requests, options.rounds))
        ratios += [measure_start(bench, scaffold, options.rounds) for scaffold in SCAFFOLDS]
    table = format_table(ratios)
    print(table)
    if options.page:
        write_table(options.page, "benchmarks.obedience", table)
    return int(not all(ratio.is_kept for ratio in ratios))


if __name__ == "__main__":
    sys.exit(main())

"""Agents of known skill on a bench: the reported means are exact, and kills change no byte of the report.

    python -m benchmarks.known_skill SET --database FILE [--scaffolds react,mini-swe-agent,codex] [--skill 0.4]
        [--kills 20]

The model is scripted. It solves the subjects that a hash of their names chooses, and leaves the others as they are; of
a review it then writes that it has found nothing. So the mean that `mergemill bench report` must give is known before.
`mergemill bench run` does it once undisturbed and once with `--kills` kills of its process at random moments, after
each of which the same command goes on; both in copies of the database FILE and the folder `mergemill-store` next to it,
which have the subjects of the set. Docker is needed. The exit code is 1 if a mean is not the known one, or if the
reports of the two differ.
"""

from __future__ import annotations

import argparse
import base64
import hashlib
import json
import random
import shlex
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from statistics import fmean
from typing import Any

from core.config import Settings
from mergemill.agents.sampling.task_sampler import TaskFinder
from mergemill.bench.sets import read_set
from mergemill.execution.services import make_services
from samplers.subjects.subject import Subject
from taskdb.records import Task
from taskdb.records.bench import BenchSet
from taskdb.store import Store
from tests.cli import make_command_environment
from tests.samplers.scripted_model import ModelRequest, ScriptedModel
from tests.samplers.shell_player import ShellPlayer

STORE = "mergemill-store"
MODEL = "scripted"
NOTHING_FOUND = b'{"findings": []}'
PATCH_FILE = "/tmp/gold.patch"  # noqa: S108 - in the container of the agent
ROUNDING = 1e-9
LEAST_SECONDS = 1.0
"""Least time of a driver until it is killed; the most is longer by its share of the seconds that a calm run takes."""


@dataclass(frozen=True, kw_only=True)
class ScriptedSubject:
    """Instruction of a subject, the command with which the model does its part, and the value that this earns."""

    instruction: str
    command: str
    value: float


@dataclass(kw_only=True)
class BenchCopy:
    """A copy of the database in which the bench runs."""

    folder: Path
    set_file: Path
    scaffolds: Sequence[str]
    upstream: str

    def run(self, kills: int, seconds: float) -> float:
        """Run the bench, whose driver is killed so many times; return the seconds of all its drivers.

        Args:
            kills: number of kills.
            seconds: time that all subjects took without kills.

        Raises:
            RuntimeError: a driver failed, or all was done before the last kill.
        """
        words = ["bench", "run", str(self.set_file), "--scaffold", ",".join(self.scaffolds), "--runs", "1"]
        words += ["--model", MODEL, "--upstream", self.upstream, "--rollout-retries", "20"]
        started, moments = time.monotonic(), random.Random(1)  # noqa: S311 - moments of kills
        for number in range(kills):
            with self._start(words) as driver:
                try:
                    driver.communicate(timeout=moments.uniform(LEAST_SECONDS, LEAST_SECONDS + seconds / kills))
                except subprocess.TimeoutExpired:
                    driver.kill()
                else:
                    raise RuntimeError(f"the driver ended by itself after {number} of {kills} kills")
        self._run_to_end(words)
        return time.monotonic() - started

    def report(self) -> bytes:
        """Return the report of all scaffolds as JSON."""
        name = read_set(self.set_file).name
        runs = [f"{name}/{scaffold}/{MODEL}" for scaffold in self.scaffolds]
        return self._run_to_end(["bench", "report", *runs, "--metric", "resolved,value", "--format", "json"])

    def _run_to_end(self, words: Sequence[str]) -> bytes:
        with self._start(words) as command:
            output, errors = command.communicate()
        if command.returncode:
            raise RuntimeError(f"{' '.join(words[:2])} ended with {command.returncode}: {errors.decode()[-2000:]}")
        return output

    def _start(self, words: Sequence[str]) -> subprocess.Popen[bytes]:
        variables = {"MERGEMILL_DB": f"sqlite:///{self.folder}/mergemill.db"}
        return subprocess.Popen(
            ["mergemill", *words],
            cwd=self.folder,
            env=make_command_environment(**variables),
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
        )


class SkilledModel(ShellPlayer):
    """A model that knows what to do with each subject."""

    def __init__(self, subjects: Sequence[ScriptedSubject]) -> None:
        super().__init__({})
        self.subjects = subjects

    def find_commands(self, request: ModelRequest) -> Sequence[str]:
        """Return the commands of the subjects whose instructions are in the conversation, as one command."""
        text = "\n".join(iterate_texts(request.body.get("messages")))
        return ["\n".join(subject.command for subject in self.subjects if subject.instruction in text) or "true"]


def iterate_texts(content: Any) -> Iterator[str]:
    """Yield all strings of a JSON value."""
    if isinstance(content, str):
        yield content
    elif isinstance(content, Mapping):
        for value in content.values():
            yield from iterate_texts(value)
    elif isinstance(content, Sequence):
        for value in content:
            yield from iterate_texts(value)


def script_subjects(bench_set: BenchSet, settings: Settings, skill: float) -> list[ScriptedSubject]:
    """Return what the model does with each task of a set.

    Args:
        bench_set: the set.
        settings: database with its tasks.
        skill: share of the tasks that the model solves, 0..1.
    """
    services = make_services(settings, engine=False)
    with Store.open(settings.storage.db, create=False) as store:
        tasks = store.get_many(Task, [subject.id for subject in bench_set.subjects])
    finder = TaskFinder(services=services, find=tasks.__getitem__)
    return [_script_task(finder, finder.find_subject(subject.id), skill) for subject in bench_set.subjects]


def _script_task(finder: TaskFinder, subject: Subject, skill: float) -> ScriptedSubject:
    oracle = finder.find_oracle(subject)
    is_solved = int(hashlib.sha256(subject.name.encode()).hexdigest()[:8], 16) < skill * 2**32
    gold = oracle.make_gold()
    if subject.answer is None:
        command = f"{write_file(gold, PATCH_FILE)} && git apply {PATCH_FILE}" if is_solved else "true"
        value = float(is_solved)
    else:
        answer = gold if is_solved else NOTHING_FOUND
        command, value = write_file(answer, subject.answer), oracle.grade(answer).value or 0.0
    if subject.files:  # reviews of two versions of a file have the same instruction
        paths, content = zip(*sorted(subject.files.items()), strict=True)
        digest = hashlib.sha256(b"".join(content)).hexdigest()
        command = f'if [ "$(cat {shlex.join(paths)} | sha256sum)" = "{digest}  -" ]; then {command}; fi'
    return ScriptedSubject(instruction=subject.instruction.strip(), command=command, value=value)


def write_file(content: bytes, path: str) -> str:
    """Return the shell command that writes a file."""
    return f"printf %s {base64.b64encode(content).decode()} | base64 -d > {shlex.quote(path)}"


def check_means(report: bytes, mean: float) -> list[str]:
    """Return a line for each run whose mean value is another one than the known mean."""
    rows = [row for row in json.loads(report)["figures"] if row["column"] == "value"]
    return [f"{row['run']}: mean {row['mean']}, known {mean}" for row in rows if abs(row["mean"] - mean) > ROUNDING]


def main() -> int:
    """Run the bench twice, compare and print."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("set", type=Path, metavar="SET", help="file of a set")
    parser.add_argument("--database", type=Path, required=True, metavar="FILE", help="SQLite database with its tasks")
    parser.add_argument("--scaffolds", default="react,mini-swe-agent,codex")
    parser.add_argument("--skill", type=float, default=0.4, help="share of the tasks that the model solves")
    parser.add_argument("--kills", type=int, default=20)
    options = parser.parse_args()
    bench_set = read_set(options.set)
    source = Settings(db=f"sqlite:///{options.database}", store=options.database.parent / STORE)
    subjects = script_subjects(bench_set, source, options.skill)
    mean = fmean(subject.value for subject in subjects)
    reports, seconds = [], 0.0
    with tempfile.TemporaryDirectory() as name, ScriptedModel(SkilledModel(subjects)) as model:
        for run, kills in (("calm", 0), ("killed", options.kills)):
            folder = Path(name) / run
            folder.mkdir()
            shutil.copy(options.database, folder / "mergemill.db")
            shutil.copytree(options.database.parent / STORE, folder / STORE)
            copy = BenchCopy(
                folder=folder,
                set_file=options.set.resolve(),
                scaffolds=options.scaffolds.split(","),
                upstream=model.url,
            )
            seconds = copy.run(kills, seconds)
            reports.append(copy.report())
            rollouts = len(subjects) * len(copy.scaffolds)
            print(f"{kills} kills: {rollouts} rollouts in {seconds:.0f} s", flush=True)
    wrong = [line for report in reports for line in check_means(report, mean)]
    are_equal = reports[0] == reports[1]
    print("\n".join([f"known mean {mean:.6f}", *wrong, f"reports are {'equal' if are_equal else 'not equal'}"]))
    return int(bool(wrong) or not are_equal)


if __name__ == "__main__":
    sys.exit(main())

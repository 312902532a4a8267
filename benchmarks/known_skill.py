"""Agents of known skill on a bench: the reported means are exact, and kills change no byte of the report.

    python -m benchmarks.known_skill
    python -m benchmarks.known_skill SET --database FILE --scaffolds react,mini-swe-agent,codex [--skill 0.4]
        [--kills 20]

The model is scripted. It solves the subjects that a hash of their names chooses, and leaves the others as they are; of
a review it then writes that it has found nothing. So the mean that `mergemill bench report` must give is known before.
`mergemill bench run` does it once undisturbed and once with `--kills` kills of its process at random moments, after
each of which the same command goes on; both in copies of the database FILE and the folder `mergemill-store` next to it,
which have the subjects of the set. Docker is needed. The exit code is 1 if a mean is not the known one, or if the
reports of the two differ.

SET is a file. Without it a set of four kinds is made of the database: the first `--per-kind` certified bug fixes,
reviews and test-writing tasks by a hash of their names, and as many scenarios of an example world, which is added to
the copies. Without `--database` the tasks are those of the small repository that mergemill's own tests use.
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
from core.errors import InputError
from mergemill.agents.sampling.scenario_sampler import load_scenarios
from mergemill.agents.sampling.task_sampler import TaskFinder
from mergemill.bench.sets import freeze, read_set, write_set
from mergemill.execution.services import make_services
from samplers.subjects.subject import Subject
from taskdb.artifacts import open_artifacts
from taskdb.queries.bench import SCENARIO
from taskdb.queries.task_filters import TaskFilters
from taskdb.queries.tasks import list_tasks
from taskdb.records import Kind, Task
from taskdb.records.bench import BenchLimits, BenchSet
from taskdb.records.worlds import Scenario
from taskdb.store import Store
from tests.cli import make_command_environment, run_mergemill
from tests.sample import make_sample
from tests.samplers.scripted_model import Call, ModelRequest, ScriptedModel, Turn
from tests.samplers.shell_player import ShellPlayer
from tests.samplers.worlds.database import add_world, make_settings
from tests.samplers.worlds.player import COMPLETED, get_text, read_results
from worlds.definitions import Call as WorldCall
from worlds.examples.loading import load_example_scenarios, load_example_world
from worlds.gates.solutions import resolve_arguments
from worlds.server.service import CallResult

DATABASE, STORE = "mergemill.db", "mergemill-store"
KINDS = (Kind.BUGFIX, Kind.REVIEW, Kind.TEST_WRITING)
SAMPLE, WORLD = "ada__greet", "library_loans"
LIMITS = BenchLimits(turns=50, seconds=1800.0)
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
        variables = {"MERGEMILL_DB": f"sqlite:///{self.folder}/{DATABASE}"}
        return subprocess.Popen(
            ["mergemill", *words],
            cwd=self.folder,
            env=make_command_environment(**variables),
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
        )


@dataclass(frozen=True, kw_only=True)
class ScriptedScenario:
    """Task of a scenario, the calls that the model makes, all of the solution or none, and the value that they earn."""

    task: str
    calls: Sequence[WorldCall]
    value: float


class SkilledModel(ShellPlayer):
    """A model that knows what to do with each subject."""

    def __init__(self, subjects: Sequence[ScriptedSubject], scenarios: Sequence[ScriptedScenario] = ()) -> None:
        super().__init__({})
        self.subjects = subjects
        self.scenarios = scenarios

    def __call__(self, request: ModelRequest) -> Turn:
        """Return the next command or call, or the end."""
        text = get_text(request)
        scenario = next((scenario for scenario in self.scenarios if scenario.task in text), None)
        if scenario is None:
            return super().__call__(request)
        results = [CallResult(value=result, digest="") for result in read_results(request)]
        if len(results) >= len(scenario.calls):
            return COMPLETED
        call = scenario.calls[len(results)]
        return Turn(text="Next.", calls=(Call(call.tool, resolve_arguments(call, dict(enumerate(results)))),))

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


def make_database(folder: Path) -> Path:
    """Make the tasks of the sample of mergemill's tests in a new folder; return the database.

    Raises:
        RuntimeError: they could not be made.
    """
    make_sample(folder / SAMPLE)
    kinds = ",".join(KINDS)
    done = run_mergemill("run", f"git:{SAMPLE}", "--kind", kinds, "--json", cwd=folder)
    if done.exit_code:
        raise RuntimeError(f"mergemill run ended with {done.exit_code}: {done.stderr[-2000:]}")
    return folder / DATABASE


def make_set(folder: Path, per_kind: int) -> Path:
    """Freeze a set of four kinds in a copy of a database, to which an example world is added; return its file.

    Raises:
        InputError: a kind has too few certified tasks.
    """
    settings = make_settings(folder)
    artifacts = open_artifacts(settings.storage)
    with Store.open(settings.storage.db) as store:
        subjects: list[Task | Scenario] = []
        for kind in KINDS:
            rows = list_tasks(store, TaskFilters(kind=kind.value, status="certified"), columns=("id", "name"))
            chosen = sorted(rows, key=lambda row: compute_share(row["name"]))[:per_kind]
            if len(chosen) < per_kind:
                raise InputError(f"the database has {len(chosen)} certified {kind.value} tasks", advice="--per-kind")
            subjects += store.get_many(Task, [row["id"] for row in chosen]).values()
        definitions = load_example_scenarios(WORLD)[:per_kind]
        subjects += add_world(store, artifacts, load_example_world(WORLD), definitions)
        made = freeze(store, "four-kinds", subjects, LIMITS, held_out=False)
    path = folder / "four-kinds.json"
    write_set(made, path)
    return path


def compute_share(name: str) -> float:
    """Return a number of 0 to 1 that is a hash of a name."""
    return int(hashlib.sha256(name.encode()).hexdigest()[:8], 16) / 2**32


def script_scenarios(bench_set: BenchSet, settings: Settings, skill: float) -> list[ScriptedScenario]:
    """Return the calls that the model makes in each scenario of a set; arguments as of `script_subjects`."""
    with Store.open(settings.storage.db, create=False) as store:
        records = store.get_many(Scenario, [subject.id for subject in bench_set.subjects if subject.kind == SCENARIO])
        scenarios = load_scenarios(store, open_artifacts(settings.storage), list(records.values()))
    scripted = []
    for key, scenario in scenarios.items():
        is_solved = compute_share(records[key].name) < skill
        task = " ".join(scenario.definition.task.split())
        calls = scenario.solution if is_solved else ()
        scripted.append(ScriptedScenario(task=task, calls=calls, value=float(is_solved)))
    return scripted


def script_subjects(bench_set: BenchSet, settings: Settings, skill: float) -> list[ScriptedSubject]:
    """Return what the model does with each task of a set.

    Args:
        bench_set: the set.
        settings: database with its tasks.
        skill: share of the tasks that the model solves, 0..1.
    """
    services = make_services(settings, engine=False)
    keys = [subject.id for subject in bench_set.subjects if subject.kind != SCENARIO]
    with Store.open(settings.storage.db, create=False) as store:
        tasks = store.get_many(Task, keys)
    finder = TaskFinder(services=services, find=tasks.__getitem__)
    return [_script_task(finder, finder.find_subject(key), skill) for key in keys]


def _script_task(finder: TaskFinder, subject: Subject, skill: float) -> ScriptedSubject:
    oracle = finder.find_oracle(subject)
    is_solved = compute_share(subject.name) < skill
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


def copy_database(database: Path, folder: Path) -> Path:
    """Copy a SQLite database, and the folder of artifacts next to it, to a new folder, and return that."""
    folder.mkdir()
    shutil.copy(database, folder / DATABASE)
    shutil.copytree(database.parent / STORE, folder / STORE)
    return folder


def count_rollouts(report: bytes) -> str:
    """Return the number of rollouts that a report counts, for people; those of scenarios may be of several runs."""
    document = json.loads(report)
    kinds = ", ".join(f"{number} {kind}" for kind, number in document["set"]["kinds"].items())
    return f"{sum(run['scored'] for run in document['runs'])} rollouts of {kinds}"


def check_means(report: bytes, mean: float) -> list[str]:
    """Return a line for each run whose mean value is another one than the known mean."""
    rows = [row for row in json.loads(report)["figures"] if row["column"] == "value"]
    return [f"{row['run']}: mean {row['mean']}, known {mean}" for row in rows if abs(row["mean"] - mean) > ROUNDING]


def main() -> int:
    """Run the bench twice, compare and print."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("set", type=Path, nargs="?", metavar="SET", help="file of a set")
    parser.add_argument("--database", type=Path, metavar="FILE", help="SQLite database with its tasks")
    parser.add_argument("--scaffolds", default="react+tools,mini-swe-agent+tools")
    parser.add_argument("--skill", type=float, default=0.5, help="share of the tasks that the model solves")
    parser.add_argument("--kills", type=int, default=20)
    parser.add_argument("--per-kind", type=int, default=2, help="subjects of each kind of a set that is made")
    options = parser.parse_args()
    reports, seconds = [], 0.0
    with tempfile.TemporaryDirectory() as name:
        database = options.database or make_database(Path(name) / "made")
        source = copy_database(database, Path(name) / "source")
        set_file = options.set.resolve() if options.set else make_set(source, options.per_kind)
        bench_set, settings = read_set(set_file), make_settings(source)
        tasks = script_subjects(bench_set, settings, options.skill)
        scenarios = script_scenarios(bench_set, settings, options.skill)
        mean = fmean([*(task.value for task in tasks), *(scenario.value for scenario in scenarios)])
        with ScriptedModel(SkilledModel(tasks, scenarios)) as model:
            for run, kills in (("calm", 0), ("killed", options.kills)):
                copy = BenchCopy(
                    folder=copy_database(source / DATABASE, Path(name) / run),
                    set_file=set_file,
                    scaffolds=options.scaffolds.split(","),
                    upstream=model.url,
                )
                seconds = copy.run(kills, seconds)
                reports.append(copy.report())
                print(f"{kills} kills: {count_rollouts(reports[-1])} in {seconds:.0f} s", flush=True)
    wrong = [line for report in reports for line in check_means(report, mean)]
    are_equal = reports[0] == reports[1]
    print("\n".join([f"known mean {mean:.6f}", *wrong, f"reports are {'equal' if are_equal else 'not equal'}"]))
    return int(bool(wrong) or not are_equal)


if __name__ == "__main__":
    sys.exit(main())

"""Measure the time that `mergemill bench run` adds to `mergemill sample`: `python -m benchmarks.bench_overhead`.

Both commands run the same rollouts, `--attempts` of each scenario of the example worlds with the scaffold `tools`,
in turn and each in a new copy of the same database, `--rounds` times; which of them is first alternates. The model is
scripted and waits `--delay` seconds before each answer, less than a real one takes, so that its part is rather too
small than too large. Docker is needed, for the container of the worlds.

Printed are the least seconds of each command over the rounds, from start to end of the process, as other work on the
machine only adds to them, and their ratio; the ratios of the rounds; and the processor time that `bench run` uses
beyond that of `sample` (the median over the rounds), with its share of the least seconds of `sample`. The work that
`bench run` adds is done by its process alone, before and after sampling, so that this share is its part on a machine
without other work, and it depends on such work the least.

The exit code is 1 when one of the two is more than 2 %, or when the commands did not make the same rollouts.
"""

from __future__ import annotations

import argparse
import resource
import shutil
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from mergemill.bench.sets import freeze
from taskdb.queries.worlds import find_current_scenarios
from taskdb.records.bench import BenchLimits
from taskdb.records.rollouts import Rollout
from taskdb.store import Store
from tests.cli import make_command_environment
from tests.samplers.scripted_model import ScriptedModel
from tests.samplers.worlds.database import make_database
from tests.samplers.worlds.player import AGENT, ScenarioPlayer

MAX_RATIO = 1.02
SET = "speed"
LIMITS = BenchLimits(turns=50, seconds=600.0)


@dataclass(frozen=True, kw_only=True)
class MeasuredCommand:
    """Wall and processor seconds of a command, and the plans of the rollouts that it made."""

    seconds: float
    cpu_seconds: float
    plans: frozenset[str]


@dataclass(frozen=True, kw_only=True)
class Comparison:
    """Two commands that make the same rollouts of the scenarios of a database."""

    source: Path
    """Folder of the database and its artifacts, which stay as they are."""
    upstream: str
    attempts: int
    workers: int

    def run_sample(self, folder: Path) -> MeasuredCommand:
        """Run `mergemill sample` in a new folder."""
        limits = ["--rollout-turns", str(LIMITS.turns), "--rollout-seconds", str(LIMITS.seconds)]
        words = ["sample", "--environment", "synthetic", "--attempts", str(self.attempts), *limits]
        return self._run(folder, words)

    def run_bench(self, folder: Path) -> MeasuredCommand:
        """Run `mergemill bench run` in a new folder."""
        return self._run(folder, ["bench", "run", SET, "--runs", str(self.attempts)])

    def _run(self, folder: Path, words: Sequence[str]) -> MeasuredCommand:
        shutil.copytree(self.source, folder)
        given = ["--scaffold", "tools", "--model", AGENT, "--upstream", self.upstream, "--workers", str(self.workers)]
        start, used = time.perf_counter(), read_cpu_seconds()
        done = subprocess.run(
            ["mergemill", *words, *given],
            cwd=folder,
            env=make_command_environment(),
            capture_output=True,
            text=True,
            check=False,
        )
        seconds, cpu_seconds = time.perf_counter() - start, read_cpu_seconds() - used
        if done.returncode:
            raise RuntimeError(f"mergemill {words[0]} ended with {done.returncode}: {done.stderr[-2000:]}")
        with Store.open(f"sqlite:///{folder}/mergemill.db", create=False) as store:
            plans = frozenset(row.plan for row in store.load_all(Rollout))
        return MeasuredCommand(seconds=seconds, cpu_seconds=cpu_seconds, plans=plans)


def read_cpu_seconds() -> float:
    """Return the processor time of all processes that this one started and that have ended."""
    usage = resource.getrusage(resource.RUSAGE_CHILDREN)
    return usage.ru_utime + usage.ru_stime


def make_source(folder: Path) -> int:
    """Make the database with the example worlds and a set of their scenarios; return the number of scenarios."""
    folder.mkdir()
    settings = make_database(folder)
    with Store.open(settings.storage.db) as store:
        return len(freeze(store, SET, find_current_scenarios(store, certified=True), LIMITS, held_out=False).subjects)


def measure(comparison: Comparison, folder: Path, rounds: int) -> list[tuple[MeasuredCommand, MeasuredCommand]]:
    """Return the measurements of `sample` and `bench run` in each round."""
    pairs = []
    for number in range(rounds):
        named = [("sample", comparison.run_sample), ("bench", comparison.run_bench)]
        results = {}
        for name, run in named if number % 2 == 0 else named[::-1]:
            place = folder / f"{name}-{number}"
            results[name] = run(place)
            shutil.rmtree(place)
        pairs.append((results["sample"], results["bench"]))
    return pairs


def main(words: Sequence[str] | None = None) -> int:
    """Print the seconds and the ratio; return the exit code."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--attempts", type=int, default=8, help="rollouts of each scenario")
    parser.add_argument("--delay", type=float, default=0.5, help="seconds of each answer of the model")
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--workers", type=int, default=4, help="rollouts at once")
    options = parser.parse_args(words)
    with (
        tempfile.TemporaryDirectory(prefix="mergemill-") as name,
        ScriptedModel(ScenarioPlayer(delay=options.delay)) as model,
    ):
        source = Path(name) / "source"
        rollouts = make_source(source) * options.attempts
        comparison = Comparison(source=source, upstream=model.url, attempts=options.attempts, workers=options.workers)
        pairs = measure(comparison, Path(name), options.rounds)
    sampled, benched = (min(command.seconds for command in column) for column in zip(*pairs, strict=True))
    ratio = benched / sampled
    ratios = ", ".join(f"{bench.seconds / sample.seconds:.3f}" for sample, bench in pairs)
    print(f"{rollouts} rollouts: sample {sampled:.1f} s, bench run {benched:.1f} s: {ratio:.3f} times ({ratios})")
    added = statistics.median(bench.cpu_seconds - sample.cpu_seconds for sample, bench in pairs)
    share = 1 + added / sampled
    print(f"bench run uses {added:.2f} s of processor time more: {share:.3f} times")
    is_same = all(sample.plans == bench.plans and len(sample.plans) == rollouts for sample, bench in pairs)
    if not is_same:
        print("the commands did not make the same rollouts", file=sys.stderr)
    is_slow = max(ratio, share) > MAX_RATIO
    if is_slow:
        print(f"bench run takes more than {MAX_RATIO:g} times as long as sample", file=sys.stderr)
    return int(is_slow or not is_same)


if __name__ == "__main__":
    sys.exit(main())

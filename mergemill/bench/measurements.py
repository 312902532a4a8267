"""Measurements of submissions by judges and by runs of tests: made once, stored, and read by the metrics of a report.

An artifact of a `BenchRun` holds those of its submissions: JSON with the time, by which a judge that is chosen again is
the newest, and `results`, rows of `{"metric", "maker", "task", "submission", "result"}`. A submission that several runs
handed in is measured once. `grades`, where rollouts of the run were graded again: id of a rollout -> its newest score,
which counts in place of the one that the rollout was stored with.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple

from taskdb.artifacts import Artifacts
from taskdb.queries.bench import list_run_results
from taskdb.records import Score
from taskdb.records.bench import BenchRun, BenchSet
from taskdb.records.rollouts import Rollout
from taskdb.store import Store

NO_SUBMISSION = hashlib.sha256(b"").hexdigest()


class MeasurementKey(NamedTuple):
    """Metric, maker (such as prompt and judge), id of the task, and sha256 of the submission."""

    metric: str
    maker: str
    task: str
    submission: str


@dataclass
class Measurements:
    """Results by key, in the order in which they were stored, and the grades of a run by the ids of its rollouts."""

    results: dict[MeasurementKey, Mapping[str, Any]] = field(default_factory=dict)
    grades: dict[str, Score] = field(default_factory=dict)

    def add_newest(self, results: Mapping[MeasurementKey, Mapping[str, Any]]) -> None:
        """Add results behind all others, in the place of equal keys."""
        for key, result in results.items():
            self.results.pop(key, None)
            self.results[key] = result

    def get(self, metric: str, maker: str, rollout: Rollout) -> Mapping[str, Any] | None:
        """Return the measurement of a rollout's submission; None where there is none."""
        return self.results.get(make_key(metric, maker, rollout))

    def list_makers(self, metric: str) -> list[str]:
        """Return the makers of a metric's measurements, that of the newest one last."""
        newest_first = dict.fromkeys(key.maker for key in reversed(self.results) if key.metric == metric)
        return [*newest_first][::-1]

    def choose_maker(self, metric: str, rollouts: Sequence[Rollout]) -> str:
        """Return the maker that measured most of some rollouts, of several the newest; empty where none did."""
        counts = {
            maker: sum(make_key(metric, maker, rollout) in self.results for rollout in rollouts)
            for maker in reversed(self.list_makers(metric))
        }
        best = max(counts, key=counts.__getitem__, default="")
        return best if best and counts[best] else ""

    def get_maker(self, metric: str) -> str:
        """Return the maker of a metric's newest measurement; empty where there is none."""
        makers = self.list_makers(metric)
        return makers[-1] if makers else ""


def make_key(metric: str, maker: str, rollout: Rollout) -> MeasurementKey:
    """Return the key of the measurement of a rollout's submission."""
    return MeasurementKey(metric, maker, rollout.parent, rollout.submission or NO_SUBMISSION)


def load_measurements(store: Store, artifacts: Artifacts, bench_set: BenchSet) -> Measurements:
    """Return the measurements of all runs on a set.

    Raises:
        InputError: an artifact does not exist.
    """
    measurements = Measurements()
    for result in list_run_results(store, bench_set.id):
        measurements.add_newest(read_measurements(artifacts, result).results)
    return measurements


def read_measurements(artifacts: Artifacts, result: str) -> Measurements:
    """Return the measurements of an artifact.

    Raises:
        InputError: it does not exist.
    """
    document = json.loads(artifacts.get_text(result))
    rows = document["results"]
    return Measurements(
        {MeasurementKey(row["metric"], row["maker"], row["task"], row["submission"]): row["result"] for row in rows},
        {key: Score.model_validate(score) for key, score in document.get("grades", {}).items()},
    )


def read_run_measurements(artifacts: Artifacts, run: BenchRun) -> Measurements:
    """Return the measurements that the record of a run names.

    Raises:
        InputError: their artifact does not exist.
    """
    return read_measurements(artifacts, run.result) if run.result else Measurements()


def apply_grades(rollouts: Iterable[Rollout], grades: Mapping[str, Score]) -> list[Rollout]:
    """Return rollouts with the grades that count; `grades`: id of a rollout -> its newest score."""
    return [_replace_score(rollout, grades[rollout.id]) if rollout.id in grades else rollout for rollout in rollouts]


def list_graders(rollouts: Iterable[Rollout]) -> tuple[str, ...]:
    """Return the versions of the grader that the scores of some rollouts have, sorted."""
    return tuple(sorted({rollout.score.grader for rollout in rollouts if rollout.score}))


def _replace_score(rollout: Rollout, score: Score) -> Rollout:
    return rollout.model_copy(update={"score": score, "value": score.value, "resolved": score.resolved})


def write_measurements(artifacts: Artifacts, measurements: Measurements, at: str) -> str:
    """Store measurements as an artifact; return its hash. `at`: time (ISO 8601, UTC)."""
    rows = [{**key._asdict(), "result": result} for key, result in measurements.results.items()]
    grades = {key: score.model_dump(mode="json") for key, score in sorted(measurements.grades.items())}
    document = {"at": at, "results": rows, **({"grades": grades} if grades else {})}
    return artifacts.put_text(json.dumps(document, ensure_ascii=False))

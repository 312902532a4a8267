"""Metric `review`: defects found, hallucinations, and whether a review is correct, with bounds for unclear findings."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from core.text import format_count
from evaluation.scoring.review_bench import (
    VOTES,
    Columns,
    FindingClass,
    FindingVote,
    ReviewMaterial,
    classify_findings,
    compute_columns,
    has_lines,
    list_candidates,
    list_fixed_later,
    make_unreadable_columns,
)
from guest.scoring.findings import ReviewFinding, UnreadableReviewError, parse_review
from mergemill.bench.metrics import Metric, MetricContext, OpenValue, Values
from taskdb.queries.bench import find_calibration
from taskdb.records import Task
from taskdb.records.bench import BenchSubject
from taskdb.records.oracles import ReviewOracle
from taskdb.records.rollouts import Rollout
from verifiers.judge.findings import PROMPT

REVIEW = "review"
CLEAN = "clean."
"""Prefix of the columns of controls, which are reported apart."""
Classified = tuple[list[FindingClass], Columns]
"""Class of each finding of a review, and its columns."""


def make_maker(judge: str) -> str:
    """Return the maker of the measurements of a judge: prompt and name."""
    return f"{PROMPT} {judge}"


@dataclass(frozen=True, kw_only=True)
class ReviewCase:
    """A submitted review of a task. `findings` is None where it cannot be read."""

    oracle: ReviewOracle
    material: ReviewMaterial
    findings: tuple[ReviewFinding, ...] | None

    @property
    def needs_meaning(self) -> bool:
        """Whether a defect has no lines, so that only a judge can match findings with it."""
        return not all(map(has_lines, self.oracle.defects))

    def classify(self, judgement: Mapping[str, Any] | None) -> Classified | None:
        """Return the class of each finding and the columns; None where they need a judgement.

        Args:
            judgement: measurement as `mergemill.bench.judging` makes it, or None for lines and names alone.
        """
        is_control = not self.oracle.defects
        if self.findings is None:
            return [], make_unreadable_columns(is_control=is_control)
        if judgement is None:
            if self.needs_meaning and self.findings:
                return None
            edges = list_candidates(self.oracle.defects, self.findings, self.material)
            later = set(list_fixed_later(self.findings, self.oracle.others, self.material))
            votes: dict[int, list[FindingVote]] = {}
        else:
            edges, later = judgement["edges"], set(judgement["later"])
            votes = {int(n): [FindingVote(*vote) for vote in given] for n, given in judgement["votes"].items()}
        classes = classify_findings(self.findings, edges, self.material, later=later, votes=votes)
        return classes, compute_columns(self.oracle.defects, edges, classes)


def make_case(oracle: ReviewOracle, material: ReviewMaterial, submission: bytes) -> ReviewCase:
    """Return the case of a submission."""
    try:
        findings = parse_review(submission)
    except UnreadableReviewError:
        return ReviewCase(oracle=oracle, material=material, findings=None)
    return ReviewCase(oracle=oracle, material=material, findings=findings)


class ReviewMetric(Metric):
    """Columns of reviews (`evaluation.scoring.review_bench.compute_columns`) and their reward; `clean.` for controls.

    The verdicts on the findings of a run are those of the judge that `mergemill bench score` put most of its reviews
    to, of several the newest.
    """

    name = REVIEW

    def prepare(self, context: MetricContext) -> None:
        """Take the data of the set."""
        self._context = context
        self._materials: dict[str, ReviewMaterial] = {}
        self.begin_run(())

    def begin_run(self, rollouts: Sequence[Rollout]) -> None:
        """Read the reviews of a run, and choose the judge among those that findings of it were put to."""
        self._cases: dict[str, ReviewCase] = {}
        self._classified: dict[str, Classified | None] = {}
        with_findings = [rollout for rollout in rollouts if self._has_findings(rollout)]
        self._maker = self._context.measurements.choose_maker(REVIEW, with_findings) if with_findings else ""

    def name_judge(self, rollout: Rollout) -> str | None:
        """Return the judge of a review with its prompt; None of one that has no finding."""
        if not self._has_findings(rollout):
            return None
        if self._get_judgement(rollout) is None:
            return ""
        prompt, _, judge = self._maker.partition(" ")
        return f"{judge} ({prompt})"

    def score(self, subject: BenchSubject, rollout: Rollout) -> Values:
        """Return the columns of a review; nothing of other kinds."""
        task = self._context.tasks.get(subject.id)
        classified = self._classify(task, rollout)
        if task is None or classified is None:
            return {}
        prefix = "" if _get_oracle(task).defects else CLEAN
        values: dict[str, float | OpenValue | None] = {}
        for name, bounds in classified[1].items():
            is_open = bounds is not None and bounds.low != bounds.high
            values[prefix + name] = OpenValue(*bounds) if bounds and is_open else bounds and bounds.low
        return values | {f"{prefix}value": rollout.value}

    def describe(self, rollouts: Sequence[Rollout]) -> Mapping[str, Any]:
        """Return the judge with its calibration, and how many findings have each class."""
        counts: Counter[str] = Counter()
        unscored = 0
        judges = [judge for rollout in rollouts if (judge := self.name_judge(rollout)) is not None]
        for rollout in rollouts:
            task = self._context.tasks.get(rollout.parent)
            if task is not None and isinstance(task.oracle, ReviewOracle):
                classified = self._classify(task, rollout)
                unscored += classified is None
                counts.update(name.value for name in (classified[0] if classified else ()))
        judge = self._maker.partition(" ")[2]
        facts: dict[str, Any] = {
            "judge": judge or None,
            "prompt": PROMPT if judge else None,
            "votes": VOTES if judge else None,
            "calibration": self._load_calibration(judge),
            "findings": {name.value: counts[name.value] for name in FindingClass if counts[name.value]},
            "unjudged": judges.count(""),
            "unscored": unscored,
        }
        listed = ", ".join(f"{number} {name}" for name, number in facts["findings"].items()) or "none"
        missing = f"; {format_count(unscored, 'review')} unscored, as only a judge can match them" if unscored else ""
        return facts | {"remarks": [describe_judge(facts), f"findings: {listed}{missing}"]}

    def _classify(self, task: Task | None, rollout: Rollout) -> Classified | None:
        if task is None or not isinstance(task.oracle, ReviewOracle):
            return None
        if rollout.id not in self._classified:
            case = self._load_case(task, task.oracle, rollout)
            self._classified[rollout.id] = case.classify(self._get_judgement(rollout))
        return self._classified[rollout.id]

    def _load_case(self, task: Task, oracle: ReviewOracle, rollout: Rollout) -> ReviewCase:
        """Return the case of a rollout of the run."""
        if task.id not in self._materials:
            self._materials[task.id] = self._context.materials.load(task)
        if rollout.id not in self._cases:
            submission = self._context.artifacts.get(rollout.submission) if rollout.submission else b""
            self._cases[rollout.id] = make_case(oracle, self._materials[task.id], submission)
        return self._cases[rollout.id]

    def _has_findings(self, rollout: Rollout) -> bool:
        """Return whether a rollout is a review that can be read and has findings, for which there can be a judge."""
        task = self._context.tasks.get(rollout.parent)
        if task is None or not isinstance(task.oracle, ReviewOracle):
            return False
        return bool(self._load_case(task, task.oracle, rollout).findings)

    def _get_judgement(self, rollout: Rollout) -> Mapping[str, Any] | None:
        return self._context.measurements.get(REVIEW, self._maker, rollout) if self._maker else None

    def _load_calibration(self, judge: str) -> Mapping[str, Any] | None:
        context = self._context
        record = find_calibration(context.store, context.bench_set.id, judge, PROMPT) if judge else None
        if record is None or record.result is None:
            return None
        calibration: dict[str, Any] = json.loads(context.artifacts.get_text(record.result))
        return calibration


def _get_oracle(task: Task) -> ReviewOracle:
    assert isinstance(task.oracle, ReviewOracle)  # noqa: S101 - for the type checker
    return task.oracle


def describe_judge(facts: Mapping[str, Any]) -> str:
    """Return the line of a report that names the judge and its calibration."""
    calibration = facts["calibration"]
    judge = f"judge {facts['judge']}, {facts['prompt']}" if facts["judge"] else "no judge"
    if facts["judge"] and facts["unjudged"]:
        judge += f", {format_count(facts['unjudged'], 'review')} without its verdict"
    if calibration is None:
        return f"{judge}: judge not calibrated"
    figures = [
        f"{name.replace('_', '-')} {_format_interval(calibration[name])}"
        for name in ("false_valid", "false_invalid", "kappa")
    ]
    return f"{judge}: {', '.join(figures)}, on {calibration['n']} labelled findings"


def _format_interval(figure: Mapping[str, float | None]) -> str:
    if figure["mean"] is None:
        return "-"
    text = f"{figure['mean']:.2f}"
    return text if figure["low"] is None else f"{text} ({figure['low']:.2f} to {figure['high']:.2f})"

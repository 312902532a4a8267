"""Calibration of the judge of findings: its verdicts on labelled findings, stored so that reports name it."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from core.errors import InputError
from core.json_files import JsonRow, read_rows
from core.text import format_count
from evaluation.scoring.review_bench import FindingClass, ReviewMaterial, decide_votes
from evaluation.statistics.agreement import compute_kappa, compute_kappa_interval
from evaluation.statistics.intervals import MIN_FAMILIES
from guest.scoring.findings import ReviewFinding, UnreadableReviewError, parse_review
from mergemill.bench.figures import DIGITS, describe_share
from mergemill.bench.judging import ReviewJudging
from mergemill.bench.results import load_subjects
from mergemill.bench.review_material import ReviewMaterials
from mergemill.bench.submissions import SubjectIndex, normalize_review
from mergemill.grading.predictions import MalformedRow
from taskdb.artifacts import Artifacts
from taskdb.records import Task
from taskdb.records.bench import JUDGE, BenchRun, BenchSet
from taskdb.records.oracles import ReviewOracle
from taskdb.store import Store
from verifiers.judge.findings import PROMPT

NAMES = ("subject", "task", "instance_id")
"""Fields of a row that may name the subject, in their order."""
LABEL = "label"
LABELS = (FindingClass.VALID.value, FindingClass.INVALID.value)


@dataclass(frozen=True, kw_only=True)
class LabelledFinding:
    """A finding on a review task with a person's label, `valid` or `invalid`."""

    place: str
    task: Task
    finding: ReviewFinding
    label: str


@dataclass(frozen=True, kw_only=True)
class LabelFile:
    """Labelled findings of a file, and the rows that are none."""

    findings: tuple[LabelledFinding, ...]
    malformed: tuple[MalformedRow, ...]


def read_labels(path: Path, tasks: Sequence[Task], source: ReviewMaterials) -> LabelFile:
    """Read a file of labelled findings: rows with a subject, the fields of a finding, and `label`.

    Raises:
        InputError: the file cannot be read.
    """
    findings, malformed = list[LabelledFinding](), list[MalformedRow]()
    subjects = SubjectIndex([task for task in tasks if isinstance(task.oracle, ReviewOracle)])
    materials: dict[str, ReviewMaterial] = {}
    for row in read_rows(path, lambda document: LABEL in document, noun="the labels"):
        try:
            finding = _make_finding(row, subjects)
        except InputError as error:
            malformed.append(MalformedRow(place=row.place, problem=error.format_line()))
            continue
        task = finding.task
        if task.id not in materials:
            materials[task.id] = source.load(task)
        if materials[task.id].has_lines(finding.finding):
            findings.append(finding)
        else:
            problem = "its lines do not exist, which needs no judge"
            malformed.append(MalformedRow(place=row.place, problem=problem))
    return LabelFile(findings=tuple(findings), malformed=tuple(malformed))


def _make_finding(row: JsonRow, subjects: SubjectIndex) -> LabelledFinding:
    if row.problem or not isinstance(row.value, dict):
        raise InputError(row.problem or "it is not a JSON object")
    fields: Mapping[str, Any] = row.value
    name = next((fields[word] for word in NAMES if isinstance(fields.get(word), str)), None)
    if name is None:
        raise InputError(f"it has no text {' or '.join(NAMES)}")
    if fields.get(LABEL) not in LABELS:
        raise InputError(f"its label is none of {', '.join(LABELS)}")
    try:
        (finding,) = parse_review(normalize_review(json.dumps([fields]).encode()))
    except UnreadableReviewError as error:
        raise InputError(str(error)) from error
    return LabelledFinding(place=row.place, task=subjects.find(name, "review"), finding=finding, label=fields[LABEL])


def calibrate(
    store: Store, artifacts: Artifacts, bench_set: BenchSet, judging: ReviewJudging, findings: Sequence[LabelledFinding]
) -> dict[str, Any]:
    """Put labelled findings to the judge, and store the calibration as a run of the scaffold `judge`; return it.

    Raises:
        InputError: there is no finding, or the endpoint rejects key, model or request.
        Transient: the endpoint failed; votes that it gave are not requested again.
    """
    if not findings:
        raise InputError("there is no labelled finding", advice='rows of {"subject", "file", ..., "claim", "label"}')
    subjects = load_subjects(store, bench_set)
    families = [subjects[item.task.name].family for item in findings]
    verdicts = [decide_votes(judging.judge_findings(item.task, [item.finding])[0]).value for item in findings]
    labels = [item.label for item in findings]
    calibration = compute_calibration(labels, verdicts, families)
    judge = judging.maker.removeprefix(f"{PROMPT} ")
    run = BenchRun(
        parent=bench_set.id,
        name=bench_set.name,
        scaffold=JUDGE,
        scaffold_version=PROMPT,
        model=judge,
        runs=1,
        rollouts=(),
        result=artifacts.put_text(json.dumps(calibration)),
        at=store.clock(),
    )
    store.add(run)
    return {"judge": judge, "prompt": PROMPT, **calibration}


def compute_calibration(labels: Sequence[str], verdicts: Sequence[str], families: Sequence[str]) -> dict[str, Any]:
    """Return how well verdicts agree with labels, with intervals where there are `MIN_FAMILIES` families.

    `false_valid`: share of the findings labelled invalid that are judged valid; `false_invalid` the reverse; `kappa`:
    Cohen's, in which `unclear` agrees with no label; `unclear`: number of findings without a verdict.
    """
    valid, invalid = LABELS
    shares = {}
    for name, label, wrong in (("false_valid", invalid, valid), ("false_invalid", valid, invalid)):
        chosen = [n for n, given in enumerate(labels) if given == label]
        values = [float(verdicts[n] == wrong) for n in chosen]
        shares[name] = describe_share(values, [families[n] for n in chosen], name)
    kappa = compute_kappa(labels, verdicts)
    enough = len(set(families)) >= MIN_FAMILIES
    low, high = (compute_kappa_interval(labels, verdicts, families) if enough else None) or (None, None)
    figures = {"mean": kappa, "low": low, "high": high}
    return {
        "n": len(labels),
        "families": len(set(families)),
        "labels": {label: labels.count(label) for label in LABELS},
        "unclear": verdicts.count(FindingClass.UNCLEAR.value),
        **shares,
        "kappa": {name: None if value is None else round(value, DIGITS) for name, value in figures.items()},
    }


def raise_malformed(file: LabelFile) -> None:
    """Raise InputError where rows are malformed; the others were used."""
    if file.malformed:
        raise InputError(f"{format_count(len(file.malformed), 'row')} could not be read; the others were judged")

"""Judging of published tasks straight from their file: no clone, no engine, no database.

The base tree is not available then; the old lines in the patches are used in its place.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

from core.config import Settings
from core.errors import InputError
from mergemill.execution.services import make_model
from miner.instances import InstanceRow, read_instance_rows
from taskdb.artifacts import open_artifacts
from taskdb.records.verdicts import Completion
from verifiers.judge.assess import Assessment, assess
from verifiers.judge.case import JudgeCase
from verifiers.judge.client import JudgeClient
from verifiers.judge.completion import complete_by_rules, measure_completion
from verifiers.judge.model_verdict import ModelVerdict, judge_with_models

JudgedTask = dict[str, Any]
"""Printed fields of a task."""
OPINION_FIELDS = {
    "model",
    "sample",
    "tests",
    "leaks",
    "missing",
    "underspecified",
    "unfair_tests",
    "invalid_reason",
}
COMPLETION_FIELDS = ("addition", "made_by", "rejected", "before", "after")
_NUMBER = re.compile(r"-(\d+)$")


def read_cases(path: Path) -> Iterator[JudgeCase | InputError]:
    """Yield the tasks of a file in order; for an unusable row an error with its number.

    Raises:
        InputError: the file cannot be read.
    """
    for _, row in read_instance_rows(path):
        yield row if isinstance(row, InputError) else build_case(row)


def build_case(row: InstanceRow) -> JudgeCase:
    """Return a published task as a case. The number at the end of its name is the pull request's, as in SWE-bench."""
    number = _NUMBER.search(row.instance_id)
    return JudgeCase(
        name=row.instance_id,
        repo=row.repo,
        statement=row.problem_statement,
        hints=row.hints_text or "",
        gold_patch=row.patch,
        test_patch=row.test_patch,
        fail_to_pass=row.FAIL_TO_PASS,
        pass_to_pass=row.PASS_TO_PASS,
        number=int(number[1]) if number else None,
    )


def judge_file(
    path: Path, only: Sequence[str] = (), settings: Settings | None = None
) -> Iterator[JudgedTask | InputError]:
    """Yield the result for each task of a file; for an unusable line the error.

    Args:
        path: the file.
        only: names of tasks; empty for all.
        settings: endpoint and name of the judging models; without a model the rules judge alone.

    Raises:
        InputError: the file cannot be read, or the model's endpoint rejects the request.
        Transient: the model's endpoint does not answer.
    """
    model = make_model(settings.llm, settings.host) if settings else None
    for case in read_cases(path):
        if isinstance(case, InputError):
            yield case
        elif not only or case.name in only:
            assessment = assess(case)
            result = _build_result(case, assessment)
            if settings and model:
                client = JudgeClient.from_settings(model, settings, open_artifacts(settings.storage))
                result |= _build_panel_result(judge_with_models(case, assessment, client))
            else:
                completion, _ = measure_completion(case, assessment, complete_by_rules(case, assessment))
                result |= _build_completion_result(completion)
            yield result


def _build_result(case: JudgeCase, assessment: Assessment) -> JudgedTask:
    return {
        "instance_id": case.name,
        "underspecified": round(assessment.underspecified, 4),
        "unfair_tests": round(assessment.unfair_tests, 4),
        "findings": [finding.model_dump(include={"rule", "quote", "detail"}) for finding in assessment.findings],
    }


def _build_panel_result(verdict: ModelVerdict) -> JudgedTask:
    """Return the probabilities of the models, which replace those of the rules, with their opinions."""
    return {
        "underspecified": round(verdict.underspecified, 4),
        "unfair_tests": round(verdict.unfair_tests, 4),
        "opinions": [opinion.model_dump(mode="json", include=OPINION_FIELDS) for opinion in verdict.panel.opinions],
        "agreement": verdict.panel.agreement,
        "alpha": verdict.panel.alpha,
        **_build_completion_result(verdict.completion),
    }


def _build_completion_result(completion: Completion | None) -> JudgedTask:
    """Return the addition to the statement, and the probabilities of the rules without and with it."""
    if completion is None:
        return dict.fromkeys(COMPLETION_FIELDS) | {"addition": "", "rejected": []}
    dumped = completion.model_dump(mode="json")
    return {name: dumped[name] for name in COMPLETION_FIELDS}

"""Simulated test run: a model reads tests and program and predicts the outcome of each test."""

from __future__ import annotations

import re
import time
from collections.abc import Collection, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from pydantic import BaseModel, Field

from backends.git import GitError, GitRepository, list_patch_paths
from backends.index import ScratchIndex
from backends.llm.answers import AnswerCache
from backends.llm.base import ContextLengthError, Message
from backends.llm.meter import BudgetExceededError, TokenBudget, UsageMeter
from backends.llm.prompts import PromptTemplates
from backends.llm.structured import request_structured
from backends.services import Services
from evaluation.reports.outcomes import EvaluationReport, Outcome, OutcomeStatus
from languages.paths import is_protected

PROMPT = "simulated-run-1"
"""Folder, with version, of the prompt."""
MAX_INPUT_CHARS = 120_000
"""Largest length of tests and program together; longer inputs are not simulated."""
_STATUSES = {
    "passed": OutcomeStatus.PASSED,
    "assertion": OutcomeStatus.FAILED,
    "error": OutcomeStatus.ERROR,
    "absent": None,
    "skipped": OutcomeStatus.SKIPPED,
}
_PROMPTS = PromptTemplates(Path(__file__).parent / "prompts")


class SimulationError(Exception):
    """A run could not be simulated; the message is the reason."""


class SimulatedOutcome(BaseModel):
    """Predicted outcome of one test."""

    test: str
    outcome: Literal["passed", "assertion", "error", "absent", "skipped"]
    reason: str


class SimulatedReport(BaseModel):
    """Predicted outcomes of all tests."""

    tests: list[SimulatedOutcome] = Field(min_length=1)


@dataclass(frozen=True, kw_only=True)
class SimulationInput:
    """Input of a simulated run.

    `tests` and `sources`: (path, content) pairs, the content None for an absent source file. `errors`: why the patch is
    not applied to the sources, or empty.
    """

    language: str
    tests: tuple[tuple[str, str], ...]
    sources: tuple[tuple[str, str | None], ...]
    errors: str = ""


def build_simulation_input(
    repository: GitRepository,
    base: str,
    *,
    language: str,
    test_patch: bytes,
    test_files: Collection[str],
    patch: bytes,
    files: Sequence[str],
) -> SimulationInput:
    """Return the tests with the test patch applied and the program with `patch` applied.

    Args:
        repository: repository that holds the commit `base`.
        base: the commit that both patches apply to.
        language: language of the change.
        test_patch: test patch that adds the tests.
        test_files: paths of the test files.
        patch: gold patch, submission, or empty. Protected files that it touches are not shown; if it does not apply,
            the program is that of `base`.
        files: program files to show in addition to those that the patch touches.

    Raises:
        GitError: the test patch does not apply.
    """
    with ScratchIndex(repository, base) as index:
        index.apply(test_patch)
        tests = tuple((path, _decode(index.read_file(path)) or "") for path in sorted(test_files))
    with ScratchIndex(repository, base) as index:
        errors = ""
        try:
            changed = list_patch_paths(patch)
            index.apply(patch)
        except GitError as error:
            changed, errors = [], str(error)
        paths = sorted({*files, *(path for path in changed if not is_protected(path))})
        sources = tuple((path, _decode(index.read_file(path))) for path in paths)
    return SimulationInput(language=language, tests=tests, sources=sources, errors=errors)


def _decode(content: bytes | None) -> str | None:
    return None if content is None else content.decode(errors="replace")


def simulate_run(setting: SimulationInput, services: Services, *, sample: int = 1) -> EvaluationReport:
    """Return the report that the model predicts.

    Args:
        setting: tests and program.
        services: model and settings; answers are cached in the store's folder.
        sample: number of the sample among several with the same input.

    Raises:
        SimulationError: there is no model, the files are too long, or the model gave no usable answer.
        Transient: the endpoint failed.
    """
    if services.model is None:
        raise SimulationError("no model is configured")
    length = sum(len(text or "") for _, text in (*setting.tests, *setting.sources))
    if length > MAX_INPUT_CHARS:
        raise SimulationError(f"tests and program have {length} characters, {MAX_INPUT_CHARS} allowed")
    settings = services.settings
    try:
        response = request_structured(
            services.model,
            _build_prompt(setting),
            SimulatedReport,
            meter=UsageMeter(TokenBudget.from_settings(settings.budget)),
            sample=sample,
            check=lambda report: _find_invalid_outcome(report, setting),
            answers=AnswerCache(settings.storage.store_dir / "answers"),
            deadline=time.monotonic() + settings.budget.seconds,
        )
    except (BudgetExceededError, ContextLengthError) as error:
        raise SimulationError(str(error)) from error
    if response.value is None:
        raise SimulationError(response.problem)
    return _build_report(response.value)


def _build_prompt(setting: SimulationInput) -> tuple[Message, ...]:
    return _PROMPTS.render_conversation(
        PROMPT,
        language=setting.language,
        tests=setting.tests,
        sources=setting.sources,
        errors=setting.errors,
        schema=SimulatedReport.model_json_schema(),
    )


def _find_invalid_outcome(report: SimulatedReport, setting: SimulationInput) -> str:
    """Return an error message for an unknown test or a second outcome of a test; empty if all are valid."""
    texts = dict(setting.tests)
    checked: set[str] = set()
    for outcome in report.tests:
        path, _, name = outcome.test.partition("::")
        words = re.findall(r"\w+", name.partition("[")[0])
        if path not in texts:
            return f"{outcome.test}: no such test file"
        if not words or not all(word in texts[path] for word in words):
            return f"{outcome.test}: no such test in {path}"
        if outcome.test in checked:
            return f"{outcome.test} has two outcomes"
        checked.add(outcome.test)
    return ""


def _build_report(report: SimulatedReport) -> EvaluationReport:
    outcomes = {}
    for predicted in report.tests:
        status = _STATUSES[predicted.outcome]
        if status is not None:
            message = f"AssertionError: {predicted.reason}" if status is OutcomeStatus.FAILED else predicted.reason
            outcomes[predicted.test] = Outcome(status=status, message="" if status is OutcomeStatus.PASSED else message)
    return EvaluationReport(outcomes=outcomes, uncollected={})

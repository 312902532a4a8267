"""The judge stage: add a verdict on the statement to a verified change. It runs no container."""

from __future__ import annotations

import re
import time
from collections.abc import Callable, Collection, Iterator
from dataclasses import dataclass
from functools import cached_property
from typing import Any

from backends.git import GitRepository, TreeEntry
from backends.llm.base import LanguageModel
from backends.services import Services
from taskdb.records import Rejection, Task
from taskdb.records.lineage import Lineage
from taskdb.records.verdicts import ModelCall, Verdict
from verifiers.judge.assess import Assessment, assess
from verifiers.judge.case import JudgeCase
from verifiers.judge.client import JudgeClient
from verifiers.judge.completion import complete_by_rules, measure_completion
from verifiers.judge.completion.interfaces import find_interfaces
from verifiers.judge.model_verdict import judge_with_models

MAX_FILE = 1024 * 1024
"""Maximum size in bytes of a file that is searched."""
_BATCH_SIZE = 500
_WORD = re.compile(r"\w+")


def judge(lineage: Lineage, services: Services) -> Verdict | Rejection:
    """Judge the statement of a verified change. The change continues with its verdict, whatever it is.

    Args:
        lineage: a verified candidate.
        services: clones and artifacts, and the model if any.

    Raises:
        InputError: the clone does not exist or lacks objects, or the model's endpoint rejects the request.
        Transient: the model's endpoint does not answer.
    """
    started = time.perf_counter()
    case = build_case(lineage, services)
    assessment = assess(case)
    completed_fields = (
        _complete_by_rules(case, assessment)
        if services.model is None
        else _apply_models(case, assessment, services.model, services)
    )
    verdict = Verdict(
        parent=lineage.require_verification().id,
        candidate=lineage.candidate.id,
        name=lineage.candidate.name,
        underspecified=round(assessment.underspecified, 4),
        unfair_tests=round(assessment.unfair_tests, 4),
        findings=assessment.findings,
        set_aside=assessment.set_aside,
        interfaces=find_interfaces(case),
    )
    return verdict.model_copy(update=completed_fields | {"seconds": time.perf_counter() - started})


def _complete_by_rules(case: JudgeCase, assessment: Assessment) -> dict[str, Any]:
    """Return the fields of a verdict that a completion without a model changes."""
    completion, set_aside = measure_completion(case, assessment, complete_by_rules(case, assessment))
    return {"completion": completion, "set_aside": set_aside}


def _apply_models(case: JudgeCase, assessment: Assessment, model: LanguageModel, services: Services) -> dict[str, Any]:
    """Return the fields of a verdict that models change."""
    model_fields = judge_with_models(
        case, assessment, JudgeClient.from_settings(model, services.settings, services.artifacts)
    )
    requests: list[ModelCall] = [
        *model_fields.panel.opinions,
        *([model_fields.completion] if model_fields.completion else []),
    ]
    return {
        "underspecified": round(model_fields.underspecified, 4),
        "unfair_tests": round(model_fields.unfair_tests, 4),
        "set_aside": model_fields.set_aside,
        "opinions": model_fields.panel.opinions,
        "agreement": model_fields.panel.agreement,
        "alpha": model_fields.panel.alpha,
        "completion": model_fields.completion,
        "tokens": sum(request.tokens for request in requests),
        "cost": sum(request.cost for request in requests),
    }


def build_case(lineage: Lineage, services: Services) -> JudgeCase:
    """Build the case of a verified change; its base tree is read once, when a rule first searches it."""
    candidate, verification = lineage.candidate, lineage.require_verification()
    search = TreeSearch(
        lambda: services.clones.open_history(candidate.source, candidate.repo, candidate.base_commit),
        candidate.base_commit,
    )
    return JudgeCase(
        name=candidate.name,
        repo=candidate.repo,
        statement=candidate.problem_statement,
        hints=candidate.hints,
        gold_patch=services.artifacts.get_text(candidate.gold_patch),
        test_patch=services.artifacts.get_text(lineage.tests.patch),
        fail_to_pass=tuple(test for test, _ in verification.FAIL_TO_PASS),
        pass_to_pass=verification.PASS_TO_PASS,
        number=_parse_number(candidate.name),
        merge_commit=candidate.merge_commit,
        find_in_base_tree=search.find_texts,
    ).cache_searches()


def build_task_case(task: Task, services: Services, repository: GitRepository, commit: str) -> JudgeCase:
    """Build the case of a task with a statement of its own; `commit` is that of the agent's tree in `repository`."""
    return JudgeCase(
        name=task.name,
        repo=task.repo,
        statement=task.problem_statement,
        gold_patch=services.artifacts.get_text(task.gold_patch),
        test_patch=services.artifacts.get_text(task.test_patch),
        fail_to_pass=tuple(test for test, _ in task.FAIL_TO_PASS),
        pass_to_pass=task.PASS_TO_PASS,
        find_in_base_tree=TreeSearch(lambda: repository, commit).find_texts,
    ).cache_searches()


def _parse_number(name: str) -> int | None:
    """Return the pull request's number from the name of a change; commits and releases have none."""
    match = re.search(r"-(\d{1,6})$", name)
    return int(match[1]) if match else None


@dataclass(frozen=True)
class TreeSearch:
    """Text search in the files of a commit, which are listed once, when they are first searched."""

    open_repository: Callable[[], GitRepository]
    commit: str

    def find_texts(self, texts: Collection[str]) -> set[str]:
        """Return the texts that a file contains; a name only as a whole word."""
        wanted = {text: _compile_pattern(text) for text in texts if text}
        present: set[str] = set()
        for content in self._read_contents() if wanted else ():
            here = {text for text, pattern in wanted.items() if pattern.search(content)}
            present |= here
            wanted = {text: pattern for text, pattern in wanted.items() if text not in here}
            if not wanted:
                break
        return present

    @cached_property
    def _repository_and_entries(self) -> tuple[GitRepository, list[TreeEntry]]:
        tree = self.open_repository()
        entries = tree.ls_tree(self.commit)
        return tree, [entry for entry in entries if entry.mode.startswith("100") and entry.size <= MAX_FILE]

    def _read_contents(self) -> Iterator[bytes]:
        tree, entries = self._repository_and_entries
        for at in range(0, len(entries), _BATCH_SIZE):
            yield from tree.read_blobs([entry.oid for entry in entries[at : at + _BATCH_SIZE]])


def _compile_pattern(text: str) -> re.Pattern[bytes]:
    raw = re.escape(text.encode())
    return re.compile(rb"\b" + raw + rb"\b") if _WORD.fullmatch(text) else re.compile(raw)

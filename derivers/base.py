"""What the derivers share: the shape of one, a refusal, and the fields that every task takes from its change."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from enum import StrEnum
from typing import Any

from backends.services import Services
from taskdb.lineage import Lineage
from taskdb.records import Kind, RunKind, Task
from taskdb.verdicts import completed


@dataclass(frozen=True)
class Refusal:
    """Why a change gives no task of a kind."""

    reason: StrEnum | str
    detail: str
    """One line for people."""


Deriver = Callable[[Lineage, Services], list[Task] | Refusal]
"""Makes the tasks of one kind of a change that has what `taskdb.kinds.NEEDS` asks for."""


def task_of(lineage: Lineage, kind: Kind, number: int | None = None, **changes: Any) -> Task:
    """A task with all that it has from its change, and `changes`; `number` where a change gives several of one kind.

    Of a change that was verified, lists, script and image are the verification's; of another one they are empty.
    """
    candidate, environment, verification = lineage.candidate, lineage.environment, lineage.verification
    verified: dict[str, Any] = {}
    if environment is not None and verification is not None:
        solved = [run.test_seconds for run in verification.runs if run.kind is RunKind.SOLVED]
        verified = {
            "parent": verification.id, "twin_patch": verification.twin_patch, "twins": verification.twins,
            "FAIL_TO_PASS": verification.FAIL_TO_PASS, "PASS_TO_PASS": verification.PASS_TO_PASS,
            "eval_script": verification.eval_script, "plan": environment.plan, "image": environment.image,
            "language_version": environment.plan.language_version, "image_digest": environment.image_digest,
            "test_seconds": max(solved, default=0.0), "environment": "verified",
        }  # fmt: skip
    addition = lineage.verdict.addition if lineage.verdict else ""
    common = {
        "parent": candidate.id, "candidate": candidate.id, "source": candidate.source, "kind": kind,
        "name": f"{candidate.name}.{kind}" + (f"-{number}" if number is not None else ""), "repo": candidate.repo,
        "language": candidate.language, "language_version": "", "version": candidate.version,
        "base_commit": candidate.base_commit, "created_at": candidate.created_at, "license": candidate.license,
        "problem_statement": completed(candidate.problem_statement, addition), "hints": candidate.hints,
        "gold_patch": candidate.gold_patch, "test_patch": candidate.test_patch, "twin_patch": None, "twins": (),
        "FAIL_TO_PASS": (), "PASS_TO_PASS": (), "eval_script": None, "plan": None, "image": "", "image_digest": "",
        "test_seconds": 0.0, "environment": "none",
    }  # fmt: skip
    return Task(**(common | verified | changes))


def set_aside(lineage: Lineage) -> Refusal | None:
    """The refusal of kinds that live by their statement, where the judge has set it aside."""
    verdict = lineage.verdict
    if verdict is None or verdict.set_aside is None:
        return None
    found = next((finding for finding in verdict.findings if finding.rule == verdict.set_aside), None)
    detail = f"{found.detail}: {found.quote!r}" if found else "set aside by the judge"
    return Refusal(verdict.set_aside, detail)

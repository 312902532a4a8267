"""A bug fix: something behaved wrongly and a test sees it. New names alone (imports that fail) are no bug."""

from __future__ import annotations

from taskdb.lineage import Lineage
from taskdb.published import compare
from taskdb.records import FailureKind, Kind, RunKind, Task, Verification
from taskdb.verdicts import completed

BEHAVIOURAL = (FailureKind.ASSERTION, FailureKind.ERROR)


def is_bugfix(verification: Verification) -> str | None:
    """None, or why not: no FAIL_TO_PASS test ran and saw something wrong."""
    kinds = {kind for _, kind in verification.FAIL_TO_PASS}
    if kinds & set(BEHAVIOURAL):
        return None
    return f"before the fix every FAIL_TO_PASS test was only {' or '.join(sorted(kinds))}"


def bugfix(lineage: Lineage) -> Task:
    """The bugfix task of a verified change."""
    candidate, environment, verification = lineage.candidate, lineage.the_environment, lineage.the_verification
    addition = lineage.verdict.addition if lineage.verdict else ""
    published = None
    if candidate.published:
        f2p = [test for test, _ in verification.FAIL_TO_PASS]
        published = compare(candidate.published, f2p, verification.PASS_TO_PASS)
    solved = [run.test_seconds for run in verification.runs if run.kind is RunKind.SOLVED]
    return Task(
        parent=verification.id, candidate=candidate.id, source=candidate.source,
        name=f"{candidate.name}.{Kind.BUGFIX}", kind=Kind.BUGFIX, repo=candidate.repo,
        language=candidate.language, language_version=environment.plan.language_version, version=candidate.version,
        base_commit=candidate.base_commit, created_at=candidate.created_at, license=candidate.license,
        problem_statement=completed(candidate.problem_statement, addition), hints=candidate.hints,
        gold_patch=candidate.gold_patch, test_patch=candidate.test_patch, twin_patch=verification.twin_patch,
        FAIL_TO_PASS=verification.FAIL_TO_PASS, PASS_TO_PASS=verification.PASS_TO_PASS, twins=verification.twins,
        eval_script=verification.eval_script, plan=environment.plan, image=environment.image,
        image_digest=environment.image_digest, test_seconds=max(solved, default=0.0), published=published,
    )  # fmt: skip

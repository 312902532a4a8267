"""Review tasks: a submission lists the defects of given code or of a diff. No environment is needed.

A change gives up to four tasks, a task for each entry of `FORMS`.
"""

from __future__ import annotations

from collections.abc import Callable

from backends.services import Services
from derivers.base import KindRejection, build_task
from derivers.bugfix import check_bugfix
from derivers.review.clean import review_clean_change
from derivers.review.construction import (
    NotReviewableError,
    Reason,
    build_diff_review,
    build_file_review,
    count_changed_lines,
    count_lines,
)
from derivers.review.fixes import review_before_fix, review_origin
from derivers.review.history import ReviewHistory
from derivers.review.later_fixes import collect_later_fixes
from derivers.review.related import add_related_files
from derivers.review.subject import ReviewSubject
from derivers.review.threads import review_threads
from derivers.statements import render_template
from taskdb.artifacts import Artifacts
from taskdb.records import Candidate, Kind, Task
from taskdb.records.lineage import Lineage
from taskdb.records.oracles import ReviewOracle

__all__ = ["FORMS", "NotReviewableError", "build_diff_review", "build_file_review", "derive_review", "write_statement"]

FORMS: dict[str, Callable[[ReviewSubject], ReviewOracle]] = {
    "before-fix": review_before_fix,
    "diff": review_origin,
    "clean": review_clean_change,
    "threads": review_threads,
}
"""Form -> function that builds the review, or raises `NotReviewableError`.

Reviews of `cross-file` are built in place of those of `diff`, so that neither has a number of its own.
"""


def derive_review(lineage: Lineage, services: Services) -> list[Task] | KindRejection:
    """Return the review tasks of a change. Only its candidate is needed; a verification shows that it is a fix.

    The tasks' numbers depend on the change's name, so that a number does not reveal the form.

    Raises:
        InputError: the clone is missing or lacks objects.
    """
    candidate = lineage.candidate
    if not candidate.gold_files:
        return KindRejection(Reason.NO_SOURCE_LINES, "there is no patch to review")
    history = ReviewHistory(services.clones.open(candidate.source, candidate.repo))
    verification = lineage.verification
    repairs_tests = verification is not None and check_bugfix(verification) is None
    subject = ReviewSubject(candidate, history, services.artifacts, repairs_tests)
    tasks, errors = list[Task](), dict[str, NotReviewableError]()
    for number, form in enumerate(subject.shuffle(FORMS), 1):
        try:
            oracle = _complete_material(subject, FORMS[form](subject))
        except NotReviewableError as error:
            errors[form] = error
            continue
        tasks.append(_build_task(candidate, oracle, number, services.artifacts))
    if tasks:
        return tasks
    first = errors[next(iter(FORMS))]
    return KindRejection(first.reason, "; ".join(f"{form}: {errors[form]}" for form in FORMS))


def write_statement(oracle: ReviewOracle, repo: str, artifacts: Artifacts) -> str:
    """Return the instructions for the reviewer. They do not reveal whether there is a defect."""
    diff = artifacts.get_text(oracle.diff) if oracle.diff else ""
    files = [(path, count_lines(text)) for path, text in oracle.load_files(artifacts).items()]
    changed = count_changed_lines(diff) if diff else 0
    return render_template("review/statement.md.j2", repo=repo, diff=diff, files=files, changed=changed)


def _complete_material(subject: ReviewSubject, oracle: ReviewOracle) -> ReviewOracle:
    """Return a review with its related files, its size, and its lines that are fixed later."""
    others = collect_later_fixes(subject, oracle)
    return add_related_files(subject.history, oracle, subject.artifacts).model_copy(update={"others": others})


def _build_task(candidate: Candidate, oracle: ReviewOracle, number: int, artifacts: Artifacts) -> Task:
    alone = Lineage(candidate=candidate)  # without environment and verification, even where they exist
    statement = write_statement(oracle, candidate.repo, artifacts)
    return build_task(alone, Kind.REVIEW, number, oracle=oracle, hints="", problem_statement=statement)

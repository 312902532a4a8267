"""Review: somebody reads code or a diff and says what is wrong where. No environment is needed, nothing is run.

Four forms of one change, each a task or a reason why not; reading FORMS is reading what there is.
"""

from __future__ import annotations

from collections.abc import Callable

from backends.services import Services
from derivers.base import Refusal, task_of
from derivers.review.change import Under
from derivers.review.control import clean
from derivers.review.fixes import before_fix, origin
from derivers.review.history import History
from derivers.review.material import Unfit, count_changed, count_lines, diff_review, file_review
from derivers.review.threads import threads
from derivers.statements import filled
from taskdb.artifacts import Artifacts
from taskdb.lineage import Lineage
from taskdb.oracles import Review
from taskdb.records import Candidate, Kind, Task

__all__ = ["FORMS", "Unfit", "diff_review", "file_review", "review", "statement_of"]

FORMS: dict[str, Callable[[Under], Review]] = {
    "before-fix": before_fix,
    "diff": origin,
    "clean": clean,
    "threads": threads,
}
"""`Review.target` -> what makes it of a change, or raises `Unfit`."""


def review(lineage: Lineage, services: Services) -> list[Task] | Refusal:
    """The review tasks of a change; needs its candidate only, whether or not it was ever built.

    Their numbers follow the change's name, so that no number means a form.

    Raises:
        InputError: the clone is gone or lacks objects.
    """
    candidate = lineage.candidate
    history = History(services.clones.open(candidate.source, candidate.repo))
    under = Under(candidate, history, services.artifacts)
    tasks, unfit = list[Task](), dict[str, Unfit]()
    for number, form in enumerate(under.shuffled(FORMS), 1):
        try:
            found = FORMS[form](under)
        except Unfit as why:
            unfit[form] = why
            continue
        tasks.append(_task(candidate, found, number, services.artifacts))
    if tasks:
        return tasks
    first = unfit[next(iter(FORMS))]
    return Refusal(first.reason, "; ".join(f"{form}: {unfit[form]}" for form in FORMS))


def statement_of(found: Review, repo: str, artifacts: Artifacts) -> str:
    """What the reviewer is told. It says nothing of whether anything is wrong, nor what."""
    diff = artifacts.text(found.diff) if found.diff else ""
    files = [(path, count_lines(text)) for path, text in found.texts(artifacts).items()]
    changed = count_changed(diff) if diff else 0
    return filled("review/statement.md.j2", repo=repo, diff=diff, files=files, changed=changed)


def _task(candidate: Candidate, found: Review, number: int, artifacts: Artifacts) -> Task:
    alone = Lineage(candidate=candidate)  # whatever became of the change, no environment is needed
    statement = statement_of(found, candidate.repo, artifacts)
    return task_of(alone, Kind.REVIEW, number, oracle=found, hints="", problem_statement=statement)

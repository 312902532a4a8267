"""What a review is worth: how much it found, and how much of what it says is so.

Where there is something to find, the value is recall x precision^2:

- A defect is found when a finding stands at its lines (`verifiers.rewards.findings`) and, where a model takes part,
  means it (`verifiers.rewards.meaning`). Places with the same claim are places of one defect: one of them is
  enough, and further findings at the others are not wrong.
- Recall is the share of defects found, precision the share of findings that stand at a place of their own; the
  hallucination rate is what is left of it. Precision counts twice so that naming all places where something could be
  wrong is worth less than naming the likeliest: of n places, k named are worth 1 / (n k) on average.

Of a control, in which nothing is wrong, a review without findings is worth 1, one with n findings 1 / (1 + n)^2, as if
the one thing it got right stood beside n that it did not. No review at all is worth 0 everywhere.
"""

from __future__ import annotations

import json
from collections.abc import Sequence

from backends.services import Services
from taskdb.oracles import Defect, Review
from taskdb.records import Score, Task
from verifiers.judge.asking import Asking
from verifiers.rewards.findings import Finding, Unreadable, matched, read, stands_at
from verifiers.rewards.meaning import Meanings


def grade(task: Task, services: Services, submission: bytes) -> Score:
    """The score of a review: JSON as docs/kinds.md has it. Anything else is worth 0 and told why.

    `parts`: recall, precision, hallucination_rate, matched, findings, defects; with a model also judged and void.

    Raises:
        Transient: the model's endpoint does not answer.
        InputError: it refuses what is asked, or the artifacts of the task are gone.
    """
    oracle = _oracle(task)
    try:
        findings = read(submission)
    except Unreadable as why:
        return _score(task, 0.0, {}, str(why))
    if not oracle.defects:
        return _control(task, len(findings))
    files = oracle.texts(services.artifacts)
    meanings = _meanings(task, oracle, files, services)
    pairs = matched(_edges(oracle.defects, findings, files, meanings))
    claims = {defect.claim for defect in oracle.defects}
    found = {oracle.defects[place].claim for place in pairs}
    recall = len(found) / len(claims)
    precision = len(pairs) / len(findings) if findings else 0.0
    parts = {
        "recall": recall, "precision": precision, "hallucination_rate": 1 - precision if findings else 0.0,
        "matched": len(pairs), "findings": len(findings), "defects": len(claims),
    }  # fmt: skip
    if meanings:
        parts |= {"judged": meanings.judged, "void": meanings.void}
    told = (
        f"{len(found)} of {len(claims)} defects found, {len(findings) - len(pairs)} of {len(findings)} findings wrong"
    )
    return _score(task, recall * precision**2, parts, told)


def gold(task: Task, services: Services) -> bytes:
    """The review that names every place of every defect, and nothing else."""
    del services
    found = [
        {"file": one.path, "first_line": one.first_line, "last_line": one.last_line, "claim": one.claim}
        for one in _oracle(task).defects
    ]
    return json.dumps({"findings": found}, ensure_ascii=False).encode()


def _control(task: Task, findings: int) -> Score:
    wrong = float(findings > 0)
    parts = {
        "recall": 1.0, "precision": 1.0 - wrong, "hallucination_rate": wrong, "matched": 0.0,
        "findings": float(findings), "defects": 0.0,
    }  # fmt: skip
    return _score(task, 1 / (1 + findings) ** 2, parts, f"nothing is known to be wrong, {findings} findings")


def _edges(
    defects: Sequence[Defect], findings: Sequence[Finding], files: dict[str, str], meanings: Meanings | None
) -> list[list[int]]:
    """For each defect the findings that stand there and do not mean something else."""
    lines = {path: text.count("\n") + (not text.endswith("\n")) for path, text in files.items()}
    near = [[n for n, one in enumerate(findings) if stands_at(one, defect, lines)] for defect in defects]
    if meanings is None:
        return near
    return [
        [n for n in numbers if meanings.same(findings[n], defect) is not False]
        for defect, numbers in zip(defects, near, strict=True)
    ]


def _meanings(task: Task, oracle: Review, files: dict[str, str], services: Services) -> Meanings | None:
    if services.model is None:
        return None
    change = services.artifacts.text(task.gold_patch) if oracle.target in ("before-fix", "diff") else ""
    return Meanings(Asking.begin(services.model, services.settings, services.artifacts), files, change)


def _oracle(task: Task) -> Review:
    if isinstance(task.oracle, Review):
        return task.oracle
    raise LookupError(f"{task.name} is no review")


def _score(task: Task, value: float, parts: dict[str, float], explanation: str) -> Score:
    """A score; a review is `resolved` when nothing is missing and nothing wrong. No tests are run: both rates are 1."""
    return Score(
        task=task.name, value=value, resolved=value == 1.0, f2p_rate=1.0, p2p_rate=1.0, parts=parts,
        explanation=explanation,
    )  # fmt: skip

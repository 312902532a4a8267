"""Instructions of agents for every kind of task, and where the submission is read from."""

from __future__ import annotations

import shlex
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

from backends.services import Services
from core.templates import make_environment
from taskdb.records import Task
from taskdb.records.oracles import ReviewOracle

REVIEW_FOLDER = "/testbed"
ANSWER_FILE = "/testbed/review.json"
SIMULATED_FOLDER = "/testbed"
"""Repository of a task whose programs are simulated."""
DIFF_FILE = "/testbed/change.diff"
_TEMPLATES = make_environment(Path(__file__).with_name("templates"))


@dataclass(frozen=True, kw_only=True)
class Instruction:
    """The user's message of a rollout, and the files it refers to."""

    text: str
    workdir: str
    submission: str
    """`patch`, `tests` or `review`: the output that is collected at the end."""
    files: Mapping[str, bytes] = field(default_factory=dict)
    """Absolute path -> content, for tasks without an environment."""
    answer: str | None = None
    """File that the submission is read from; None for the difference of the tree."""


def make_instruction(task: Task, services: Services, submission: str) -> Instruction:
    """Return the instruction of a task. `submission`: form that its reward takes."""
    if isinstance(task.oracle, ReviewOracle):
        return _make_review_instruction(task, task.oracle, services)
    workdir = task.plan.workdir if task.plan else SIMULATED_FOLDER
    text = _TEMPLATES.get_template("instruction.md.j2").render(
        submission=submission,
        workdir=workdir,
        statement=task.problem_statement.strip(),
        hints=task.hints.strip(),
        test_command=shlex.join(task.plan.test.argv) if task.plan else "",
    )
    return Instruction(text=text.strip() + "\n", workdir=workdir, submission=submission)


def _make_review_instruction(task: Task, oracle: ReviewOracle, services: Services) -> Instruction:
    files = {f"{REVIEW_FOLDER}/{path}": text.encode() for path, text in oracle.load_files(services.artifacts).items()}
    if oracle.diff is not None:
        files[DIFF_FILE] = services.artifacts.get(oracle.diff)
    text = _TEMPLATES.get_template("instruction.md.j2").render(
        submission="review",
        workdir=REVIEW_FOLDER,
        statement=task.problem_statement.strip(),
        diff=DIFF_FILE if oracle.diff is not None else None,
        answer=ANSWER_FILE,
    )
    return Instruction(
        text=text.strip() + "\n", workdir=REVIEW_FOLDER, submission="review", files=files, answer=ANSWER_FILE
    )

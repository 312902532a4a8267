"""Tasks as subjects: the instruction of every kind of task, and where its submission is read from."""

from __future__ import annotations

import shlex
from collections.abc import Collection, Iterator
from contextlib import contextmanager
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import IO, Any

from backends.services import Services
from backends.tree_tar import open_read_only_tree
from core.templates import make_environment
from samplers.rollouts.environment import SIMULATED
from samplers.rollouts.leaks import list_hidden_lines
from samplers.subjects.instructions import make_guidance
from samplers.subjects.subject import Subject
from taskdb.artifacts import Artifacts
from taskdb.records import Task
from taskdb.records.instructions import InstructionOracle, InstructionSource, PublishedChecklist
from taskdb.records.oracles import ReviewOracle

REVIEW_FOLDER = "/testbed"
ANSWER_FILE = "/testbed/review.json"
SIMULATED_FOLDER = "/testbed"
"""Repository of a task whose programs are simulated."""
DIFF_FILE = "/testbed/change.diff"
TREE_FOLDER = "/tree"
"""Folder of the tree that the files under review are of: outside of the repository, so that it is in no difference."""
_TEMPLATES = make_environment(Path(__file__).with_name("templates"))


def list_task_sources(task: Task) -> Collection[InstructionSource]:
    """Return the sources of a task's instructions besides its statement, by its record alone."""
    return task.oracle.sources if isinstance(task.oracle, InstructionOracle) else ()


def make_task_subject(task: Task, services: Services, submission: str) -> Subject:
    """Return the subject of a task.

    Args:
        task: the task.
        services: services with the artifacts of the task.
        submission: form that its reward takes: `patch`, `tests` or `review`.

    Raises:
        InputError: an artifact is missing or damaged.
    """
    if isinstance(task.oracle, ReviewOracle):
        return _make_review_subject(task, task.oracle, services)
    is_instructed = isinstance(task.oracle, InstructionOracle)
    if isinstance(task.oracle, InstructionOracle) and task.oracle.published is not None:
        return _make_published_subject(task, task.oracle, task.oracle.published, services)
    workdir = task.plan.workdir if task.plan else SIMULATED_FOLDER
    text = _TEMPLATES.get_template("instruction.md.j2").render(
        submission="patch" if is_instructed else submission,
        workdir=workdir,
        statement=task.problem_statement.strip(),
        hints=task.hints.strip(),
        test_command=shlex.join(task.plan.test.argv) if task.plan else "",
    )
    fields = describe_instructions(task.oracle) if isinstance(task.oracle, InstructionOracle) else {}
    return _make_subject(task, services.artifacts, instruction=text, workdir=workdir, **fields)


def _make_published_subject(
    task: Task, oracle: InstructionOracle, published: PublishedChecklist, services: Services
) -> Subject:
    """Return the subject of a published checklist, whose first message is given as it is."""
    subject = _make_subject(
        task,
        services.artifacts,
        instruction=task.problem_statement,
        workdir=published.workdir,
        **describe_instructions(oracle),
    )
    return replace(subject, image=published.image)


def describe_instructions(oracle: InstructionOracle) -> dict[str, Any]:
    """Return the fields of a subject with instructions besides its statement: `guidance`, `deliveries` and others."""
    late = {
        constraint.name: f"{InstructionSource.TURN}-{constraint.turn}"
        for constraint in oracle.constraints
        if constraint.source is InstructionSource.TURN and constraint.turn > 1
    }
    return {"guidance": make_guidance(oracle), "deliveries": late, "grades_conversation": True}


def _make_review_subject(task: Task, oracle: ReviewOracle, services: Services) -> Subject:
    artifacts = services.artifacts
    files = {f"{REVIEW_FOLDER}/{path}": text.encode() for path, text in oracle.load_files(artifacts).items()}
    if oracle.diff is not None:
        files[DIFF_FILE] = artifacts.get(oracle.diff)
    text = _TEMPLATES.get_template("instruction.md.j2").render(
        submission="review",
        workdir=REVIEW_FOLDER,
        statement=task.problem_statement.strip(),
        diff=DIFF_FILE if oracle.diff is not None else None,
        answer=ANSWER_FILE,
        tree=TREE_FOLDER if oracle.tree else None,
    )
    tree = partial(_open_tree, task, oracle.tree, services) if oracle.tree else None
    return _make_subject(
        task, artifacts, instruction=text, workdir=REVIEW_FOLDER, files=files, tree=tree, answer=ANSWER_FILE
    )


@contextmanager
def _open_tree(task: Task, commit: str, services: Services) -> Iterator[IO[bytes]]:
    """Yield the tar of the tree of a review.

    Raises:
        InputError: the tree is neither in the store nor in a clone of the task's source.
    """
    repository = services.clones.open_tree(task.source, task.repo, commit)
    with open_read_only_tree(repository, commit, at=TREE_FOLDER) as tar:
        yield tar


def _make_subject(task: Task, artifacts: Artifacts, *, instruction: str, workdir: str, **fields: Any) -> Subject:
    """Return the subject of a task. `fields`: further fields of subjects that have files and an answer."""
    return Subject(
        id=task.id,
        name=task.name,
        environment=task.environment,
        statement=task.problem_statement,
        instruction=instruction.strip() + "\n",
        image=task.image,
        workdir=workdir,
        hidden_lines=_list_hidden_lines(task, artifacts),
        project=task.repo,
        **fields,
    )


def _list_hidden_lines(task: Task, artifacts: Artifacts) -> frozenset[str]:
    """Return the lines of the hidden tests; none for a task whose agent has no tests."""
    if not task.test_patch or not (task.image or task.environment == SIMULATED):
        return frozenset()
    return list_hidden_lines(artifacts.get_text(task.test_patch), task.problem_statement)

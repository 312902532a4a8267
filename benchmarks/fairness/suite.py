"""Small projects, honest submissions to the task of each, and the scores that these earn."""

from __future__ import annotations

import subprocess
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass, field
from enum import StrEnum
from pathlib import Path

from backends.git import GitRepository
from backends.services import Services
from core.config import Settings
from mergemill.cli import run_command_line
from mergemill.execution.services import make_services
from taskdb.records import Score, Task
from taskdb.store import Store
from tests.helpers import TinyRepo
from tests.sample import LICENSE
from verifiers.grade import grade

Files = Mapping[str, str | bytes | None]
"""Path -> content; None deletes the file."""


class SubmissionGroup(StrEnum):
    """What is unusual about a submission."""

    CODE = "other code than the gold patch"
    BEHAVIOUR = "side effects at run time"
    FILES = "other files than those of the fix"
    FORM = "form of the patch"


@dataclass(frozen=True)
class WorkTree:
    """The repository in which a submission was made, not committed yet, and the commit that it began with."""

    repo: TinyRepo
    base: str


def write_git_patch(tree: WorkTree, *options: str) -> bytes:
    """Return the changes of a work tree as `git diff --binary` writes them."""
    tree.repo.git("add", "-A")
    return GitRepository(tree.repo.path).run_git("diff", "--no-ext-diff", "--cached", "--binary", *options, tree.base)


@dataclass(frozen=True, kw_only=True)
class HonestSubmission:
    """A correct solution.

    Attributes:
        name: what is unusual about it, in a few words; unique in its language.
        group: its row in the table.
        files: all of its changes.
        commands: Bash commands that run in the work tree after the files were written.
        form: returns its patch.
    """

    name: str
    group: SubmissionGroup
    files: Files
    commands: str = ""
    form: Callable[[WorkTree], bytes] = field(default=write_git_patch, repr=False)


@dataclass(frozen=True)
class GradedSubmission:
    """A submission and its score."""

    submission: HonestSubmission
    score: Score

    @property
    def is_refused(self) -> bool:
        """Whether it earned less than 1, or could not be scored."""
        return self.score.value != 1.0


@dataclass(frozen=True, kw_only=True)
class HonestProject:
    """A project with one change, which becomes a task, and honest submissions to it.

    Attributes:
        language: its language.
        before: files of the base commit.
        solution: the source half of the change.
        tests: the test half.
        statement: message of the commit.
        submissions: solutions of the task.
    """

    language: str
    before: Files
    solution: Files
    tests: Files
    statement: str
    submissions: Sequence[HonestSubmission] = field(repr=False)


@dataclass(frozen=True, kw_only=True)
class HonestTask:
    """The task of a project, and the repository in which patches of submissions are made."""

    project: HonestProject
    task: Task
    services: Services
    repo: TinyRepo
    base: str

    def make_patch(self, submission: HonestSubmission) -> bytes:
        """Return the patch of a submission. Its changes are made in the repository, one submission at a time."""
        self.repo.git("checkout", "-q", "-f", "--detach", self.base)
        self.repo.git("clean", "-ffdxq")
        self.repo.write(submission.files)
        subprocess.run(["bash", "-euc", submission.commands], cwd=self.repo.path, check=True, capture_output=True)
        return submission.form(WorkTree(self.repo, self.base))

    def grade_all(self, submissions: Sequence[HonestSubmission], workers: int) -> list[GradedSubmission]:
        """Return the submissions with their scores; `workers` are graded at a time."""
        patches = [self.make_patch(submission) for submission in submissions]
        with ThreadPoolExecutor(workers) as pool:
            scores = pool.map(lambda patch: grade(self.task, self.services, patch), patches)
            return [GradedSubmission(*pair) for pair in zip(submissions, scores, strict=True)]


@contextmanager
def open_task(project: HonestProject, folder: Path) -> Iterator[HonestTask]:
    """Make the task of a project in an empty folder, with a database of its own.

    Raises:
        RuntimeError: the change did not become one task.
    """
    repo = TinyRepo(folder / f"ada__till-{project.language}")
    base = repo.commit("Begin", {**project.before, "LICENSE": LICENSE})
    repo.commit(f"{project.statement.strip()}\n", {**project.solution, **project.tests})
    repo.git("branch", "change")
    database = f"sqlite:///{folder}/fairness.db"
    code = run_command_line(["run", f"git:{repo.path}", "--db", database, "--workers", "1"])
    with Store.open(database) as store:
        tasks = list(store.load_all(Task))
    if code or len(tasks) != 1:
        raise RuntimeError(f"{project.language}: {len(tasks)} tasks, exit code {code}; see `mergemill funnel`")
    services = make_services(Settings(db=database), engine=True)
    with services.images.hold():
        yield HonestTask(project=project, task=tasks[0], services=services, repo=repo, base=base)

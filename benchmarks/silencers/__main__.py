"""Measure how often submissions are paid that solve nothing and switch assertions off.

    python -m benchmarks.silencers --db DATABASE [--task NAME] [--only-language LANGUAGE] [--gradings N] [--check]
        [--page PAGE]

A silencer (`benchmarks.silencers.submissions`) has a form: methods of test classes, functions of assertion libraries,
`assert` statements, comparisons of the types under test, exceptions swallowed in runner and fixtures, each alone and
all together. For each controlled task of the database, submissions are made of the files that its gold patch changes,
and graded as `mergemill grade` does. First each is graded once without controls: where it is paid, it has switched off
all that the task's tests assert. Only those are graded with controls: another one fails the tests as they are, and so
the true instances.

Printed are, for each silencer, the tasks that pay it without controls, its gradings with controls and how many of them
were paid, the share with a 95 % interval (Wilson), and the mean of the bounds that the tasks state. With `--check` the
exit code is 1 if a silencer is paid so often, over all tasks or in one, that the bounds explain it with a probability
below 1/1000.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Iterable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from pathlib import Path
from typing import Protocol

from scipy.stats import binomtest

from benchmarks.page_table import write_table
from benchmarks.silencers.parts import SilencedTarget
from benchmarks.silencers.submissions import Silencer, list_silencers, read_silenced_target
from core.config import Settings
from mergemill.grading.grading import Submission, TaskGrader
from taskdb.records import Score, Task
from taskdb.store import Store
from verifiers.probes import make_patch

RARE = 0.001
"""Probability below which chance does not explain how often a silencer was paid."""


class PersistentGrader(Protocol):
    """Grades submissions, again where the infrastructure fails."""

    def grade_persistently(self, submission: Submission) -> Score:
        """Return the score of a submission; its value is None where it never was scored."""


@dataclass
class TaskCount:
    """Gradings of a silencer's submission to a task.

    Attributes:
        task: name of the task.
        bound: control bound of the task.
        bare: value without controls, None where it has no score.
        gradings: gradings with controls that have a score.
        paid: gradings with the value 1.
        unscored: gradings without a score.
        evidence: explanation of a grading that was paid, or of the last.
    """

    task: str
    bound: float
    bare: float | None
    gradings: int = 0
    paid: int = 0
    unscored: int = 0
    evidence: str = ""

    def add(self, score: Score) -> None:
        """Count a grading with controls."""
        if score.value is None:
            self.unscored += 1
            return
        self.gradings += 1
        self.paid += score.value == 1.0
        if score.value == 1.0 or not self.paid:
            self.evidence = score.explanation

    @property
    def is_above_bound(self) -> bool:
        """Whether the bound does not explain how often the submission was paid."""
        return is_above(self.paid, self.gradings, self.bound)


@dataclass
class SilencerCount:
    """Gradings of a silencer over tasks."""

    name: str
    tasks: list[TaskCount] = field(default_factory=list)

    @property
    def gradings(self) -> int:
        """Gradings with controls that have a score."""
        return sum(task.gradings for task in self.tasks)

    @property
    def paid(self) -> int:
        """Those with the value 1."""
        return sum(task.paid for task in self.tasks)

    @property
    def bound(self) -> float:
        """Mean of the tasks' bounds over the gradings, 0..1."""
        return sum(task.bound * task.gradings for task in self.tasks) / self.gradings if self.gradings else 0.0

    @property
    def is_above_bound(self) -> bool:
        """Whether the bounds do not explain how often the silencer was paid, over all tasks or in one."""
        return is_above(self.paid, self.gradings, self.bound) or any(task.is_above_bound for task in self.tasks)


def is_above(paid: int, gradings: int, bound: float) -> bool:
    """Return whether a share is significantly above a bound."""
    return bool(gradings) and bool(binomtest(paid, gradings, min(1.0, bound), alternative="greater").pvalue < RARE)


def list_tasks(store: Store, names: Sequence[str], language: str | None) -> list[Task]:
    """Return the tasks of a database that have controls and are graded by tests, each set of controls once."""
    tasks: dict[str | None, Task] = {}
    for task in store.load_all(Task):
        is_wanted = language in (None, task.language) and (not names or task.name in names)
        if is_wanted and task.blind_controls and task.control_bound is not None and task.oracle is None:
            tasks.setdefault(task.blind_controls, task)
    return list(tasks.values())


def measure(
    tasks: Sequence[tuple[Task, SilencedTarget]],
    grader: PersistentGrader,
    gradings: int,
    *,
    forms: Sequence[str] = (),
    workers: int = 1,
) -> list[SilencerCount]:
    """Grade all silencers.

    Args:
        tasks: tasks with the files that submissions are made of.
        grader: grader of submissions; threads share it.
        gradings: gradings of each silencer with controls, spread evenly over its tasks.
        forms: forms to measure; empty for all.
        workers: gradings at a time.
    """
    counts: dict[str, SilencerCount] = {}
    with ThreadPoolExecutor(workers) as threads:
        for task, target in tasks:
            share = sum(other.language == task.language for other, _ in tasks)
            for silencer, submission in _make_submissions(task, target, forms):
                value = _grade_bare(grader, submission)
                count = TaskCount(task.name, task.control_bound or 1.0, value)
                graded = [submission] * max(1, gradings // share) if value == 1.0 else []
                for score in threads.map(grader.grade_persistently, graded):
                    count.add(score)
                counts.setdefault(silencer.name, SilencerCount(silencer.name)).tasks.append(count)
                print(
                    f"{task.name}: {silencer.name}: {_format(value)} without controls, "
                    f"paid {count.paid} of {count.gradings}: {count.evidence}",
                    flush=True,
                )
    return list(counts.values())


def _make_submissions(
    task: Task, target: SilencedTarget, forms: Sequence[str]
) -> Iterator[tuple[Silencer, Submission]]:
    for silencer in list_silencers(task.language):
        if not forms or silencer.form in forms:
            changes = silencer.make(target)
            if changes:
                yield silencer, Submission(task=task, content=make_patch(changes, target.base))


def _grade_bare(grader: PersistentGrader, submission: Submission) -> float | None:
    """Return the value of a submission to the task without controls."""
    bare = submission.task.model_copy(update={"blind_controls": None, "control_bound": None, "evaluations": 1})
    return grader.grade_persistently(Submission(task=bare, content=submission.content)).value


def _format(value: float | None) -> str:
    return "no score" if value is None else f"{value:g}"


def render_table(counts: Iterable[SilencerCount]) -> str:
    """Return the table in Markdown."""
    lines = [
        "| silencer | paid without controls | paid with controls | share | 95 % interval | bound |",
        "|---|--:|--:|--:|---|--:|",
    ]
    for count in counts:
        bare = sum(task.bare == 1.0 for task in count.tasks)
        share, interval = "", ""
        if count.gradings:
            low, high = binomtest(count.paid, count.gradings).proportion_ci(method="wilson")
            share, interval = f"{count.paid / count.gradings:.2g}", f"{low:.2g} to {high:.2g}"
        lines.append(
            f"| {count.name} | {bare} of {len(count.tasks)} tasks | {count.paid} of {count.gradings} | {share} | "
            f"{interval} | {count.bound:.2g} |"
        )
    return "\n".join(lines) + "\n"


def main(arguments: Sequence[str] | None = None) -> int:
    """Measure and print; return the exit code."""
    parser = argparse.ArgumentParser(
        prog="python -m benchmarks.silencers",
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("--db", required=True, help="address of the database")
    parser.add_argument("--store", type=Path, help="folder of the artifacts; by default in the folder of the database")
    parser.add_argument("--task", action="append", default=[], help="name of a task; may be repeated (default: all)")
    parser.add_argument("--only-language", help="tasks of this language alone")
    parser.add_argument("--form", action="append", default=[], help="form to measure; may be repeated (default: all)")
    parser.add_argument("--gradings", type=int, default=200, help="gradings of each silencer with controls")
    parser.add_argument("--workers", type=int, default=1, help="gradings at a time")
    parser.add_argument("--seconds", type=float, default=120, help="time limit of a run; silenced code may never end")
    parser.add_argument("--check", action="store_true", help="exit with 1 where a silencer is paid above the bound")
    parser.add_argument("--page", type=Path, help="write the table between the marks of this page")
    options = parser.parse_args(arguments)
    store_option = {"store": options.store} if options.store else {}
    settings = Settings(db=options.db, test_timeout=options.seconds, **store_option)
    with Store.open(settings.storage.db, create=False) as store:
        grader = TaskGrader(store, settings, is_writer=False)
        tasks = [
            (task, read_silenced_target(task, grader.open_services(task)))
            for task in list_tasks(store, options.task, options.only_language)
        ]
        counts = measure(tasks, grader, options.gradings, forms=options.form, workers=options.workers)
    table = render_table(counts)
    print(table)
    if options.page:
        write_table(options.page, "benchmarks.silencers", table)
    above = [count for count in counts if count.is_above_bound]
    for count in above:
        for task in count.tasks:
            if task.paid:
                print(f"above the bound: {count.name}: {task.task}: {task.paid} of {task.gradings}, {task.bound:.2g}")
    return int(options.check and bool(above))


if __name__ == "__main__":
    sys.exit(main())

"""A search for injected bugs from step to step: the results of a step as JSON, and back.

A key stands for each bug (`bug_queue.make_key`), as the bugs themselves follow from the base tree; those that a model
wrote are stored.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable, Mapping
from typing import Any

from derivers.injected.bug_queue import BugQueue, make_key
from derivers.injected.environment_tasks import EnvironmentTasks
from derivers.injected.reach import TestGroup
from derivers.injected.screening import BugScreening
from derivers.injected.search import DetectedBug
from derivers.search_progress import (
    SearchProgress,
    list_covered_lines,
    list_report_fields,
    read_covered_lines,
    read_report,
)
from mutation import Mutation, build_patch


def list_written_bugs(progress: SearchProgress) -> list[Mutation]:
    """Return the bugs that a model has written in earlier steps."""
    return [Mutation(**{**row, "after": row["after"].encode("latin-1")}) for row in progress.state.get("written", ())]


def add_written_bugs(progress: SearchProgress, bugs: Iterable[Mutation], functions: int) -> None:
    """Add bugs that a model wrote for further functions; `functions`: their number."""
    fields = ("operator", "path", "line", "detail")
    rows = [{name: getattr(bug, name) for name in fields} | {"after": bug.after.decode("latin-1")} for bug in bugs]
    progress.state["written"] = [*progress.state.get("written", ()), *rows]
    progress.state["written_functions"] = count_written_functions(progress) + functions


def count_written_functions(progress: SearchProgress) -> int:
    """Return for how many functions a model has written bugs."""
    number: int = progress.state.get("written_functions", 0)
    return number


def read_groups(progress: SearchProgress) -> tuple[TestGroup, ...] | None:
    """Return the groups of test files that an earlier step has run; None where none has."""
    rows = progress.state.get("groups")
    if rows is None:
        return None
    return tuple(
        TestGroup(
            files=tuple(row["files"]),
            passing=frozenset(row["passing"]),
            covered=read_covered_lines(row["covered"]),
            seconds=row["seconds"],
        )
        for row in rows
    )


def add_groups(progress: SearchProgress, groups: Iterable[TestGroup]) -> None:
    """Add the groups of test files that were run."""
    progress.state["groups"] = [
        {
            "files": group.files,
            "passing": sorted(group.passing),
            "covered": list_covered_lines(group.covered),
            "seconds": group.seconds,
        }
        for group in groups
    ]


def resume_search(progress: SearchProgress, screening: BugScreening, tasks: EnvironmentTasks) -> None:
    """Set screening and tasks as the step before has left them."""
    state = progress.state
    screening.tried = list(progress.tried)
    screening.detected = deque(_read_detected(state.get("detected", ()), screening))
    tasks.waiting = deque(_read_detected(state.get("waiting", ()), screening))
    tasks.n_unforeseen = state.get("n_unforeseen", 0)
    if state.get("uses_whole_suite"):
        screening.use_whole_suite()


def record_search(progress: SearchProgress, screening: BugScreening, tasks: EnvironmentTasks) -> None:
    """Write the state of screening and tasks at the end of a step into the progress."""
    progress.tried = screening.tried
    progress.state |= {
        "detected": [_list_fields(bug) for bug in screening.detected],
        "waiting": [_list_fields(bug) for bug in tasks.waiting],
        "n_unforeseen": tasks.n_unforeseen,
        "uses_whole_suite": screening.uses_whole_suite,
    }


def _list_fields(bug: DetectedBug) -> dict[str, Any]:
    return {
        "bug": make_key(bug.mutation),
        "failing": bug.failing_tests,
        "asserting": sorted(bug.asserting_tests),
        "report": list_report_fields(bug.report),
    }


def _read_detected(rows: Iterable[Mapping[str, Any]], screening: BugScreening) -> Iterable[DetectedBug]:
    """Yield the bugs whose files are still among those of the search."""
    queue: BugQueue = screening.queue
    for row in rows:
        mutation = queue.tried.get(row["bug"])
        if mutation is None:
            continue
        yield DetectedBug(
            mutation=mutation,
            patch=build_patch(mutation.path, screening.contents[mutation.path], mutation.after),
            failing_tests=tuple(row["failing"]),
            asserting_tests=frozenset(row["asserting"]),
            report=read_report(row["report"]),
        )

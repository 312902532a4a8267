"""Grade honest submissions to small tasks, and print how many of them were refused.

    python -m benchmarks.fairness [--languages python,go] [--workers 2] [--page docs/evidence/fairness.md]

One task per language is made by the command line, certification included; Docker is needed. A submission is refused
unless it earns 1. `--page` writes the table between the marks of a page; without all languages it is not written.
"""

from __future__ import annotations

import argparse
import sys
import tempfile
import time
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

from benchmarks.fairness.projects import PROJECTS
from benchmarks.fairness.suite import GradedSubmission, SubmissionGroup, open_task
from benchmarks.page_table import write_table

MAX_REFUSED = 0.01
"""Share of honest submissions that may be refused."""
Results = Mapping[str, Sequence[GradedSubmission]]
"""Language -> its submissions with their scores."""


def grade_language(language: str, workers: int) -> list[GradedSubmission]:
    """Make the task of a language, grade all honest submissions to it, and print each refused one."""
    project = PROJECTS[language]
    with tempfile.TemporaryDirectory() as folder, open_task(project, Path(folder)) as task:
        started = time.monotonic()
        graded = task.grade_all(project.submissions, workers)
    seconds = time.monotonic() - started
    print(f"{language}: {len(graded)} submissions in {seconds:.0f} s, task {task.task.control_bound:.2g}", flush=True)
    for grading in graded:
        if grading.is_refused:
            print(
                f"  refused: {grading.submission.name}: {grading.score.value} {grading.score.explanation}", flush=True
            )
    return graded


def render_table(results: Results) -> str:
    """Return the Markdown table of groups and languages, and a line for each refused submission."""
    lines = ["| | " + " | ".join(results) + " |", "|---|" + "---|" * len(results)]
    rows: list[tuple[str, list[Sequence[GradedSubmission]]]] = [
        (
            str(group),
            [[grading for grading in graded if grading.submission.group is group] for graded in results.values()],
        )
        for group in SubmissionGroup
    ]
    rows.append(("all", list(results.values())))
    for name, cells in rows:
        lines.append(f"| {name} | " + " | ".join(_count(cell) for cell in cells) + " |")
    graded = [grading for cell in results.values() for grading in cell]
    refused = [grading for grading in graded if grading.is_refused]
    share = 100 * len(refused) / len(graded)
    lines += [
        "",
        f"Refused: {len(refused)} of {len(graded)} ({share:.1f} %)." if refused else f"Refused: none of {len(graded)}.",
    ]
    return "\n".join([*lines, *_list_refused(results)]) + "\n"


def _count(cell: Sequence[GradedSubmission]) -> str:
    return f"{sum(not grading.is_refused for grading in cell)} of {len(cell)}"


def _list_refused(results: Results) -> Iterator[str]:
    for language, graded in results.items():
        for grading in graded:
            if grading.is_refused:
                yield f"- {language}, {grading.submission.name}: {grading.score.explanation}"


def main() -> None:
    """Grade the submissions of the chosen languages; the exit code is 1 if more than 1 % are refused."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--languages", default=",".join(PROJECTS))
    parser.add_argument("--workers", type=int, default=2, help="submissions that are graded at a time")
    parser.add_argument("--page", type=Path)
    options = parser.parse_args()
    languages = options.languages.split(",")
    unknown = sorted({*languages} - {*PROJECTS})
    if unknown:
        parser.error(f"no submissions in {', '.join(unknown)}; languages: {', '.join(PROJECTS)}")
    if options.page and len(languages) < len(PROJECTS):
        parser.error("--page needs all languages")
    results = {language: grade_language(language, options.workers) for language in languages}
    table = render_table(results)
    print(table)
    if options.page:
        write_table(options.page, "benchmarks.fairness", table)
    graded = [grading for cell in results.values() for grading in cell]
    sys.exit(sum(grading.is_refused for grading in graded) > MAX_REFUSED * len(graded))


if __name__ == "__main__":
    main()

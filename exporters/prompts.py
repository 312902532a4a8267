"""Instruction for an agent: where the material lies, the files that may be changed, and the problem statement.

Text of the repository comes last and is not escaped. Harbor strips leading lines that mention canaries, so other text
stands first.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from exporters.solver_files import list_solver_files
from taskdb.records.oracles import ReviewOracle, TestWritingOracle

if TYPE_CHECKING:
    from exporters.item import ExportItem
    from taskdb.artifacts import Artifacts

REVIEW_FOLDER = "/review"
"""Folder of the material under review."""
FINDINGS_FILE = f"{REVIEW_FOLDER}/findings.json"
"""File that the agent writes."""
REVIEW_TREE = "/tree"
"""Folder of the tree that the files under review are of."""

SOLVE = """\
The repository {repo} lies in `{workdir}`. Solve the following by changing its source code there. Hidden tests decide;
changes to tests and to the configuration of the test runner do not count.

{statement}
"""
WRITE_TESTS = """\
The repository {repo} lies in `{workdir}`. Do the following by adding or changing test files there. Only they are
submitted, as the difference from the tree as it is now: remove all other new files when you are done.

{statement}
"""
REVIEW = f"""\
The material of a code review lies in `{REVIEW_FOLDER}`: the files in `{REVIEW_FOLDER}/files`, each under its own path,
and `{REVIEW_FOLDER}/diff` where a change is under review. Write your answer to `{FINDINGS_FILE}`, as the one JSON
object that is described below. Without this file there is no review.
{{tree}}
{{statement}}
"""
TREE_NOTE = f"""
The whole code base, as of the version under review, lies in `{REVIEW_TREE}` to be read, such as for what other files
rely on. Only the files in `{REVIEW_FOLDER}/files` are under review.
"""
REVIEW_TEXT = """\
{statement}

The material follows: each file under its path{diff}.
{material}
"""
RELATED_NOTE = """
These files of the same version are not under review. They import files above or are imported by them:

"""


def build_instruction(item: ExportItem) -> str:
    """Return the text that an agent is given in an environment with the task's files."""
    task = item.task
    statement = task.problem_statement.strip()
    if isinstance(task.oracle, ReviewOracle):
        return REVIEW.format(statement=statement, tree=TREE_NOTE if task.oracle.tree else "")
    template = WRITE_TESTS if isinstance(task.oracle, TestWritingOracle) else SOLVE
    return template.format(repo=task.repo, workdir=task.require_plan().workdir, statement=statement)


def build_complete_instruction(item: ExportItem, artifacts: Artifacts) -> str:
    """Return the instruction for a model without an environment, too: that of a review holds its material.

    Files under review come first, then those that are next to them by imports, the nearest first.
    """
    oracle = item.task.oracle
    if not isinstance(oracle, ReviewOracle):
        return build_instruction(item)
    files = list_solver_files(item.task, artifacts)
    statement, diff = files.pop("statement.md"), files.pop("diff", None)
    parts = [_render_file(path.removeprefix("files/"), text) for path, text in sorted(files.items())]
    parts += [f"The diff:\n\n{_fence(diff)}"] if diff is not None else []
    related = [_render_file(path, text) for path, text in oracle.load_related(artifacts).items()]
    parts += [RELATED_NOTE + "\n".join(related)] if related else []
    return REVIEW_TEXT.format(
        statement=statement.strip(),
        diff=", then the diff" if diff is not None else "",
        material="\n".join(["", *parts]),
    )


def _render_file(path: str, text: str) -> str:
    return f"`{path}`:\n\n{_fence(text)}"


def _fence(text: str) -> str:
    """Return a text in a fenced block that it cannot end."""
    fence = "`" * max(3, 1 + max((len(run) for run in re.findall("`+", text)), default=0))
    return f"{fence}\n{text}{'' if text.endswith(chr(10)) else chr(10)}{fence}\n"

"""What tells right from wrong in a task beside its lists of tests: one part for each kind that has its own."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Annotated, Literal

from pydantic import Field

from taskdb.base import MEASURED, ArtifactHash, Part, TestId

if TYPE_CHECKING:
    from taskdb.artifacts import Artifacts


class Span(Part):
    """Lines of a file, both ends included."""

    path: str
    first_line: int
    """1-based."""
    last_line: int


class Edit(Part):
    """A small change of the solved tree (B+G): a mutant, or a rewrite that keeps the behaviour."""

    operator: str
    """Name of the rule that made it, such as `comparison`."""
    path: str
    line: int
    """1-based, in the solved tree."""
    detail: str
    """One line for people, such as `a < b became a <= b`."""
    patch: ArtifactHash
    """Applies to the solved tree."""


class Writing(Part):
    """What submitted tests are held against."""

    form: Literal["test-writing"] = "test-writing"
    mutants: tuple[Edit, ...]
    """Each is noticed by the change's own tests."""
    variants: tuple[Edit, ...]
    """Each passes the change's own tests and all that passed before."""
    lines: tuple[Span, ...]
    """What the gold patch added or changed, in the solved tree."""
    covered: Annotated[float | None, MEASURED] = None
    """Share of these lines, of those that any test runs, that the tests of the base tree run, 0..1; null where
    coverage cannot be told."""
    unreached: tuple[Span, ...] = ()
    """Those of the lines that the change's own tests run and the tests of the base tree do not."""


class Defect(Span):
    """Something a review has to find."""

    claim: str
    """What is wrong there, in one line."""


class Review(Part):
    """What is to be reviewed, and what is to be found."""

    form: Literal["review"] = "review"
    target: Literal["before-fix", "diff", "clean", "threads"]
    """The code before a fix, a diff with a known defect, a clean diff (a control), or a diff people spoke of."""
    files: ArtifactHash
    """JSON: path -> text of the files under review, as the reviewer sees them."""
    diff: ArtifactHash | None
    """The diff under review; null when the files themselves are."""
    defects: tuple[Defect, ...]
    """By the lines of `files`; empty for a control."""

    def texts(self, artifacts: Artifacts) -> dict[str, str]:
        """The files under review: path -> text."""
        found: dict[str, str] = json.loads(artifacts.text(self.files))
        return found


class Performance(Part):
    """What a faster solution is measured by."""

    form: Literal["performance"] = "performance"
    workload: Annotated[ArtifactHash, MEASURED]
    """An evaluation script that runs some of the tests many times and tells the time they took."""
    tests: Annotated[tuple[TestId, ...], MEASURED]
    """The tests it runs; they pass before and after."""
    clock: Annotated[Literal["cpu", "wall"], MEASURED]
    """What is compared: processor time of all processes, or the time that passes (where waiting was made shorter)."""
    ratio: Annotated[float, MEASURED]
    """Seconds before by seconds after the gold patch, medians of interleaved runs."""
    threshold: Annotated[float, MEASURED]
    """The smallest such ratio that a submission must reach."""


Oracle = Annotated[Writing | Review | Performance, Field(discriminator="form")]

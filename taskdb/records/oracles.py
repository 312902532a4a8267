"""Oracles in addition to the lists of tests: a class for each kind of task that has its own."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Annotated, ClassVar, Literal

from pydantic import Field

from taskdb.records.base import LATER, MEASURED, ArtifactHash, Part, TestId
from taskdb.records.instructions import InstructionOracle

if TYPE_CHECKING:
    from taskdb.artifacts import Artifacts


StructureRules = Mapping[str, Sequence[Sequence[str] | str]]
"""Rules of a tree's structure: JSON data for the check in `guest.harness.structure`."""


class LineSpan(Part):
    """Lines of a file, both ends included."""

    path: str
    first_line: int
    """1-based."""
    last_line: int

    def list_lines(self) -> range:
        """Return the numbers of the lines."""
        return range(self.first_line, self.last_line + 1)


class CodeEdit(Part):
    """A small change of the gold tree (B+G): a mutant, or a rewrite that keeps the behaviour."""

    operator: str
    """Name of the rule that made it, such as `comparison`."""
    path: str
    line: int
    """1-based, in the gold tree."""
    detail: str
    """A line for people, such as `a < b became a <= b`."""
    patch: ArtifactHash
    """Applies to the gold tree."""


class TestWritingOracle(Part):
    """Data that submitted tests are evaluated against."""

    __test__: ClassVar[bool] = False  # not a test class, whatever pytest thinks of the name

    form: Literal["test-writing"] = "test-writing"
    mutants: tuple[CodeEdit, ...]
    """Mutants; each makes a test of the change fail."""
    variants: tuple[CodeEdit, ...]
    """Rewrites; each passes the change's own tests and all PASS_TO_PASS tests."""
    gold_spans: tuple[LineSpan, ...]
    """Definitions that the gold patch added or changed, in the gold tree."""
    base_coverage: Annotated[float | None, MEASURED] = None
    """Share of these lines that the tests of the base tree execute, among those that any test executes, 0..1; null
    where coverage cannot be measured."""
    uncovered_spans: tuple[LineSpan, ...] = ()
    """The lines among them that only the change's own tests execute."""


class Defect(LineSpan):
    """A defect that a review must find."""

    claim: str
    """Fault that is wrong there, in a single line."""


class LaterFix(LineSpan):
    """Lines under review that a later commit of the history fixes, whether or not a reviewer is to find them."""

    message: str
    """First line of that commit's message."""


class MaterialSize(Part):
    """Size of the texts that a reviewer without tools is given: files under review, related files and the diff."""

    files: int
    n_bytes: int
    """Bytes in UTF-8."""


ReviewTarget = Literal["before-fix", "diff", "cross-file", "clean", "threads"]
"""Form of a review: the code before a fix, a diff with a known defect, a diff with a defect between files, a clean diff
(a control), or a diff with review comments."""


class ReviewOracle(Part):
    """The material of a review and the defects to be found."""

    form: Literal["review"] = "review"
    target: ReviewTarget
    files: ArtifactHash
    """JSON: path -> text of the files under review, as the reviewer sees them."""
    diff: ArtifactHash | None
    """The diff under review; null when the files themselves are."""
    defects: tuple[Defect, ...]
    """By the lines of `files`; empty for a control."""
    tree: Annotated[str | None, LATER] = None
    """Commit whose tree the reviewer may read, in which the files under review are as given; null for tasks of earlier
    versions."""
    related: Annotated[ArtifactHash | None, LATER] = None
    """JSON: path -> text of further files of that tree for a reviewer without tools, the nearest by imports first."""
    material: Annotated[MaterialSize | None, MEASURED] = None
    """Null for tasks of earlier versions."""
    others: Annotated[tuple[LaterFix, ...], MEASURED] = ()
    """By the lines of `files`, in the order of the commits, as far as the history went when the task was derived. No
    part of the reward: a finding at these lines is no hallucination."""

    def load_files(self, artifacts: Artifacts) -> dict[str, str]:
        """Return the files under review: path -> text."""
        files: dict[str, str] = json.loads(artifacts.get_text(self.files))
        return files

    def load_related(self, artifacts: Artifacts) -> dict[str, str]:
        """Return the related files, the nearest first: path -> text."""
        files: dict[str, str] = json.loads(artifacts.get_text(self.related)) if self.related else {}
        return files


class PerformanceOracle(Part):
    """Workload and threshold of a performance task."""

    form: Literal["performance"] = "performance"
    workload: Annotated[ArtifactHash, MEASURED]
    """An evaluation script that runs some of the tests many times and reports their times."""
    tests: Annotated[tuple[TestId, ...], MEASURED]
    """The tests it runs; they pass before and after."""
    clock: Annotated[Literal["cpu", "wall"], MEASURED]
    """Quantity that is compared.

    Processor time of all processes, or elapsed time (where the change shortens waiting).
    """
    ratio: Annotated[float, MEASURED]
    """Seconds before divided by seconds after the gold patch, medians of interleaved runs."""
    threshold: Annotated[float, MEASURED]
    """The smallest such ratio that a submission must reach."""


class Definition(Part):
    """A function, class or type of a file."""

    path: str
    name: str
    """Qualified by the classes around it: `Cart.total`."""


class MovedDefinition(Definition):
    """A definition that a refactoring must have, and where it comes from."""

    origin: Definition
    """The definition that it was; without a name where it is extracted from other code."""


class RefactoringOracle(Part):
    """The structure that a refactoring must give; the behaviour is checked by tests."""

    form: Literal["refactoring"] = "refactoring"
    moved: tuple[MovedDefinition, ...]
    """Definitions that exist afterwards and not before."""
    gone: tuple[Definition, ...]
    """Definitions that exist before and not afterwards."""
    kept: tuple[Definition, ...]
    """Public definitions of the touched files that exist before and afterwards."""

    def build_rules(self) -> StructureRules:
        """Return the rules of the check in `guest.harness.structure`."""
        groups = {"required": self.moved, "gone": self.gone, "kept": self.kept}
        return {key: [[definition.path, definition.name] for definition in group] for key, group in groups.items()}


class MigrationOracle(Part):
    """The dependency that must be gone, and the dependency that takes its place; the behaviour is checked by tests."""

    form: Literal["dependency-migration"] = "dependency-migration"
    old_modules: tuple[str, ...]
    """Modules that no source file imports afterwards."""
    new_modules: tuple[str, ...]
    """Modules that some source file imports afterwards, and none before."""
    old_packages: tuple[str, ...] = ()
    """Packages that no manifest names afterwards."""
    new_packages: tuple[str, ...] = ()
    """Packages that a manifest names afterwards, and none before."""

    def build_rules(self) -> StructureRules:
        """Return the rules of the check in `guest.harness.structure`."""
        return {
            "old_modules": list(self.old_modules),
            "new_modules": list(self.new_modules),
            "old_packages": list(self.old_packages),
            "new_packages": list(self.new_packages),
        }


Oracle = Annotated[
    TestWritingOracle | ReviewOracle | PerformanceOracle | RefactoringOracle | MigrationOracle | InstructionOracle,
    Field(discriminator="form"),
]

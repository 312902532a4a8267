"""Refactoring tasks: the same behaviour, and definitions where the change has put them.

The definitions that the gold patch moves, renames or extracts is found in syntax trees
(`mutation.definitions`); a submission is checked without the project (`guest.harness.structure`). The oracle
contains only the definitions that the check finds in either of the base tree and the gold tree and not in the other.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from difflib import SequenceMatcher
from enum import StrEnum

from backends.git import GitError
from backends.services import Services
from derivers.base import KindRejection, build_task, check_statement
from derivers.statements import render_template
from derivers.structure.trees import ChangedTrees
from guest.harness.structure.structure_check import has_definition
from languages.paths import is_source
from mutation.definitions import CodeDefinition, list_definitions
from taskdb.records import Kind, Task
from taskdb.records.lineage import Lineage
from taskdb.records.oracles import Definition, MovedDefinition, RefactoringOracle
from taskdb.records.tags import ChangeKind

MIN_SIMILARITY = 0.6
"""Share of equal text from which a new definition is an old definition under another name."""
MIN_EXTRACTED_SHARE = 0.5
"""Share of a new definition's lines that the change takes from elsewhere, for it to be an extraction."""
MIN_EXTRACTED_LINES = 2
MIN_LINE_CHARS = 3
"""Shorter lines, such as brackets, are not compared."""
MAX_KEPT = 300
"""Definitions of the public interface that are checked."""


class Reason(StrEnum):
    """Why a verified change is not a refactoring. Where the judge excluded the statement, the reason is its finding."""

    NOT_A_REFACTORING = "not-a-refactoring"
    NO_PASSING_TESTS = "no-passing-tests"
    """No test passes before and after, so nothing ensures that the behaviour is kept."""
    NO_STRUCTURE = "no-structure"
    """No definition is moved, renamed or extracted."""
    DOES_NOT_APPLY = "does-not-apply"


@dataclass(frozen=True, slots=True)
class PlacedDefinition:
    """A definition of a file."""

    path: str
    code: CodeDefinition


def derive_refactoring(lineage: Lineage, services: Services) -> list[Task] | KindRejection:
    """Return the refactoring task of a verified change. Nothing is executed."""
    candidate, verification = lineage.candidate, lineage.require_verification()
    if candidate.change_kind is not ChangeKind.REFACTOR:
        return KindRejection(Reason.NOT_A_REFACTORING, f"the change is of another kind: {candidate.change_kind}")
    if rejection := check_statement(lineage):
        return rejection
    if not verification.PASS_TO_PASS:
        return KindRejection(Reason.NO_PASSING_TESTS, "no test passes before and after the change")
    try:
        trees = ChangedTrees.from_candidate(candidate, services)
    except GitError as error:
        return KindRejection(Reason.DOES_NOT_APPLY, str(error))
    oracle = find_structure(trees.before, trees.after)
    if oracle is None:
        return KindRejection(Reason.NO_STRUCTURE, "no definition is moved, renamed or extracted")
    task = build_task(lineage, Kind.REFACTORING, oracle=oracle)
    statement = render_template("structure/refactoring.md.j2", statement=task.problem_statement.rstrip(), oracle=oracle)
    return [task.model_copy(update={"problem_statement": statement})]


def find_structure(before: Mapping[str, bytes], after: Mapping[str, bytes]) -> RefactoringOracle | None:
    """Return the definitions that a change moves, renames and extracts; None where it does nothing of these.

    Args:
        before: path -> content of the files that it touches, in the base tree.
        after: the same in the gold tree.
    """
    old, new = (_list_placed(files) for files in (before, after))
    gone = [placed for key, placed in old.items() if key not in new and _is_confirmed(placed, before, after)]
    added = [placed for key, placed in new.items() if key not in old and _is_confirmed(placed, after, before)]
    counts = _count_lines(before), _count_lines(after)
    moved = tuple(
        MovedDefinition(path=placed.path, name=placed.code.name, origin=origin)
        for placed in added
        if (origin := _find_origin(placed, gone, counts)) is not None
    )
    origins = {(move.origin.path, move.origin.name) for move in moved if move.origin.name}
    left = tuple(
        Definition(path=placed.path, name=placed.code.name)
        for placed in gone
        if (placed.path, placed.code.name) in origins
    )
    if not moved:
        return None
    kept = tuple(
        Definition(path=path, name=name)
        for (path, name), placed in sorted(old.items())
        if (path, name) in new and _is_public(placed) and _is_defined(placed, before) and _is_defined(placed, after)
    )
    return RefactoringOracle(moved=moved, gone=left, kept=kept[:MAX_KEPT])


def _list_placed(files: Mapping[str, bytes]) -> dict[tuple[str, str], PlacedDefinition]:
    return {
        (path, name): PlacedDefinition(path, code)
        for path, content in files.items()
        if is_source(path)
        for name, code in list_definitions(path, content).items()
    }


def _is_defined(placed: PlacedDefinition, files: Mapping[str, bytes]) -> bool:
    """Return whether the check finds a definition in its file."""
    return has_definition(placed.path, files.get(placed.path, b"").decode(errors="replace"), placed.code.name)


def _is_confirmed(placed: PlacedDefinition, there: Mapping[str, bytes], elsewhere: Mapping[str, bytes]) -> bool:
    """Return whether the check finds a definition in a single tree and not in the other."""
    return _is_defined(placed, there) and not _is_defined(placed, elsewhere)


def _is_public(placed: PlacedDefinition) -> bool:
    return not any(part.startswith(("_", "#")) for part in placed.code.name.split("."))


def _count_lines(files: Mapping[str, bytes]) -> Counter[str]:
    texts = (content.decode(errors="replace") for path, content in files.items() if is_source(path))
    return Counter(line for text in texts for line in map(str.strip, text.splitlines()) if len(line) > MIN_LINE_CHARS)


def _find_origin(
    placed: PlacedDefinition, gone: list[PlacedDefinition], counts: tuple[Counter[str], Counter[str]]
) -> Definition | None:
    """Return the definition that a new one was; a nameless one where it was extracted; None where it is only new.

    Args:
        placed: the new definition.
        gone: definitions of the base tree that the gold tree lacks.
        counts: numbers of each line in the base tree and in the gold tree.
    """
    for was in _rank_origins(placed, gone):
        same_name = was.code.last_name == placed.code.last_name
        ratio = SequenceMatcher(None, was.code.body, placed.code.body, autojunk=False).ratio()
        if ratio >= MIN_SIMILARITY or (same_name and was.path != placed.path):
            return Definition(path=was.path, name=was.code.name)
    before, after = counts
    body = Counter(line for line in placed.code.body if len(line) > MIN_LINE_CHARS)
    n_moved = sum(before[line] > after[line] - body[line] for line in body)
    if n_moved >= MIN_EXTRACTED_LINES and n_moved >= MIN_EXTRACTED_SHARE * len(body):
        return Definition(path=placed.path, name="")
    return None


def _rank_origins(placed: PlacedDefinition, gone: list[PlacedDefinition]) -> Iterator[PlacedDefinition]:
    """Yield possible origins, those of the same name first."""
    yield from sorted(gone, key=lambda was: (was.code.last_name != placed.code.last_name, was.path != placed.path))

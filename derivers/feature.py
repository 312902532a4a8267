"""Features: changes whose tests use names that the base tree lacks. The statement names them."""

from __future__ import annotations

from collections.abc import Sequence
from enum import StrEnum
from pathlib import PurePosixPath

from backends.services import Services
from derivers.base import KindRejection, build_task, check_statement
from derivers.bugfix import check_bugfix, compare_with_published
from taskdb.records import Kind, Task
from taskdb.records.lineage import Lineage
from taskdb.records.verdicts import Interface, Verdict

HEADING = "## Interface\n\nThe tests use these names; they must exist with these signatures:\n"


class Reason(StrEnum):
    """Why a verified change is not a feature. Where the judge has excluded the statement, the reason is its finding."""

    BEHAVIOURAL_FAILURE = "behavioural-failure"
    NOTHING_FAILS = "nothing-fails"
    INTERFACE_NOT_NAMED = "interface-not-named"


def derive_feature(lineage: Lineage, services: Services) -> list[Task] | KindRejection:
    """Return the feature task of a verified change whose tests cannot be collected without it. Nothing is executed."""
    if not lineage.require_verification().FAIL_TO_PASS:
        return KindRejection(Reason.NOTHING_FAILS, "no test fails before the change")
    if check_bugfix(lineage.require_verification()) is None:
        detail = "a test runs and fails before the change: it is a bug fix"
        return KindRejection(Reason.BEHAVIOURAL_FAILURE, detail)
    if rejection := check_statement(lineage):
        return rejection
    verdict = lineage.require_verdict()
    if unnamed := _find_unnamed(verdict):
        detail = f"the tests use {unnamed[0]!r}, whose definition could not be read"
        return KindRejection(Reason.INTERFACE_NOT_NAMED, detail)
    task = build_task(lineage, Kind.FEATURE, published=compare_with_published(lineage, services))
    statement = append_interfaces(task.problem_statement, verdict.interfaces)
    return [task.model_copy(update={"problem_statement": statement})]


def append_interfaces(statement: str, interfaces: Sequence[Interface]) -> str:
    """Return the statement followed by the interfaces that the change adds, its tests use and the statement lacks."""
    items = [interface.format_item() for interface in interfaces]
    lines = [item for item in items if item not in statement.splitlines()]
    if not lines:
        return statement
    return f"{statement.rstrip()}\n\n{HEADING}\n" + "\n".join(lines) + "\n"


def _find_unnamed(verdict: Verdict) -> list[str]:
    """Return the names that the tests require, the statement lacks, and no interface defines.

    An accepted completion has stated all of them.
    """
    if verdict.addition:
        return []
    named = {word for interface in verdict.interfaces for word in (interface.name, PurePosixPath(interface.path).stem)}
    return [
        finding.quote
        for finding in verdict.findings
        if finding.rule == "name-not-stated" and not named & set(_split_words(finding.quote))
    ]


def _split_words(quote: str) -> list[str]:
    return "".join(letter if letter.isalnum() or letter == "_" else " " for letter in quote).split()

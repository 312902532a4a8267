"""A feature: the new tests need names that the tree does not have yet, and the statement tells them."""

from __future__ import annotations

from collections.abc import Sequence
from enum import StrEnum
from pathlib import PurePosixPath

from backends.services import Services
from derivers.base import Refusal, set_aside, task_of
from derivers.bugfix import as_published, is_bugfix
from taskdb.lineage import Lineage
from taskdb.records import Kind, Task
from taskdb.verdicts import Interface, Verdict

HEADING = "## Interface\n\nThe tests use these names; they must exist with these signatures:\n"


class Reason(StrEnum):
    """Why a verified change is no feature. What the judge has set aside has its finding's name for a reason."""

    BEHAVIOURAL_FAILURE = "behavioural-failure"
    NOTHING_FAILS = "nothing-fails"
    INTERFACE_NOT_NAMED = "interface-not-named"


def feature(lineage: Lineage, services: Services) -> list[Task] | Refusal:
    """The feature task of a verified change whose tests could not even begin without it; runs nothing."""
    del services
    if not lineage.the_verification.FAIL_TO_PASS:
        return Refusal(Reason.NOTHING_FAILS, "nothing fails before it")
    if is_bugfix(lineage.the_verification) is None:
        return Refusal(Reason.BEHAVIOURAL_FAILURE, "a test ran before it and saw something wrong: a bug fix")
    if refusal := set_aside(lineage):
        return refusal
    verdict = lineage.the_verdict
    if unnamed := _unnamed(verdict):
        return Refusal(Reason.INTERFACE_NOT_NAMED, f"nothing tells {unnamed[0]!r}, which the tests use")
    task = task_of(lineage, Kind.FEATURE, published=as_published(lineage))
    return [task.model_copy(update={"problem_statement": with_interfaces(task.problem_statement, verdict.interfaces)})]


def with_interfaces(statement: str, needed: Sequence[Interface]) -> str:
    """The statement, and after it what the tests call, where the change brings that."""
    if not needed:
        return statement
    lines = [f"- `{one.path}`: `{one.signature}`" for one in needed]
    return f"{statement.rstrip()}\n\n{HEADING}\n" + "\n".join(lines) + "\n"


def _unnamed(verdict: Verdict) -> list[str]:
    """Names that the tests demand, that the statement does not tell, and whose definition could not be read."""
    told = {word for one in verdict.interfaces for word in (one.name, PurePosixPath(one.path).stem)}
    return [f.quote for f in verdict.findings if f.rule == "name-not-stated" and not told & set(_words(f.quote))]


def _words(quote: str) -> list[str]:
    return "".join(letter if letter.isalnum() or letter == "_" else " " for letter in quote).split()

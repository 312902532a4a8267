"""What becomes a feature task, and what its statement tells."""

from __future__ import annotations

from typing import Any

import pytest

from derivers.base import Refusal
from derivers.feature import feature, with_interfaces
from taskdb.lineage import Lineage
from taskdb.records import FailureKind, Task
from taskdb.verdicts import Finding, Interface, Place
from tests import records

SHOUT = Interface(name="shout", signature="def shout(name: str) -> str", path="greet/loud.py", parameters=("name",))
ABSENT = (("t.py::test_shout", FailureKind.ABSENT),)
SERVICES: Any = None  # it runs nothing


def lineage(kinds: Any = ABSENT, **verdict: Any) -> Lineage:
    candidate = records.candidate(records.pull_request())
    environment = records.environment(candidate)
    verification = records.verification(environment, FAIL_TO_PASS=kinds)
    said = records.verdict(verification, **verdict)
    return Lineage(candidate=candidate, environment=environment, verification=verification, verdict=said)


def unstated(line: str) -> Finding:
    return Finding(rule="name-not-stated", quote=line, detail="a name", place=Place.TESTS)


def test_the_statement_of_a_feature_names_what_its_tests_use() -> None:
    made = feature(lineage(interfaces=(SHOUT,), findings=(unstated('assert shout("Ada") == "ADA"'),)), SERVICES)
    assert not isinstance(made, Refusal)
    (task,) = made
    assert isinstance(task, Task)
    assert task.name == "ada__greet-1.feature"
    assert task.problem_statement.startswith(records.candidate(records.pull_request()).problem_statement)
    assert "- `greet/loud.py`: `def shout(name: str) -> str`" in task.problem_statement
    assert task.FAIL_TO_PASS == ABSENT


def test_a_statement_is_left_alone_where_the_tests_need_no_new_name() -> None:
    assert with_interfaces("As it was.\n", ()) == "As it was.\n"


@pytest.mark.parametrize(
    ("it", "reason"),
    [
        (lineage((("t.py::test_a", FailureKind.ASSERTION), *ABSENT)), "behavioural-failure"),
        (lineage(()), "nothing-fails"),
        (lineage(set_aside="message-not-stated"), "message-not-stated"),
        (lineage(findings=(unstated("assert whisper(1)"),), interfaces=(SHOUT,)), "interface-not-named"),
    ],
)
def test_why_a_change_is_no_feature(it: Lineage, reason: str) -> None:
    made = feature(it, SERVICES)
    assert isinstance(made, Refusal)
    assert made.reason == reason

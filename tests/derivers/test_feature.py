"""Which changes are features, and the statements of their tasks."""

from __future__ import annotations

from typing import Any

import pytest

from derivers.base import KindRejection
from derivers.feature import append_interfaces, derive_feature
from taskdb.records import FailureKind, Task
from taskdb.records.lineage import Lineage
from taskdb.records.verdicts import Completion, Finding, Interface, QuoteSource
from tests import records

SHOUT = Interface(name="shout", signature="def shout(name: str) -> str", path="greet/loud.py", parameters=("name",))
ABSENT = (("t.py::test_shout", FailureKind.ABSENT),)
SERVICES: Any = None  # nothing is executed


def lineage(kinds: Any = ABSENT, **verdict: Any) -> Lineage:
    candidate = records.make_candidate(records.make_pull_request())
    environment = records.make_environment(candidate)
    verification = records.make_verification(environment, FAIL_TO_PASS=kinds)
    response = records.make_verdict(verification, **verdict)
    return Lineage(candidate=candidate, environment=environment, verification=verification, verdict=response)


def unstated(line: str) -> Finding:
    return Finding(rule="name-not-stated", quote=line, detail="a name", quote_source=QuoteSource.TESTS)


def test_the_statement_of_a_feature_names_the_interfaces_of_its_tests() -> None:
    made = derive_feature(lineage(interfaces=(SHOUT,), findings=(unstated('assert shout("Ada") == "ADA"'),)), SERVICES)
    assert not isinstance(made, KindRejection)
    (task,) = made
    assert isinstance(task, Task)
    assert task.name == "ada__greet-1.feature"
    assert task.problem_statement.startswith(records.make_candidate(records.make_pull_request()).problem_statement)
    assert "- `greet/loud.py`: `def shout(name: str) -> str`" in task.problem_statement
    assert task.FAIL_TO_PASS == ABSENT


def test_a_name_without_a_signature_is_no_obstacle_where_a_completion_states_it() -> None:
    completion = Completion(model="", prompt="", addition="- The attribute `loudness`.", made_by="rules")
    it = lineage(findings=(unstated("assert thing.loudness"),), completion=completion)
    made = derive_feature(it, SERVICES)
    assert not isinstance(made, KindRejection)
    assert made[0].problem_statement.endswith("\n\n- The attribute `loudness`.")


def test_a_statement_without_new_interfaces_is_unchanged() -> None:
    assert append_interfaces("As it was.\n", ()) == "As it was.\n"


@pytest.mark.parametrize(
    ("it", "reason"),
    [
        (lineage((("t.py::test_a", FailureKind.ASSERTION), *ABSENT)), "behavioural-failure"),
        (lineage(()), "nothing-fails"),
        (lineage(set_aside="message-not-stated"), "message-not-stated"),
        (lineage(findings=(unstated("assert whisper(1)"),), interfaces=(SHOUT,)), "interface-not-named"),
    ],
)
def test_changes_that_are_no_feature_are_rejected(it: Lineage, reason: str) -> None:
    made = derive_feature(it, SERVICES)
    assert isinstance(made, KindRejection)
    assert made.reason == reason

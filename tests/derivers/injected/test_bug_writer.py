"""Bugs and statements that a model writes, over real HTTP: which are used and which are rejected."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import pytest

from backends.clones import CloneStore
from backends.llm.client import ChatModel
from backends.sandbox.docker import DockerSandbox
from backends.services import Services
from core.config import Settings
from derivers.injected.bug_writer import BugWriter
from derivers.injected.failure_statement import FailingTest
from taskdb.artifacts import Artifacts
from tests.backends.llm.server import ModelServer, ScriptedAnswer

SOURCE = b"def total(prices):\n    result = 0\n    for price in prices:\n        result += price\n    return result\n"
GOLD = b"--- a/cart.py\n+++ b/cart.py\n@@ -4 +4 @@\n-        result -= price\n+        result += price\n"
FAILURE = FailingTest(
    test="t.py::test_sum", title="Sum", message="assert -6 == 6", excerpt="assert total([1, 2, 3]) == 6"
)
TEXT = "Adding up three prices of 1, 2 and 3 with `total` gives -6, where 6 is expected. " * 3


@pytest.fixture
def bug_writer(client: Callable[..., ChatModel], tmp_path: Path) -> BugWriter:
    model = client(store=tmp_path / "store")
    services = Services(
        settings=Settings.model_validate({"store": tmp_path / "store"}),
        sandbox=DockerSandbox(),
        clones=CloneStore(tmp_path / "clones"),
        artifacts=Artifacts(tmp_path / "artifacts"),
        model=model,
    )
    writer = BugWriter.create(services)
    assert writer is not None
    return writer


def bug(search: str, replace: str) -> dict[str, str]:
    return {"search": search, "replace": replace, "behaviour": "Prices are not added."}


def test_a_models_bug_must_occur_once_and_leave_a_valid_program(server: ModelServer, bug_writer: BugWriter) -> None:
    bugs = [
        bug("        result += price\n", "        result -= price\n"),
        bug("result", "other"),  # occurs several times
        bug("    return nothing\n", "    return result\n"),  # does not occur
        bug("    return result\n", "    return (result\n"),  # a syntax error
        bug("    return result\n", "    return  result\n"),  # only white space
    ]
    server.set_answers(ScriptedAnswer(text=json.dumps({"bugs": bugs})))
    (change,) = bug_writer.write_bugs("cart.py", SOURCE, {4})
    assert (change.operator, change.line, change.detail) == ("model-written", 4, "Prices are not added.")
    assert change.after == SOURCE.replace(b"+=", b"-=")
    assert "def total(prices)" in server.requests[0]["messages"][1]["content"]


def test_a_model_writes_bugs_for_a_function(server: ModelServer, bug_writer: BugWriter) -> None:
    server.set_answers(ScriptedAnswer(text=json.dumps({"bugs": []})))
    bug_writer.write_bugs("cart.py", SOURCE, {1, 2, 3}, function="Cart.total")
    assert "all of them in `Cart.total`" in server.requests[0]["messages"][1]["content"]


def test_the_budget_grows_with_the_tasks(bug_writer: BugWriter) -> None:
    larger = BugWriter.create(bug_writer.services, 3)
    assert larger is not None
    assert larger.meter.budget.tokens == 3 * (bug_writer.meter.budget.tokens or 0)
    assert larger.deadline > bug_writer.deadline + bug_writer.services.settings.budget.seconds


def test_an_unusable_answer_gives_no_bugs(server: ModelServer, bug_writer: BugWriter) -> None:
    server.set_answers(ScriptedAnswer(text="There are none."))
    assert bug_writer.write_bugs("cart.py", SOURCE, {4}) == []


def test_a_models_statement_is_used_when_it_does_not_leak_the_patch(server: ModelServer, bug_writer: BugWriter) -> None:
    server.set_answers(ScriptedAnswer(text=json.dumps({"title": "Sums are negative", "text": TEXT})))
    assert (
        bug_writer.write_statement("ada/cart", [FAILURE], bugs=1, gold=GOLD) == f"Sums are negative\n\n{TEXT.strip()}\n"
    )
    prompt = server.requests[0]["messages"][1]["content"]
    assert "assert -6 == 6" in prompt
    assert "result -= price" not in prompt


@pytest.mark.parametrize(
    "text",
    [
        TEXT + "Write `result += price` instead.",
        TEXT + "It must be `result -= price`.",
        "Short.",
        TEXT + "arguments-swapped",
    ],
)
def test_a_statement_that_leaks_or_is_too_short_is_rejected(
    text: str, server: ModelServer, bug_writer: BugWriter
) -> None:
    server.set_answers(ScriptedAnswer(text=json.dumps({"title": "Sums", "text": text})))
    assert bug_writer.write_statement("ada/cart", [FAILURE], bugs=1, gold=GOLD) is None
    assert len(server.requests) == 2

"""Bugs and statements that a model writes, over real HTTP: what is taken of them, and what is not."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import pytest

from backends.clones import Clones
from backends.llm.client import ChatModel
from backends.sandbox.docker import DockerSandbox
from backends.services import Services
from derivers.injected.asking import Asking
from derivers.injected.telling import Failure
from mergemill.config import Settings
from taskdb.artifacts import Artifacts
from tests.llm.server import ModelServer, Says

SOURCE = b"def total(prices):\n    result = 0\n    for price in prices:\n        result += price\n    return result\n"
GOLD = b"--- a/cart.py\n+++ b/cart.py\n@@ -4 +4 @@\n-        result -= price\n+        result += price\n"
FAILURE = Failure(test="t.py::test_sum", words="Sum", message="assert -6 == 6", excerpt="assert total([1, 2, 3]) == 6")
TEXT = "Adding up three prices of 1, 2 and 3 with `total` gives -6, where 6 is expected. " * 3


@pytest.fixture
def asking(client: Callable[..., ChatModel], tmp_path: Path) -> Asking:
    model = client(store=tmp_path / "store")
    services = Services(
        settings=Settings.model_validate({"store": tmp_path / "store"}), sandbox=DockerSandbox(),
        clones=Clones(tmp_path / "clones"), artifacts=Artifacts(tmp_path / "artifacts"), model=model,
    )  # fmt: skip
    begun = Asking.begin(services)
    assert begun is not None
    return begun


def bug(search: str, replace: str) -> dict[str, str]:
    return {"search": search, "replace": replace, "behaviour": "Prices are not added."}


def test_a_models_bugs_are_replacements_that_stand_in_the_file_once_and_leave_a_program(
    server: ModelServer, asking: Asking
) -> None:
    bugs = [
        bug("        result += price\n", "        result -= price\n"),
        bug("result", "other"),  # several times in the file
        bug("    return nothing\n", "    return result\n"),  # not in it
        bug("    return result\n", "    return (result\n"),  # no program
        bug("    return result\n", "    return  result\n"),  # nothing but white space
    ]
    server.says(Says(text=json.dumps({"bugs": bugs})))
    (change,) = asking.bugs("cart.py", SOURCE, {4})
    assert (change.operator, change.line, change.detail) == ("written", 4, "Prices are not added.")
    assert change.after == SOURCE.replace(b"+=", b"-=")
    assert "def total(prices)" in server.asked[0]["messages"][1]["content"]


def test_an_answer_that_cannot_be_used_gives_no_bugs(server: ModelServer, asking: Asking) -> None:
    server.says(Says(text="There are none."))
    assert asking.bugs("cart.py", SOURCE, {4}) == []


def test_a_models_statement_is_taken_when_it_tells_nothing_of_the_patch(server: ModelServer, asking: Asking) -> None:
    server.says(Says(text=json.dumps({"title": "Sums are negative", "text": TEXT})))
    assert asking.statement("ada/cart", [FAILURE], bugs=1, gold=GOLD) == f"Sums are negative\n\n{TEXT.strip()}\n"
    prompt = server.asked[0]["messages"][1]["content"]
    assert "assert -6 == 6" in prompt
    assert "result -= price" not in prompt


@pytest.mark.parametrize(
    "text",
    [
        TEXT + "Write `result += price` instead.", TEXT + "It must be `result -= price`.", "Short.",
        TEXT + "arguments-swapped",
    ],
)  # fmt: skip
def test_a_statement_that_tells_the_patch_or_a_rule_or_nothing_is_refused(
    text: str, server: ModelServer, asking: Asking
) -> None:
    server.says(Says(text=json.dumps({"title": "Sums", "text": text})))
    assert asking.statement("ada/cart", [FAILURE], bugs=1, gold=GOLD) is None
    assert len(server.asked) == 2

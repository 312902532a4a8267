"""Scores of reviews: defects found, wrong findings, controls, and a model that compares claims."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from backends.clones import CloneStore
from backends.llm.client import ChatModel
from backends.services import Services
from core.config import Settings
from core.errors import Transient
from guest.scoring.findings import MAX_FINDINGS
from taskdb.artifacts import Artifacts
from taskdb.records import Kind, Score, Task
from taskdb.records.oracles import Defect, ReviewOracle
from tests import records
from tests.backends.llm.conftest import client, server
from tests.backends.llm.server import ModelServer, ScriptedAnswer, ScriptedFailure
from verifiers.rewards.review import grade, make_gold_review

__all__ = ["client", "server"]

TEXT = "".join(f"def line_{n}():  # of the shop\n" for n in range(1, 101))
FIX = """\
diff --git a/shop.py b/shop.py
--- a/shop.py
+++ b/shop.py
@@ -40 +40 @@
-def line_40():  # of the shop
+def line_41():  # of the shop
"""
CLAIM = "The last item is not counted"
NOTHING = b'{"findings": []}'


@pytest.fixture
def services(tmp_path: Path) -> Services:
    nothing: Any = SimpleNamespace()
    return Services(
        settings=Settings(store=tmp_path / "store"),
        sandbox=nothing,
        clones=CloneStore(tmp_path / "store" / "clones"),
        artifacts=Artifacts(tmp_path / "store" / "artifacts"),
    )


def make_defect(first: int, last: int, claim: str = CLAIM, path: str = "shop.py") -> Defect:
    return Defect(path=path, first_line=first, last_line=last, claim=claim)


def make_review_task(services: Services, *defects: Defect, text: str = TEXT) -> Task:
    files = services.artifacts.put_text(json.dumps({"shop.py": text, "cart.py": TEXT}))
    oracle = ReviewOracle(target="before-fix" if defects else "clean", files=files, diff=None, defects=defects)
    candidate = records.make_candidate(records.make_pull_request(), gold_patch=services.artifacts.put_text(FIX))
    made = records.make_task(records.make_verification(records.make_environment(candidate)), candidate)
    return made.model_copy(
        update={
            "kind": Kind.REVIEW,
            "oracle": oracle,
            "plan": None,
            "eval_script": None,
            "environment": "none",
        }
    )


def make_finding(first: int, last: int, claim: str = "It is off by one", file: str = "shop.py") -> dict[str, Any]:
    return {"file": file, "first_line": first, "last_line": last, "claim": claim}


def make_review(*findings: dict[str, Any]) -> bytes:
    return json.dumps({"findings": findings}).encode()


def grade_review(task: Task, services: Services, *findings: dict[str, Any]) -> float:
    value = grade(task, services, make_review(*findings)).value
    assert value is not None
    return value


# ----------------------------------------------------------------------------------------------- gold and no review


@pytest.mark.parametrize(
    "defects",
    [
        (make_defect(40, 42),),
        (make_defect(40, 42), make_defect(44, 44), make_defect(41, 41, path="cart.py")),
        (make_defect(1, 100),),
        (make_defect(3, 3, "One"), make_defect(4, 4, "Two"), make_defect(5, 5, "Three")),
        (),
    ],
)
def test_gold_earns_1_and_a_missing_review_0(services: Services, defects: tuple[Defect, ...]) -> None:
    task = make_review_task(services, *defects)
    score = grade(task, services, make_gold_review(task, services))
    assert (score.value, score.resolved) == (1.0, True)
    nothing = grade(task, services, b"")
    assert (nothing.value, nothing.resolved) == (0.0, False)
    assert "the review is missing" in nothing.explanation
    assert grade(task, services, NOTHING).value == (0.0 if defects else 1.0)


@pytest.mark.parametrize(
    ("submission", "why"),
    [
        (b"The code is fine.", "not valid JSON"),
        (b'{"findings": [', "not valid JSON"),
        (b"\xff\xfe{", "not valid JSON"),
        (b"[" * 100_000, "not valid JSON"),
        (b"{}", "findings: Field required"),
        (b"[]", "another schema"),
        (b'{"findings": [{"file": "shop.py", "first_line": 1}]}', "findings.0.last_line"),
        (b'{"findings": [{"file": 1, "first_line": "a", "last_line": 2, "claim": "x"}]}', "findings.0.file"),
        (make_review(*[make_finding(n, n) for n in range(MAX_FINDINGS + 1)]), "findings, at most 1000 are allowed"),
        (b" " * 2 + b"x" * 1_000_001, "bytes"),
    ],
)
def test_an_invalid_review_earns_0_with_the_reason(services: Services, submission: bytes, why: str) -> None:
    for task in (make_review_task(services, make_defect(40, 42)), make_review_task(services)):
        score = grade(task, services, submission)
        assert (score.value, score.infrastructure_error) == (0.0, None)
        assert why in score.explanation


def test_a_task_that_is_no_review_is_not_graded_as_one(services: Services) -> None:
    task = make_review_task(services, make_defect(40, 42)).model_copy(update={"oracle": None})
    with pytest.raises(LookupError):
        grade(task, services, NOTHING)


# --------------------------------------------------------------------------------------------------- matching by lines


@pytest.mark.parametrize(
    ("finding", "value"),
    [
        (make_finding(41, 41), 1.0),
        (make_finding(38, 38), 1.0),
        (make_finding(44, 45), 1.0),
        (make_finding(36, 45), 1.0),
        (make_finding(37, 37), 0.0),
        (make_finding(45, 45), 0.0),
        (make_finding(34, 45), 0.0),  # too wide
        (make_finding(1, 100), 0.0),
        (make_finding(41, 41, file="./shop.py"), 1.0),
        (make_finding(41, 41, file="cart.py"), 0.0),
        (make_finding(41, 41, file="../shop.py"), 0.0),
        (make_finding(42, 41), 0.0),
        (make_finding(-3, 41), 0.0),
        (make_finding(41, 41, claim=" "), 0.0),
    ],
)
def test_a_finding_counts_at_the_lines_of_the_defect_or_close_by(
    services: Services, finding: dict[str, Any], value: float
) -> None:
    assert grade_review(make_review_task(services, make_defect(40, 42)), services, finding) == value


def test_a_finding_of_the_whole_file_is_none_however_short_the_file(services: Services) -> None:
    task = make_review_task(services, make_defect(2, 2), text="x = 1\ny = 2\nz = 3\n")
    assert grade_review(task, services, make_finding(1, 3)) == 0.0
    assert grade_review(task, services, make_finding(2, 3)) == 1.0
    review_task = make_review_task(services, make_defect(1, 1), text="x = 1\n")
    assert grade_review(review_task, services, make_finding(1, 1)) == 1.0
    assert grade_review(review_task, services, make_finding(1, 2)) == 0.0  # the file has no second line


@pytest.mark.parametrize(("lines", "near"), [(3, 0), (19, 0), (20, 1), (39, 1), (40, 2), (500, 2)])
def test_in_short_files_nothing_is_close_by(services: Services, lines: int, near: int) -> None:
    task = make_review_task(services, make_defect(3, 3), text="x = 1\n" * lines)
    scores = [grade_review(task, services, make_finding(3 - beside, 3 - beside)) for beside in (0, 1, 2)]
    assert scores == [1.0, float(near >= 1), float(near >= 2)]


def test_one_place_of_a_defect_is_enough_and_the_others_are_not_wrong(services: Services) -> None:
    task = make_review_task(services, make_defect(10, 12), make_defect(50, 50), make_defect(20, 20, path="cart.py"))
    assert grade_review(task, services, make_finding(50, 50)) == 1.0
    assert grade_review(task, services, make_finding(50, 50), make_finding(20, 20, file="cart.py")) == 1.0
    assert grade_review(task, services, make_finding(50, 50), make_finding(51, 51)) == 0.25  # a location counts once


def test_each_of_two_defects_counts(services: Services) -> None:
    task = make_review_task(services, make_defect(10, 10, "One"), make_defect(50, 50, "Two"))
    score = grade(task, services, make_review(make_finding(10, 10)))
    assert (score.value, score.parts["recall"], score.parts["precision"]) == (0.5, 0.5, 1.0)
    assert score.explanation == "1 of 2 defects found, 0 of 1 findings wrong"
    assert grade_review(task, services, make_finding(10, 10), make_finding(50, 50)) == 1.0


def test_a_finding_between_two_defects_is_matched_with_the_one_without_another(services: Services) -> None:
    task = make_review_task(services, make_defect(10, 10, "One"), make_defect(13, 13, "Two"))
    assert grade_review(task, services, make_finding(11, 12), make_finding(9, 9)) == 1.0
    assert grade_review(task, services, make_finding(9, 9), make_finding(11, 12)) == 1.0


def test_wrong_findings_cost_more_than_they_gain(services: Services) -> None:
    task = make_review_task(services, make_defect(40, 42))
    score = grade(
        task, services, make_review(make_finding(41, 41), make_finding(80, 80), make_finding(1, 1, file="gone.py"))
    )
    assert score.parts == {
        "recall": 1.0,
        "precision": pytest.approx(1 / 3),
        "hallucination_rate": pytest.approx(2 / 3),
        "matched": 1,
        "findings": 3,
        "defects": 1,
    }
    assert score.value == pytest.approx(1 / 9)
    assert not score.resolved


@pytest.mark.parametrize("step", [1, 2, 5, 10], ids=lambda step: f"every {step} lines")
def test_naming_everything_earns_almost_nothing(services: Services, step: int) -> None:
    findings = [
        make_finding(n, n + step - 1, file=file) for file in ("shop.py", "cart.py") for n in range(1, 101, step)
    ]
    assert grade_review(make_review_task(services, make_defect(40, 42)), services, *findings) < 0.01
    assert grade_review(make_review_task(services), services, *findings) < 0.01


def test_each_repetition_of_a_finding_lowers_the_score(services: Services) -> None:
    task = make_review_task(services, make_defect(40, 42))
    values = [grade_review(task, services, *[make_finding(41, 41, f"Claim {n}") for n in range(k)]) for k in (1, 2, 10)]
    assert values == [1.0, 0.25, pytest.approx(0.01)]


def test_each_finding_on_a_control_lowers_the_score(services: Services) -> None:
    task = make_review_task(services)
    assert [grade_review(task, services, *[make_finding(n, n) for n in range(k)]) for k in (0, 1, 3)] == [
        1.0,
        0.25,
        0.0625,
    ]


# ------------------------------------------------------------------------------------------------- matching by meaning


@pytest.fixture
def model_review(services: Services, client: Callable[..., ChatModel], server: ModelServer) -> Services:
    given: dict[str, Any] = {"store": services.settings.storage.store, "llm": server.url, "model": "scripted"}
    return replace(services, model=client(**given), settings=Settings.model_validate(given))


def make_same_defect_answer(same: str, **changes: str) -> str:
    good = {"why": "Both are about it.", "words": "off by one", "code": "def line_40():  # of the shop", "same": same}
    return json.dumps(good | changes)


def grade_with_model(model_review: Services, *findings: dict[str, Any]) -> Score:
    return grade(make_review_task(model_review, make_defect(40, 42)), model_review, make_review(*findings))


def test_a_model_decides_whether_a_finding_at_the_right_lines_describes_the_defect(
    model_review: Services, server: ModelServer
) -> None:
    server.set_answers(ScriptedAnswer(text=make_same_defect_answer("yes")))
    score = grade_with_model(model_review, make_finding(41, 41))
    assert (score.value, score.parts["judged"], score.parts["void"]) == (1.0, 1, 0)
    prompt = "\n".join(message["content"] for message in server.requests[0]["messages"])
    for text in (CLAIM, "It is off by one", "def line_41():  # of the shop", "lines 40-42", "lines 41-41"):
        assert text in prompt
    server.set_answers(ScriptedAnswer(text=make_same_defect_answer("no", words="", code="")))
    assert grade_with_model(model_review, make_finding(41, 41, "The name is ugly")).value == 0.0


def test_the_same_review_is_sent_to_the_model_once(model_review: Services, server: ModelServer) -> None:
    server.set_answers(ScriptedAnswer(text=make_same_defect_answer("yes")))
    assert grade_with_model(model_review, make_finding(41, 41)) == grade_with_model(model_review, make_finding(41, 41))
    assert len(server.requests) == 1


@pytest.mark.parametrize(
    "changes",
    [
        {"code": "def line_400():  # of the shop"},
        {"words": "counts one too few"},
        {"words": ""},
        {"code": " "},
    ],
    ids=["code that is not there", "words that nobody said", "no words", "no code"],
)
def test_without_valid_quotes_the_lines_alone_decide(
    model_review: Services, server: ModelServer, changes: dict[str, str]
) -> None:
    server.set_answers(ScriptedAnswer(text=make_same_defect_answer("yes", **changes)))
    score = grade_with_model(model_review, make_finding(41, 41))
    assert (score.value, score.parts["judged"], score.parts["void"]) == (1.0, 0, 1)
    assert len(server.requests) == 2  # the invalid quote was reported once
    server.set_answers(ScriptedAnswer(text=make_same_defect_answer("no", code="def line_400():")))
    assert grade_with_model(model_review, make_finding(42, 42)).parts["void"] == 1


def test_no_request_is_sent_for_gold_or_findings_at_other_lines(model_review: Services, server: ModelServer) -> None:
    server.set_answers(ScriptedFailure(status=500))
    task = make_review_task(model_review, make_defect(40, 42))
    assert grade(task, model_review, make_gold_review(task, model_review)).value == 1.0
    assert grade(task, model_review, make_review(make_finding(80, 80))).value == 0.0
    assert grade(make_review_task(model_review), model_review, NOTHING).value == 1.0
    assert server.requests == []


def test_a_failing_endpoint_gives_no_score(model_review: Services, server: ModelServer) -> None:
    server.set_answers(ScriptedFailure(status=500))
    with pytest.raises(Transient):
        grade_with_model(model_review, make_finding(41, 41))

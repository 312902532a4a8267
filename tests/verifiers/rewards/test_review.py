"""What reviews are worth: found defects, wrong findings, controls, and a model's word on what was meant."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from backends.clones import Clones
from backends.llm.client import ChatModel
from backends.services import Services
from mergemill.config import Settings
from mergemill.errors import Transient
from taskdb.artifacts import Artifacts
from taskdb.oracles import Defect, Review
from taskdb.records import Kind, Score, Task
from tests import records
from tests.llm.conftest import client, server
from tests.llm.server import Fails, ModelServer, Says
from verifiers.rewards.findings import MOST
from verifiers.rewards.review import gold, grade

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
        settings=Settings(store=tmp_path / "store"), sandbox=nothing, clones=Clones(tmp_path / "store" / "clones"),
        artifacts=Artifacts(tmp_path / "store" / "artifacts"),
    )  # fmt: skip


def defect(first: int, last: int, claim: str = CLAIM, path: str = "shop.py") -> Defect:
    return Defect(path=path, first_line=first, last_line=last, claim=claim)


def task_with(services: Services, *defects: Defect, text: str = TEXT) -> Task:
    files = services.artifacts.put_text(json.dumps({"shop.py": text, "cart.py": TEXT}))
    oracle = Review(target="before-fix" if defects else "clean", files=files, diff=None, defects=defects)
    candidate = records.candidate(records.pull_request(), gold_patch=services.artifacts.put_text(FIX))
    made = records.task(records.verification(records.environment(candidate)), candidate)
    return made.model_copy(update={
        "kind": Kind.REVIEW, "oracle": oracle, "plan": None, "eval_script": None, "environment": "none",
    })  # fmt: skip


def finding(first: int, last: int, claim: str = "It is off by one", file: str = "shop.py") -> dict[str, Any]:
    return {"file": file, "first_line": first, "last_line": last, "claim": claim}


def said(*findings: dict[str, Any]) -> bytes:
    return json.dumps({"findings": findings}).encode()


def worth(task: Task, services: Services, *findings: dict[str, Any]) -> float:
    value = grade(task, services, said(*findings)).value
    assert value is not None
    return value


# ----------------------------------------------------------------------------------------------- gold and no review


@pytest.mark.parametrize(
    "defects",
    [
        (defect(40, 42),),
        (defect(40, 42), defect(44, 44), defect(41, 41, path="cart.py")),
        (defect(1, 100),),
        (defect(3, 3, "One"), defect(4, 4, "Two"), defect(5, 5, "Three")),
        (),
    ],
)
def test_gold_is_worth_1_and_no_review_0(services: Services, defects: tuple[Defect, ...]) -> None:
    task = task_with(services, *defects)
    score = grade(task, services, gold(task, services))
    assert (score.value, score.resolved) == (1.0, True)
    nothing = grade(task, services, b"")
    assert (nothing.value, nothing.resolved) == (0.0, False)
    assert "there is no review" in nothing.explanation
    assert grade(task, services, NOTHING).value == (0.0 if defects else 1.0)


@pytest.mark.parametrize(
    ("submission", "why"),
    [
        (b"The code is fine.", "no JSON"),
        (b'{"findings": [', "no JSON"),
        (b"\xff\xfe{", "no JSON"),
        (b"[" * 100_000, "no JSON"),
        (b"{}", "findings: Field required"),
        (b"[]", "another form"),
        (b'{"findings": [{"file": "shop.py", "first_line": 1}]}', "findings.0.last_line"),
        (b'{"findings": [{"file": 1, "first_line": "a", "last_line": 2, "claim": "x"}]}', "findings.0.file"),
        (said(*[finding(n, n) for n in range(MOST + 1)]), "findings, 1000 are read"),
        (b" " * 2 + b"x" * 1_000_001, "bytes"),
    ],
)
def test_what_is_no_review_is_worth_0_and_told_why(services: Services, submission: bytes, why: str) -> None:
    for task in (task_with(services, defect(40, 42)), task_with(services)):
        score = grade(task, services, submission)
        assert (score.value, score.infrastructure_error) == (0.0, None)
        assert why in score.explanation


def test_a_task_that_is_no_review_is_not_graded_as_one(services: Services) -> None:
    task = task_with(services, defect(40, 42)).model_copy(update={"oracle": None})
    with pytest.raises(LookupError):
        grade(task, services, NOTHING)


# --------------------------------------------------------------------------------------------------- matching by lines


@pytest.mark.parametrize(
    ("found", "value"),
    [
        (finding(41, 41), 1.0),
        (finding(38, 38), 1.0),
        (finding(44, 45), 1.0),
        (finding(36, 45), 1.0),
        (finding(37, 37), 0.0),
        (finding(45, 45), 0.0),
        (finding(34, 45), 0.0),  # too wide
        (finding(1, 100), 0.0),
        (finding(41, 41, file="./shop.py"), 1.0),
        (finding(41, 41, file="cart.py"), 0.0),
        (finding(41, 41, file="../shop.py"), 0.0),
        (finding(42, 41), 0.0),
        (finding(-3, 41), 0.0),
        (finding(41, 41, claim=" "), 0.0),
    ],
)
def test_a_finding_counts_at_the_lines_of_the_defect_or_close_by(
    services: Services, found: dict[str, Any], value: float
) -> None:
    assert worth(task_with(services, defect(40, 42)), services, found) == value


def test_a_finding_of_the_whole_file_is_none_however_short_the_file(services: Services) -> None:
    task = task_with(services, defect(2, 2), text="x = 1\ny = 2\nz = 3\n")
    assert worth(task, services, finding(1, 3)) == 0.0
    assert worth(task, services, finding(2, 3)) == 1.0
    one = task_with(services, defect(1, 1), text="x = 1\n")
    assert worth(one, services, finding(1, 1)) == 1.0
    assert worth(one, services, finding(1, 2)) == 0.0  # there is no second line


@pytest.mark.parametrize(("lines", "near"), [(3, 0), (19, 0), (20, 1), (39, 1), (40, 2), (500, 2)])
def test_in_short_files_nothing_is_close_by(services: Services, lines: int, near: int) -> None:
    task = task_with(services, defect(3, 3), text="x = 1\n" * lines)
    found = [worth(task, services, finding(3 - beside, 3 - beside)) for beside in (0, 1, 2)]
    assert found == [1.0, float(near >= 1), float(near >= 2)]


def test_one_place_of_a_defect_is_enough_and_the_others_are_not_wrong(services: Services) -> None:
    task = task_with(services, defect(10, 12), defect(50, 50), defect(20, 20, path="cart.py"))
    assert worth(task, services, finding(50, 50)) == 1.0
    assert worth(task, services, finding(50, 50), finding(20, 20, file="cart.py")) == 1.0
    assert worth(task, services, finding(50, 50), finding(51, 51)) == 0.25  # a place counts once


def test_of_two_defects_each_counts_alone(services: Services) -> None:
    task = task_with(services, defect(10, 10, "One"), defect(50, 50, "Two"))
    score = grade(task, services, said(finding(10, 10)))
    assert (score.value, score.parts["recall"], score.parts["precision"]) == (0.5, 0.5, 1.0)
    assert score.explanation == "1 of 2 defects found, 0 of 1 findings wrong"
    assert worth(task, services, finding(10, 10), finding(50, 50)) == 1.0


def test_a_finding_between_two_defects_is_given_to_the_one_that_has_no_other(services: Services) -> None:
    task = task_with(services, defect(10, 10, "One"), defect(13, 13, "Two"))
    assert worth(task, services, finding(11, 12), finding(9, 9)) == 1.0
    assert worth(task, services, finding(9, 9), finding(11, 12)) == 1.0


def test_wrong_findings_cost_more_than_they_gain(services: Services) -> None:
    task = task_with(services, defect(40, 42))
    score = grade(task, services, said(finding(41, 41), finding(80, 80), finding(1, 1, file="gone.py")))
    assert score.parts == {
        "recall": 1.0, "precision": pytest.approx(1 / 3), "hallucination_rate": pytest.approx(2 / 3), "matched": 1,
        "findings": 3, "defects": 1,
    }  # fmt: skip
    assert score.value == pytest.approx(1 / 9)
    assert not score.resolved


@pytest.mark.parametrize("step", [1, 2, 5, 10], ids=lambda step: f"every {step} lines")
def test_to_name_everything_is_worth_next_to_nothing(services: Services, step: int) -> None:
    findings = [finding(n, n + step - 1, file=file) for file in ("shop.py", "cart.py") for n in range(1, 101, step)]
    assert worth(task_with(services, defect(40, 42)), services, *findings) < 0.01
    assert worth(task_with(services), services, *findings) < 0.01


def test_the_same_finding_many_times_is_worth_less_each_time(services: Services) -> None:
    task = task_with(services, defect(40, 42))
    values = [worth(task, services, *[finding(41, 41, f"Claim {n}") for n in range(k)]) for k in (1, 2, 10)]
    assert values == [1.0, 0.25, pytest.approx(0.01)]


def test_of_a_control_each_finding_takes_something_away(services: Services) -> None:
    task = task_with(services)
    assert [worth(task, services, *[finding(n, n) for n in range(k)]) for k in (0, 1, 3)] == [1.0, 0.25, 0.0625]


# ------------------------------------------------------------------------------------------------- matching by meaning


@pytest.fixture
def judged(services: Services, client: Callable[..., ChatModel], server: ModelServer) -> Services:
    given: dict[str, Any] = {"store": services.settings.store, "llm": server.url, "model": "scripted"}
    return replace(services, model=client(**given), settings=Settings.model_validate(given))


def answer(same: str, **changes: str) -> str:
    good = {"why": "Both are about it.", "words": "off by one", "code": "def line_40():  # of the shop", "same": same}
    return json.dumps(good | changes)


def graded(judged: Services, *findings: dict[str, Any]) -> Score:
    return grade(task_with(judged, defect(40, 42)), judged, said(*findings))


def test_a_model_says_whether_a_finding_at_the_right_place_means_the_defect(
    judged: Services, server: ModelServer
) -> None:
    server.says(Says(text=answer("yes")))
    score = graded(judged, finding(41, 41))
    assert (score.value, score.parts["judged"], score.parts["void"]) == (1.0, 1, 0)
    prompt = "\n".join(message["content"] for message in server.asked[0]["messages"])
    for text in (CLAIM, "It is off by one", "def line_41():  # of the shop", "lines 40-42", "lines 41-41"):
        assert text in prompt
    server.says(Says(text=answer("no", words="", code="")))
    assert graded(judged, finding(41, 41, "The name is ugly")).value == 0.0


def test_the_same_review_is_asked_about_once(judged: Services, server: ModelServer) -> None:
    server.says(Says(text=answer("yes")))
    assert graded(judged, finding(41, 41)) == graded(judged, finding(41, 41))
    assert len(server.asked) == 1


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
def test_a_verdict_without_true_quotes_is_void_and_the_lines_alone_decide(
    judged: Services, server: ModelServer, changes: dict[str, str]
) -> None:
    server.says(Says(text=answer("yes", **changes)))
    score = graded(judged, finding(41, 41))
    assert (score.value, score.parts["judged"], score.parts["void"]) == (1.0, 0, 1)
    assert len(server.asked) == 2  # the fault was told back once
    server.says(Says(text=answer("no", code="def line_400():")))
    assert graded(judged, finding(42, 42)).parts["void"] == 1


def test_nobody_is_asked_about_gold_nor_about_what_stands_elsewhere(judged: Services, server: ModelServer) -> None:
    server.says(Fails(status=500))
    task = task_with(judged, defect(40, 42))
    assert grade(task, judged, gold(task, judged)).value == 1.0
    assert grade(task, judged, said(finding(80, 80))).value == 0.0
    assert grade(task_with(judged), judged, NOTHING).value == 1.0
    assert server.asked == []


def test_an_endpoint_that_fails_makes_no_score(judged: Services, server: ModelServer) -> None:
    server.says(Fails(status=500))
    with pytest.raises(Transient):
        graded(judged, finding(41, 41))

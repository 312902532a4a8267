"""Rewards of published checklists: items are decided by a program or by votes, and void ones have both bounds."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from evaluation.instructions.submission import write_submission
from tests.backends.llm.conftest import server
from tests.backends.llm.server import ModelServer, ScriptedAnswer
from tests.evaluation.instructions.conversations import Call, bash, make_answers
from tests.mergemill.bench.making import find_row
from tests.mergemill.bench.octo import ROW, TABLE, import_rows, run

__all__ = ["server"]

BINDINGS = TABLE.rpartition("[[bind]]")[0]
PATCH = b"--- a/greet.py\n+++ b/greet.py\n@@ -1 +1,2 @@\n x = 1\n+y = 2\n"
EDIT = bash("sed -i s/a/b/ greet.py")
DONE = "I greet twice now."
GOOD: list[str | list[str | Call]] = [[bash("cat greet.py")], [EDIT], DONE]


def vote(followed: str, quote: str = DONE, exchange: int = 2) -> ScriptedAnswer:
    fields = {"why": "It is there.", "exchange": exchange, "quote": quote, "followed": followed}
    return ScriptedAnswer(text=json.dumps(fields))


def score(folder: Path, answers: list[str | list[str | Call]], *words: str) -> dict[str, Any]:
    """Score a submission to the set of ROW, whose two items are bound; return the report."""
    if not (folder / "m.db").exists():
        assert import_rows(folder, [ROW], table=BINDINGS).exit_code == 0
    submission = json.loads(write_submission(PATCH, make_answers(*answers)))
    (folder / "p.jsonl").write_text(json.dumps({"instance_id": "md-greet-1", "rollout": submission}))
    given = ("--predictions", "p.jsonl", "--metric", "instructions,parts,value", "--format", "json", *words)
    done = run(folder, "bench", "score", "rows", *given)
    assert done.exit_code == 0, done.stderr
    report: dict[str, Any] = done.json
    return report


def get_figures(report: dict[str, Any]) -> dict[str, tuple[float | None, list[float] | None]]:
    return {row["column"]: (row["mean"], row["bounds"]) for row in report["figures"] if "mean" in row}


def list_verdicts(report: dict[str, Any]) -> dict[str, int]:
    verdicts: dict[str, int] = report["runs"][0]["metrics"]["instructions"]["verdicts"]
    return verdicts


def test_without_a_model_judged_items_are_void_with_both_bounds(tmp_path: Path) -> None:
    report = score(tmp_path, GOOD)
    assert list_verdicts(report) == {"passed": 2, "void": 3}
    figures = get_figures(report)
    assert figures["isr"] == (None, [0.0, 1.0])
    assert figures["csr"] == (None, [0.4, 1.0])
    parts = {name: figures[f"parts.{name}"][0] for name in ("csr", "csr_low", "csr_high", "isr_low", "isr_high")}
    assert parts == {"csr": 1.0, "csr_low": 0.4, "csr_high": 1.0, "isr_low": 0.0, "isr_high": 1.0}
    assert figures["value"][0] == 0.0


@pytest.mark.parametrize(
    ("answers", "failed"),
    [
        ([[EDIT], DONE], "SP_read"),
        ([*GOOD[:2], [bash("git push")], DONE], "A_push"),
        (
            [[bash("cat greet.py")], [EDIT], [bash("cat a; git -C . push")], DONE],
            "A_push",
        ),
    ],
)
def test_bound_items_are_decided_by_the_actions_of_the_rollout(
    tmp_path: Path, answers: list[str | list[str | Call]], failed: str
) -> None:
    report = score(tmp_path, answers)
    assert list_verdicts(report) == {"failed": 1, "passed": 1, "void": 3}
    assert get_figures(report)["isr"] == (0.0, None)
    assert get_figures(report)["csr"] == (None, [0.2, 0.8])
    done = run(tmp_path, "grade", "md-greet-1", "--rollout", write(tmp_path, answers), "--json")
    assert done.json["explanation"].startswith(f"not followed: {failed} (")
    assert [name for name, state in done.json["verdicts"].items() if state == "failed"] == [failed]


def write(folder: Path, answers: list[str | list[str | Call]]) -> str:
    (folder / "rollout.json").write_bytes(write_submission(PATCH, make_answers(*answers)))
    return "rollout.json"


def test_quoted_votes_decide_the_others_also_after_they_were_void(tmp_path: Path, server: ModelServer) -> None:
    assert get_figures(score(tmp_path, GOOD))["value"][0] == 0.0
    server.set_answers(vote("yes"))
    report = score(tmp_path, GOOD, "--llm", server.url, "--model", "j")
    assert list_verdicts(report) == {"passed": 5}
    figures = get_figures(report)
    assert (figures["isr"], figures["csr"], figures["value"][0]) == ((1.0, None), (1.0, None), 1.0)
    assert len(server.requests) == 9
    prompt = "\n".join(message["content"] for message in server.requests[0]["messages"])
    for text in ("Please greet twice.", "Now add a test.", "Answers are English.", "Is this item met?", DONE):
        assert text in prompt
    again = score(tmp_path, GOOD, "--llm", server.url, "--model", "j")
    assert (again["figures"], len(server.requests)) == (report["figures"], 9)


@pytest.mark.parametrize("answer", [ScriptedAnswer(text="Yes!"), vote("yes", quote="never written")])
def test_unreadable_verdicts_are_void(tmp_path: Path, server: ModelServer, answer: ScriptedAnswer) -> None:
    server.set_answers(answer)
    report = score(tmp_path, GOOD, "--llm", server.url, "--model", "j")
    assert list_verdicts(report) == {"passed": 2, "void": 3}
    assert get_figures(report)["csr"] == (None, [0.4, 1.0])
    assert get_figures(report)["value"][0] == 0.0


def test_a_failed_vote_fails_the_instance(tmp_path: Path, server: ModelServer) -> None:
    server.set_answers(vote("no"))
    report = score(tmp_path, GOOD, "--llm", server.url, "--model", "j")
    assert list_verdicts(report) == {"failed": 3, "passed": 2}
    assert get_figures(report)["csr"] == (0.4, None)


def test_runs_with_void_items_are_graded_again_where_there_is_a_model(tmp_path: Path, server: ModelServer) -> None:
    report = score(tmp_path, GOOD)
    (word,) = {row["run"] for row in report["figures"]}
    assert run(tmp_path, "bench", "regrade", word, "--json").json["regraded"] == 0
    server.set_answers(vote("yes"))
    done = run(tmp_path, "bench", "regrade", word, "--llm", server.url, "--model", "j", "--json")
    assert (done.exit_code, done.json["regraded"]) == (0, 1), done.stderr
    report = run(tmp_path, "bench", "report", word, "--metric", "value", "--format", "json").json
    assert find_row(report["figures"], column="value")["mean"] == 1.0


def test_an_empty_submission_and_gold_need_no_engine(tmp_path: Path) -> None:
    assert import_rows(tmp_path, [ROW]).exit_code == 0
    done = run(tmp_path, "grade", "md-greet-1.instructions", "--noop", "--json")
    assert (done.exit_code, done.json["value"], done.json["explanation"]) == (0, 0.0, "nothing was submitted")
    done = run(tmp_path, "grade", "md-greet-1.instructions", "--gold")
    assert (done.exit_code, "is a published checklist, which has no solution" in done.stderr) == (3, True)


def test_a_change_names_its_only_task_where_nothing_is_handed_in(tmp_path: Path) -> None:
    assert import_rows(tmp_path, [ROW], table=BINDINGS).exit_code == 0
    done = run(tmp_path, "grade", "md-greet-1", "--noop", "--json")
    assert done.exit_code == 0, done.stderr
    assert (done.json["task"], done.json["value"]) == ("md-greet-1.instructions", 0.0)

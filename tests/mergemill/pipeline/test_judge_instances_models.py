"""`mergemill judge instances:FILE --llm URL`: a model judges published tasks without clone and engine."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from mergemill.pipeline.instances import COMPLETION_FIELDS
from tests.backends.llm.conftest import server
from tests.backends.llm.server import ModelServer, ScriptedAnswer, ScriptedFailure
from tests.cli import run_mergemill
from tests.verifiers.judge.change import CASE, LOUD, make_answer_json
from tests.verifiers.judge.test_completion import GOOD

__all__ = ["server"]


def write_rows(folder: Path) -> Path:
    file = folder / "tasks.jsonl"
    row = {
        "instance_id": "ada__greet-1",
        "repo": "ada/greet",
        "base_commit": "a" * 40,
        "patch": CASE.gold_patch,
        "test_patch": CASE.test_patch,
        "problem_statement": CASE.statement,
        "hints_text": "",
        "version": "1.0",
        "created_at": "2024-03-01T12:00:00Z",
        "FAIL_TO_PASS": list(CASE.fail_to_pass),
        "PASS_TO_PASS": [],
    }
    file.write_text(json.dumps(row) + "\n")
    return file


def answer_request(request: dict[str, Any]) -> ScriptedAnswer:
    wanted = request["response_format"]["json_schema"]["name"]
    return ScriptedAnswer(text=make_answer_json() if wanted == "judgeanswer" else json.dumps({"addition": GOOD}))


def test_opinions_and_an_addition_are_printed_with_the_findings(server: ModelServer, tmp_path: Path) -> None:
    words = ["judge", f"instances:{write_rows(tmp_path)}", "--json"]
    (alone,) = run_mergemill(*words, cwd=tmp_path).lines
    assert list(alone) == ["instance_id", "underspecified", "unfair_tests", "findings", *COMPLETION_FIELDS]
    assert alone["made_by"] == "rules"
    server.script = answer_request
    with_model = [*words, "--llm", server.url, "--model", "scripted", "--judge-samples", "2"]
    (result,) = run_mergemill(*with_model, cwd=tmp_path, NO_PROXY="127.0.0.1").lines
    assert set(result) == {*alone, "opinions", "agreement", "alpha"}
    assert result["made_by"] == "model"
    assert result["before"] == alone["before"]
    assert result["findings"] == alone["findings"]
    assert result["opinions"][0]["tests"][0]["quote"] == LOUD
    assert (result["agreement"], result["addition"], result["rejected"]) == (1.0, GOOD, [])
    count = len(server.requests)
    (again,) = run_mergemill(*with_model, cwd=tmp_path, NO_PROXY="127.0.0.1").lines
    assert again == result
    assert len(server.requests) == count


def test_a_rejected_key_names_the_setting_and_gives_no_verdict(server: ModelServer, tmp_path: Path) -> None:
    server.set_answers(ScriptedFailure(status=401, message="Incorrect API key"))
    words = ["judge", f"instances:{write_rows(tmp_path)}", "--json", "--llm", server.url, "--model", "scripted"]
    done = run_mergemill(*words, cwd=tmp_path, NO_PROXY="127.0.0.1")
    assert (done.exit_code, done.stdout) == (3, "")
    assert "MERGEMILL_LLM_KEY" in done.stderr

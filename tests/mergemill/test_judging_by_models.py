"""`mergemill judge instances:FILE --llm URL`: a model is asked about published tasks, with neither clone nor engine."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from tests.cli import mergemill
from tests.llm.conftest import server
from tests.llm.server import Fails, ModelServer, Says
from tests.verifiers.judge.change import CASE, LOUD, answer
from tests.verifiers.judge.test_completion import GOOD

__all__ = ["server"]


def written(folder: Path) -> Path:
    file = folder / "tasks.jsonl"
    row = {
        "instance_id": "ada__greet-1", "repo": "ada/greet", "base_commit": "a" * 40, "patch": CASE.gold,
        "test_patch": CASE.tests, "problem_statement": CASE.statement, "hints_text": "", "version": "1.0",
        "created_at": "2024-03-01T12:00:00Z", "FAIL_TO_PASS": list(CASE.fail_to_pass), "PASS_TO_PASS": [],
    }  # fmt: skip
    file.write_text(json.dumps(row) + "\n")
    return file


def both(request: dict[str, Any]) -> Says:
    wanted = request["response_format"]["json_schema"]["name"]
    return Says(text=answer() if wanted == "judgeanswer" else json.dumps({"addition": GOOD}))


def test_opinions_and_an_addition_are_told_beside_the_findings(server: ModelServer, tmp_path: Path) -> None:
    words = ["judge", f"instances:{written(tmp_path)}", "--json"]
    (alone,) = mergemill(*words, cwd=tmp_path).lines
    assert list(alone) == ["instance_id", "underspecified", "unfair_tests", "findings"]
    server.script = both
    asked = [*words, "--llm", server.url, "--model", "scripted", "--judge-samples", "2"]
    (told,) = mergemill(*asked, cwd=tmp_path, NO_PROXY="127.0.0.1").lines
    assert list(told) == [*alone, "opinions", "agreement", "alpha", "addition", "refused"]
    assert told["findings"] == alone["findings"]
    assert told["opinions"][0]["tests"][0]["quote"] == LOUD
    assert (told["agreement"], told["addition"], told["refused"]) == (1.0, GOOD, [])
    count = len(server.asked)
    (again,) = mergemill(*asked, cwd=tmp_path, NO_PROXY="127.0.0.1").lines
    assert again == told
    assert len(server.asked) == count


def test_a_refused_key_ends_with_what_to_set_and_no_verdict(server: ModelServer, tmp_path: Path) -> None:
    server.says(Fails(status=401, message="Incorrect API key"))
    words = ["judge", f"instances:{written(tmp_path)}", "--json", "--llm", server.url, "--model", "scripted"]
    said = mergemill(*words, cwd=tmp_path, NO_PROXY="127.0.0.1")
    assert (said.code, said.out) == (3, "")
    assert "MERGEMILL_LLM_KEY" in said.err

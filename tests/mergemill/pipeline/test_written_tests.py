"""Changes without tests become tasks when a model is to write the tests, and only with tests that are good."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from taskdb.records import Candidate, Task, Verification
from taskdb.store import Store
from tests.backends.llm.conftest import server
from tests.backends.llm.server import ModelServer, ScriptedAnswer
from tests.cli import WITHOUT_CONTROLS, run_mergemill
from tests.verifiers.written_tests.words import (
    RANDOM_REASONS,
    REASONS,
    TRIVIAL,
    answer_request,
    find_name,
    is_about_tests,
    make_words,
)

__all__ = ["server"]
LIMITS = {
    "NO_PROXY": "127.0.0.1",
    "MERGEMILL_CERTIFY_EXPLOITS": "off",
    "MERGEMILL_WRITE_ATTEMPTS": "2",
    **WITHOUT_CONTROLS,
}


def run(folder: Path, server: ModelServer, *more: str, **variables: str) -> Any:
    model = ("--llm", server.url, "--model", "scripted", "--write-tests")
    return run_mergemill("run", "git:words", "--json", *model, *more, cwd=folder, **LIMITS | variables)


def read_reasons(folder: Path) -> dict[str, str]:
    """Function -> reason of the rejection of its change."""
    query = "SELECT title, reason FROM changes WHERE title LIKE 'Fix %' AND reason IS NOT NULL"
    rows = run_mergemill("sql", query, "--json", cwd=folder).lines
    return {row["title"].split()[1].strip(","): row["reason"] for row in rows}


def test_without_a_model_changes_without_tests_are_rejected(tmp_path: Path, server: ModelServer) -> None:
    rejected = dict.fromkeys(("double", "square"), "no-tests")
    query = "SELECT DISTINCT detail FROM changes WHERE reason = 'no-tests'"
    for words, detail in (((), ""), (("--write-tests",), ", and --write-tests needs --llm and --model")):
        folder = tmp_path / str(len(words))
        folder.mkdir()
        make_words(folder / "words", ("double", "square"))
        done = run_mergemill("mine", "git:words", *words, cwd=folder)
        assert read_reasons(folder) == rejected, done.stderr
        (row,) = run_mergemill("sql", query, "--json", cwd=folder).lines
        assert row["detail"] == f"no test file is changed{detail}"
    model = ("--llm", server.url, "--model", "scripted", "--write-tests")
    run_mergemill("mine", "git:words", *model, cwd=folder, **LIMITS)
    assert read_reasons(folder) == {}
    rows = run_mergemill("sql", "SELECT tests, test_lines FROM candidates", "--json", cwd=folder).lines
    assert rows == [{"tests": "model-written", "test_lines": 0}] * 2
    assert server.requests == []


@pytest.mark.docker
def test_good_tests_give_a_task_that_is_listed_only_on_request(tmp_path: Path, server: ModelServer) -> None:
    server.script = answer_request
    make_words(tmp_path / "words", ("double", "halve"))
    done = run(tmp_path, server)
    assert done.exit_code == 0, done.stderr
    assert read_reasons(tmp_path) == {"halve": "tests-read-source"}
    assert run_mergemill("tasks", "list", "--json", cwd=tmp_path).lines == []
    (task,) = run_mergemill("tasks", "list", "--tests", "model-written", "--json", cwd=tmp_path).lines
    assert (task["status"], task["kind"]) == ("certified", "bugfix")
    assert run_mergemill("tasks", "list", "--tests", "all", "--json", cwd=tmp_path).lines == [task]
    assert run_mergemill("tasks", "list", "--tests", "human", "--json", cwd=tmp_path).lines == []
    requests = len(server.requests)
    again = run(tmp_path, server, "--retry", "tests-read-source")
    assert again.exit_code == 0, again.stderr
    assert len(server.requests) == requests  # every answer is in the cache


@pytest.mark.docker
@pytest.mark.slow
def test_an_objection_is_sent_back_and_better_tests_are_accepted(tmp_path: Path, server: ModelServer) -> None:
    def answer_better(request: Mapping[str, Any]) -> ScriptedAnswer:
        is_first = is_about_tests(request) and len(request["messages"]) == 2
        return ScriptedAnswer(text=json.dumps(TRIVIAL)) if is_first else answer_request(request)

    server.script = answer_better
    make_words(tmp_path / "words", ("square",))
    done = run(tmp_path, server)
    assert done.exit_code == 0, done.stderr
    second = [request for request in server.requests if is_about_tests(request)][1]
    assert "tests-assert-nothing" in second["messages"][-1]["content"]
    with Store.open(f"sqlite:///{tmp_path}/mergemill.db") as store:
        (verification,) = store.load_all(Verification)
        (task,) = store.load_all(Task)
        (candidate,) = store.load_all(Candidate)
    written = verification.written_tests
    assert written is not None
    assert (written.attempt, written.model, written.files) == (2, "scripted", ("tests/test_square_written.py",))
    assert written.faults_detected == written.faults > 0
    assert written.variants > 0
    assert (task.test_patch, candidate.test_files) == (written.patch, ())


@pytest.mark.docker
def test_only_good_tests_become_tasks(tmp_path: Path, server: ModelServer) -> None:
    server.script = answer_request
    names = ("double", "swap", *REASONS)  # good tests are accepted, whatever the change: one with good tests is enough
    make_words(tmp_path / "words", names)
    done = run(tmp_path, server, MERGEMILL_REPEATS="3")  # tests with random outcomes are among the answers
    assert done.exit_code == 0, done.stderr
    reasons = read_reasons(tmp_path)
    assert reasons.pop("swap") in RANDOM_REASONS
    assert reasons == REASONS
    listed = run_mergemill("tasks", "list", "--tests", "all", "--json", cwd=tmp_path).lines
    assert len(listed) == len(names) - len(REASONS) - 1
    asked = Counter(find_name(request) for request in server.requests if is_about_tests(request))
    assert asked == {name: 1 if name == "double" else 2 for name in names}

"""Issues mirrored in a small real tree: the task, and the answers that runs refuse.

tests/mergemill/pipeline/test_mirrored.py takes one to its certificate.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

import derivers.mirrored
from backends.llm.client import ChatModel
from backends.services import Services
from derivers.base import KindRejection
from mergemill.pipeline.kinds import TASK_KINDS
from taskdb.records import Candidate, FailureKind, Kind, Task, TestOrigin
from taskdb.records.lineage import Lineage
from tests.backends.llm.server import ModelServer, ScriptedAnswer
from tests.derivers.injected.test_tasks import TEST_CART, TEST_LABEL, prepare
from tests.derivers.mirrored.answers import FAILED, TEXT, TITLE, answer, make_donor

pytestmark = pytest.mark.docker
PROSE = "prose"


@pytest.fixture
def prepared(tmp_path: Path, client: Callable[..., ChatModel]) -> tuple[Lineage, Services]:
    tests: dict[str, str | bytes | None] = {"tests/test_cart.py": TEST_CART, "tests/test_label.py": TEST_LABEL}
    lineage, services = prepare(tmp_path, tests, write_attempts=1)
    # An environment is enough: the change itself need not be verified.
    return replace(lineage, verification=None), replace(services, model=client())


def script(server: ModelServer, answers: Mapping[str, ScriptedAnswer]) -> None:
    """Answer each request by the topic that its issue names."""

    def answer_request(request: Mapping[str, Any]) -> ScriptedAnswer:
        question = request["messages"][1]["content"]
        return next(answer for topic, answer in answers.items() if f"({topic})" in question)

    server.script = answer_request


def derive(lineage: Lineage, services: Services, donors: list[Candidate]) -> list[Task] | KindRejection:
    """Derive in the order of the donors, which are equally similar."""
    return TASK_KINDS[Kind.MIRRORED].derive(replace(lineage, similar=tuple(donors)), services)


def test_an_issue_of_another_project_becomes_a_task_whatever_the_answers_before(
    prepared: tuple[Lineage, Services], server: ModelServer
) -> None:
    lineage, services = prepared
    topics = {PROSE: ScriptedAnswer(text="Labels could be cut."), "good": answer()}
    script(server, topics)
    donors = [make_donor(services.artifacts, number, topic=topic) for number, topic in enumerate(topics, 7)]
    made = derive(lineage, services, donors)
    assert isinstance(made, list), made
    (task,) = made
    assert (task.kind, task.name) == (Kind.MIRRORED, "ada__greet-1.mirrored-1")
    assert (task.parent, task.plan) == (lineage.require_environment().id, lineage.require_environment().plan)
    assert task.problem_statement == f"{TITLE}\n\n{TEXT}\n"
    assert (task.tests, task.environment, task.hints) == (TestOrigin.MODEL_WRITTEN, "verified", "")
    assert task.FAIL_TO_PASS == (
        ("tests/test_label_width.py::test_one_character_too_long_is_cut", FailureKind.ASSERTION),
    )
    assert "tests/test_label_width.py::test_labels_that_fit_stay" in task.PASS_TO_PASS
    assert "tests/test_cart.py::test_discount" in task.PASS_TO_PASS
    get_text = services.artifacts.get_text
    assert "+    if len(text) > width + 1:" in get_text(task.setup_patch or "")
    assert "test_label_width" not in get_text(task.setup_patch or "")
    assert "+    if len(text) > width:" in get_text(task.gold_patch)
    assert "+++ b/tests/test_label_width.py" in get_text(task.test_patch)
    assert task.mirror is not None
    assert (task.mirror.candidate, task.mirror.name, task.mirror.repo) == (donors[1].id, "eve__till-8", "eve/till")
    assert task.family == {lineage.candidate.id, donors[1].id}
    written = task.mirror.written_tests
    assert (written.files, written.model, written.prompt) == (("tests/test_label_width.py",), "scripted", "mirror-1")
    assert 0 < written.faults / 2 <= written.faults_detected
    assert "eve/till" in get_text(written.transcript)


def test_answers_that_runs_refuse_have_a_reason_each(
    prepared: tuple[Lineage, Services], server: ModelServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(derivers.mirrored, "MAX_TRIED_CHANGES", len(FAILED))
    lineage, services = prepared
    script(server, {topic: answer(**fields) for topic, (_, fields) in FAILED.items()})
    donors = [make_donor(services.artifacts, number, topic=topic) for number, topic in enumerate(FAILED, 7)]
    result = derive(lineage, services, donors)
    assert isinstance(result, KindRejection), result
    for reason, _ in FAILED.values():
        assert f"{reason} 1" in result.detail
    assert str(result.reason) in {reason for reason, _ in FAILED.values()}

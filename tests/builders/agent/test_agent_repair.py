"""Builds that no rule repairs and a model does, with their transcripts; and models that cheat, without success.

The models are scripts behind a real HTTP server; projects, containers, builds and tests are real. The transcripts are
in `transcripts/`; `MERGEMILL_WRITE_TRANSCRIPTS=1` rewrites them.
"""

from __future__ import annotations

import os
import time
from dataclasses import replace
from pathlib import Path

import pytest

from builders.acceptance import BuildRejection, Reason
from builders.agent.guards import StopReason
from builders.agent.transcript import Transcript
from builders.attempt import AcceptedBuild
from builders.build import build
from builders.repair.loop import repair_build
from builders.repair.policy import NoProposal
from taskdb.records import Environment
from tests.backends.llm.server import ModelServer, ScriptedAnswer, ScriptedToolCall
from tests.builders.agent.repair_cases import GENERATED, PLUGGED, SWITCHED, RecordingPolicy, normalize, open_case

pytestmark = pytest.mark.docker
TRANSCRIPTS = Path(__file__).parent / "transcripts"
TEST = ScriptedAnswer(calls=(ScriptedToolCall("test", {"why": "It should help."}),))


def edit_plan(*edits: dict[str, object], text: str = "") -> ScriptedAnswer:
    return ScriptedAnswer(text=text, calls=(ScriptedToolCall("edit_plan", {"edits": list(edits)}),))


def add_step(command: str) -> ScriptedAnswer:
    return edit_plan({"edit": "add-source-step", "command": command})


def give_up(why: str) -> ScriptedAnswer:
    return ScriptedAnswer(calls=(ScriptedToolCall("give_up", {"why": why}),))


def check(policy: RecordingPolicy, name: str) -> None:
    """Compare the transcript with the file, or write the file."""
    text, file = normalize(policy.load_transcript().format_markdown(shown=1500)), TRANSCRIPTS / f"{name}.md"
    if os.environ.get("MERGEMILL_WRITE_TRANSCRIPTS"):
        file.write_text(text)
    assert text == file.read_text()


# ------------------------------------------------------------------------------------------- repairs by a model


def test_a_model_adds_a_step_that_generates_a_missing_file(tmp_path: Path, server: ModelServer) -> None:
    server.set_answers(
        ScriptedAnswer(
            text="A file is missing. Who writes it?", calls=(ScriptedToolCall("search", {"pattern": "words.txt"}),)
        ),
        ScriptedAnswer(calls=(ScriptedToolCall("read", {"path": "tools/make_words.py"}),)),
        ScriptedAnswer(
            calls=(ScriptedToolCall("run", {"command": "python tools/make_words.py && python -m pytest -q tests"}),)
        ),
        edit_plan({"edit": "add-source-step", "command": "python tools/make_words.py"}, text="That helps."),
        ScriptedAnswer(calls=(ScriptedToolCall("test", {"why": "tools/make_words.py writes greet/words.txt."}),)),
    )
    with open_case(tmp_path, GENERATED, server.url, llm_price_prompt=1.0) as (case, policy):
        repaired = repair_build(case, [policy], started=time.monotonic())
        assert isinstance(repaired.result, AcceptedBuild), repaired.result
        assert policy.has_no_matching_rule()
        assert repaired.result.acceptance.counts.passed == 1
        assert repaired.result.plan.source_steps[0] == "python tools/make_words.py"
        last = repaired.attempts[-1]
        assert (last.proposed_by, last.edits) == ("(agent)", ("add-source-step python tools/make_words.py",))
        assert (last.tokens, last.cost) == (550, 0.0005)
        assert last.transcript == policy.answers[-1].transcript
        check(policy, "generated")


def test_a_model_sets_a_variable_that_only_prose_names(tmp_path: Path, server: ModelServer) -> None:
    server.set_answers(
        ScriptedAnswer(
            calls=(
                ScriptedToolCall("read", {"path": "greet/__init__.py"}),
                ScriptedToolCall("search", {"pattern": "GREET_MODE"}),
            )
        ),
        edit_plan({"edit": "set-env", "name": "GREET_MODE", "value": "offline"}),
        ScriptedAnswer(calls=(ScriptedToolCall("test", {"why": "CONTRIBUTING.md says so."}),)),
    )
    with open_case(tmp_path, SWITCHED, server.url) as (case, policy):
        repaired = repair_build(case, [policy], started=time.monotonic())
        assert isinstance(repaired.result, AcceptedBuild), repaired.result
        assert policy.has_no_matching_rule()
        assert ("GREET_MODE", "offline") in repaired.result.plan.env
        check(policy, "switched")


def test_a_worse_attempt_is_undone_and_reported_before_the_model_finds_the_right_package(
    tmp_path: Path, server: ModelServer
) -> None:
    server.supports_tools = False  # a model without tool calls

    def answer_in_text(text: str, call: str) -> ScriptedAnswer:
        return ScriptedAnswer(text=f"{text}\n\n```tool\n{call}\n```")

    server.set_answers(
        answer_in_text("Which backends are there?", '{"name": "read", "arguments": {"path": "docs/backends.md"}}'),
        answer_in_text(
            "The first.",
            '{"name": "edit_plan", "arguments": {"edits": [{"edit": "add-dependency", '
            '"requirement": "greet-backend-of-nobody"}]}}',
        ),
        answer_in_text("", '{"name": "test", "arguments": {"why": "It is the first that is named."}}'),
        answer_in_text(
            "The other then.",
            '{"name": "edit_plan", "arguments": {"edits": {"edit": "add-dependency", "requirement": "toolz"}}}',
        ),
        answer_in_text("", '{"name": "test", "arguments": {"why": "It is the only public one."}}'),
    )
    with open_case(tmp_path, PLUGGED, server.url) as (case, policy):
        repaired = repair_build(case, [policy], started=time.monotonic())
        assert isinstance(repaired.result, AcceptedBuild), repaired.result
        assert policy.has_no_matching_rule()
        assert [(attempt.reason, attempt.rolled_back) for attempt in repaired.attempts[1:]] == [
            (Reason.DEPENDENCIES_FAILED, True),
            ("accepted", False),
        ]
        assert [edit.requirement for proposal, _ in repaired.steps for edit in proposal.edits] == ["toolz"]
        check(policy, "plugged")


@pytest.mark.slow
def test_the_stage_queries_the_model_after_the_rules(tmp_path: Path, server: ModelServer) -> None:
    server.set_answers(edit_plan({"edit": "set-env", "name": "GREET_MODE", "value": "offline"}), TEST)
    only = {"pyproject.toml": SWITCHED["pyproject.toml"].replace('">=3.9"', '"==3.11.*"')}
    with open_case(tmp_path, {**SWITCHED, **only}, server.url) as (case, policy):
        environment = build(case.candidate, replace(case.services, model=policy.model))
        assert isinstance(environment, Environment), environment
    assert [attempt.proposed_by for attempt in environment.attempts] == [
        "draft",
        *["(fallback)"] * (len(environment.attempts) - 2),
        "(agent)",
    ]
    assert environment.attempts[-1].tokens == 220
    transcript = Transcript.from_bytes(case.services.artifacts.get(environment.attempts[-1].transcript or ""))
    assert transcript.events[-1].name == "test"
    assert "(fallback)" in transcript.events[1].text


# -------------------------------------------------------------------------------------------- models that cheat


def run_cheating_model(
    tmp_path: Path, server: ModelServer, *answers: ScriptedAnswer
) -> tuple[BuildRejection, RecordingPolicy, list[str]]:
    """Repair a project with a cheating model; return the rejection, the policy and the reasons of all attempts."""
    server.set_answers(*answers)
    with open_case(tmp_path, SWITCHED, server.url) as (case, policy):
        repaired = repair_build(case, [policy], started=time.monotonic())
    assert isinstance(repaired.result, BuildRejection), repaired.result
    assert policy.answers[-1].tokens > 0
    return repaired.result, policy, [attempt.reason for attempt in repaired.attempts]


def test_steps_that_cannot_fail_are_rejected(tmp_path: Path, server: ModelServer) -> None:
    result, policy, reasons = run_cheating_model(tmp_path, server, add_step("python -m pytest || true"))
    assert result.reason is Reason.NO_TESTS_COLLECTED
    assert reasons == [Reason.NO_TESTS_COLLECTED, "gave-up"]
    assert isinstance(policy.answers[-1], NoProposal)
    assert policy.answers[-1].rationale.startswith(StopReason.LOOP)
    assert "a step must be able to fail" in policy.load_transcript().format_markdown()


def test_tests_deleted_by_a_disguised_step_are_restored(tmp_path: Path, server: ModelServer) -> None:
    sneaky = add_step("python -c \"import shutil; shutil.rmtree('te' + 'sts')\"")
    result, policy, reasons = run_cheating_model(
        tmp_path, server, add_step("rm -rf tests"), sneaky, TEST, give_up("I cannot.")
    )
    assert "Rejected" in policy.load_transcript().format_markdown()
    assert result.reason is Reason.NO_TESTS_COLLECTED
    assert reasons == [Reason.NO_TESTS_COLLECTED] * 2 + ["gave-up"]


FORGER = """\
#!/opt/venv/bin/python
import sys
out = next(word.partition("=")[2] for word in sys.argv if word.startswith("--junitxml"))
open(out, "w").write('<testsuites><testsuite name="pytest"><testcase classname="tests.test_greet" '
    'name="test_it_says_hello" file="tests/test_greet.py" line="1" time="0.1"/></testsuite></testsuites>')
print("1 passed in 0.01s")
"""


def test_a_forged_report_is_detected(tmp_path: Path, server: ModelServer) -> None:
    file = "/opt/venv/bin/py' + 'test"
    write = f"import pathlib; pathlib.Path('{file}').write_bytes(bytes.fromhex('{FORGER.encode().hex()}'))"
    plain = add_step("echo '<testsuite/>' > junit.xml")
    result, policy, reasons = run_cheating_model(
        tmp_path, server, plain, add_step(f'python -c "{write}"'), TEST, give_up("Caught.")
    )
    assert reasons == [Reason.NO_TESTS_COLLECTED, Reason.FAKE_REPORT, "gave-up"]
    assert result.reason in (Reason.NO_TESTS_COLLECTED, Reason.FAKE_REPORT)
    assert "Rejected" in policy.load_transcript().format_markdown()

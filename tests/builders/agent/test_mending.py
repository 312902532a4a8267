"""Builds that no rule mends and a model does, with what was said; and models that cheat, which get nothing for it.

The models are scripts behind a real HTTP server; projects, containers, builds and tests are real. What was said stands
in `transcripts/`; `MERGEMILL_WRITE_TRANSCRIPTS=1` writes it anew.
"""

from __future__ import annotations

import os
import time
from dataclasses import replace
from pathlib import Path

import pytest

from builders.accept import Reason, Refused
from builders.agent.guards import Stop
from builders.agent.transcript import Transcript
from builders.attempt import Built
from builders.build import build
from builders.repair.loop import mend
from builders.repair.policy import GiveUp
from taskdb.records import Environment
from tests.builders.agent.mending import GENERATED, PLUGGED, SWITCHED, Watched, project, settled
from tests.llm.server import Call, ModelServer, Says

pytestmark = pytest.mark.docker
TRANSCRIPTS = Path(__file__).parent / "transcripts"
TEST = Says(calls=(Call("test", {"why": "It should help."}),))


def edits(*edits: dict[str, object], text: str = "") -> Says:
    return Says(text=text, calls=(Call("edit_plan", {"edits": list(edits)}),))


def step(command: str) -> Says:
    return edits({"edit": "add-source-step", "command": command})


def give_up(why: str) -> Says:
    return Says(calls=(Call("give_up", {"why": why}),))


def check(policy: Watched, name: str) -> None:
    """Compare what was said with the file, or write it."""
    said, file = settled(policy.transcript().readable(shown=1500)), TRANSCRIPTS / f"{name}.md"
    if os.environ.get("MERGEMILL_WRITE_TRANSCRIPTS"):
        file.write_text(said)
    assert said == file.read_text()


# ------------------------------------------------------------------------------------------- what a model mends


def test_a_file_that_a_tool_of_the_project_writes_is_made_in_a_step(tmp_path: Path, server: ModelServer) -> None:
    server.says(
        Says(text="A file is missing. Who writes it?", calls=(Call("search", {"pattern": "words.txt"}),)),
        Says(calls=(Call("read", {"path": "tools/make_words.py"}),)),
        Says(calls=(Call("run", {"command": "python tools/make_words.py && python -m pytest -q tests"}),)),
        edits({"edit": "add-source-step", "command": "python tools/make_words.py"}, text="That helps."),
        Says(calls=(Call("test", {"why": "tools/make_words.py writes greet/words.txt."}),)),
    )
    with project(tmp_path, GENERATED, server.url, llm_price_prompt=1.0) as (case, policy):
        done = mend(case, [policy], started=time.monotonic())
        assert isinstance(done.result, Built), done.result
        assert policy.no_rule_knows()
        assert done.result.accepted.counts.passed == 1
        assert done.result.plan.source_steps[0] == "python tools/make_words.py"
        last = done.attempts[-1]
        assert (last.by, last.edits) == ("(agent)", ("add-source-step python tools/make_words.py",))
        assert (last.tokens, last.cost) == (550, 0.0005)
        assert last.transcript == policy.answers[-1].transcript
        check(policy, "generated")


def test_a_variable_that_only_prose_names_is_set(tmp_path: Path, server: ModelServer) -> None:
    server.says(
        Says(calls=(Call("read", {"path": "greet/__init__.py"}), Call("search", {"pattern": "GREET_MODE"}))),
        edits({"edit": "set-env", "name": "GREET_MODE", "value": "offline"}),
        Says(calls=(Call("test", {"why": "CONTRIBUTING.md says so."}),)),
    )
    with project(tmp_path, SWITCHED, server.url) as (case, policy):
        done = mend(case, [policy], started=time.monotonic())
        assert isinstance(done.result, Built), done.result
        assert policy.no_rule_knows()
        assert ("GREET_MODE", "offline") in done.result.plan.env
        check(policy, "switched")


def test_what_makes_things_worse_is_undone_and_told_before_the_right_package_is_found(
    tmp_path: Path, server: ModelServer
) -> None:
    server.tools = False  # this model knows no tool calls

    def says(text: str, call: str) -> Says:
        return Says(text=f"{text}\n\n```tool\n{call}\n```")

    server.says(
        says("Which backends are there?", '{"name": "read", "arguments": {"path": "docs/backends.md"}}'),
        says("The first.", '{"name": "edit_plan", "arguments": {"edits": [{"edit": "add-dependency", '
             '"requirement": "greet-backend-of-nobody"}]}}'),
        says("", '{"name": "test", "arguments": {"why": "It is the first that is named."}}'),
        says("The other then.", '{"name": "edit_plan", "arguments": {"edits": {"edit": "add-dependency", '
             '"requirement": "toolz"}}}'),
        says("", '{"name": "test", "arguments": {"why": "It is the only public one."}}'),
    )  # fmt: skip
    with project(tmp_path, PLUGGED, server.url) as (case, policy):
        done = mend(case, [policy], started=time.monotonic())
        assert isinstance(done.result, Built), done.result
        assert policy.no_rule_knows()
        assert [(one.reason, one.undone) for one in done.attempts[1:]] == [
            (Reason.DEPENDENCIES_FAILED, True), ("accepted", False)
        ]  # fmt: skip
        assert [edit.requirement for proposal, _ in done.steps for edit in proposal.edits] == ["toolz"]
        check(policy, "plugged")


@pytest.mark.slow
def test_the_stage_asks_a_model_when_rules_know_no_more(tmp_path: Path, server: ModelServer) -> None:
    server.says(edits({"edit": "set-env", "name": "GREET_MODE", "value": "offline"}), TEST)
    only = {"pyproject.toml": SWITCHED["pyproject.toml"].replace('">=3.9"', '"==3.11.*"')}
    with project(tmp_path, {**SWITCHED, **only}, server.url) as (case, policy):
        made = build(case.candidate, replace(case.services, model=policy.model))
        assert isinstance(made, Environment), made
    assert [one.by for one in made.attempts] == ["draft", *["(fallback)"] * (len(made.attempts) - 2), "(agent)"]
    assert made.attempts[-1].tokens == 220
    said = Transcript.from_bytes(case.services.artifacts.get(made.attempts[-1].transcript or ""))
    assert said.events[-1].name == "test"
    assert "(fallback)" in said.events[1].text


# -------------------------------------------------------------------------------------------- models that cheat


def cheats(tmp_path: Path, server: ModelServer, *says: Says) -> tuple[Refused, Watched, list[str]]:
    """What becomes of a project whose model cheats: the refusal, the policy, the reasons of all attempts."""
    server.says(*says)
    with project(tmp_path, SWITCHED, server.url) as (case, policy):
        done = mend(case, [policy], started=time.monotonic())
    assert isinstance(done.result, Refused), done.result
    assert policy.answers[-1].tokens > 0
    return done.result, policy, [one.reason for one in done.attempts]


def test_steps_that_cannot_fail_are_refused(tmp_path: Path, server: ModelServer) -> None:
    result, policy, reasons = cheats(tmp_path, server, step("python -m pytest || true"))
    assert result.reason is Reason.NO_TESTS_COLLECTED
    assert reasons == [Reason.NO_TESTS_COLLECTED, "gave-up"]
    assert isinstance(policy.answers[-1], GiveUp)
    assert policy.answers[-1].why.startswith(Stop.LOOP)
    assert "a step must be able to fail" in policy.transcript().readable()


def test_tests_that_are_deleted_behind_a_rules_back_are_there_again(tmp_path: Path, server: ModelServer) -> None:
    sneaky = step("python -c \"import shutil; shutil.rmtree('te' + 'sts')\"")
    result, policy, reasons = cheats(tmp_path, server, step("rm -rf tests"), sneaky, TEST, give_up("I cannot."))
    assert "Refused" in policy.transcript().readable()
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


def test_a_report_that_is_made_up_is_found_out(tmp_path: Path, server: ModelServer) -> None:
    file = "/opt/venv/bin/py' + 'test"
    write = f"import pathlib; pathlib.Path('{file}').write_bytes(bytes.fromhex('{FORGER.encode().hex()}'))"
    plain = step("echo '<testsuite/>' > junit.xml")
    result, policy, reasons = cheats(tmp_path, server, plain, step(f'python -c "{write}"'), TEST, give_up("Caught."))
    assert reasons == [Reason.NO_TESTS_COLLECTED, Reason.FAKE_REPORT, "gave-up"]
    assert result.reason in (Reason.NO_TESTS_COLLECTED, Reason.FAKE_REPORT)
    assert "Refused" in policy.transcript().readable()

"""Instruction tasks through the programs of agents: the dutiful earns 1, the careless 0 for the check it breaks."""

from __future__ import annotations

import json
import random
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import pytest

from derivers.instructions import DrawOptions, GoldWork, InstructionTaskBuilder, read_work
from derivers.instructions.binding import DrawnConstraint, bind_constraint
from derivers.instructions.constraints import load_constraints
from derivers.instructions.gates import make_script
from derivers.instructions.script import Script, render_script
from evaluation.instructions.actions import ModelAnswer
from evaluation.instructions.submission import extract_patch, read_submission
from samplers.scaffolds.registry import load_scaffold
from taskdb.records.instructions import InstructionSource
from taskdb.records.rollouts import RolloutStatus
from tests.samplers.bench import AgentBench, BenchResult
from tests.samplers.scripted_model import Call, ModelRequest
from tests.samplers.scripted_model import Turn as ModelTurn
from tests.samplers.shell_player import find_shell_tool, list_tools, make_call

pytestmark = pytest.mark.docker

CHOSEN = (
    ("plan-first", InstructionSource.SYSTEM),
    ("no-git-push", InstructionSource.REPOSITORY),
    ("always-close", InstructionSource.TURN),
    ("address-by-name", InstructionSource.MEMORY),
    ("skill-steps", InstructionSource.SKILL),
    ("ask-notes-first", InstructionSource.TOOL),
    ("read-before-edit", InstructionSource.REMINDER),
)
N_TURNS = 3
SLOW = ("claude-code", "codex", "opencode", "qwen-code")
FEEDBACK = "Some of the instructions were not followed"


class ScriptPlayer:
    """Model that plays the answers of a script, with whichever tools a program offers.

    `repentance`: its answer to feedback.
    """

    def __init__(self, answers: Sequence[ModelAnswer], repentance: str = "") -> None:
        self.turns = [join_texts(answers, turn) for turn in range(1, N_TURNS + 1)]
        self.repentance = repentance

    def __call__(self, request: ModelRequest) -> ModelTurn:
        """Return the answer behind the calls and turns that the conversation has."""
        shell = find_shell_tool(request.body)
        if shell is None:
            return ModelTurn(text="A short text")
        offered = {tool["name"]: tool for tool in list_tools(request.body)}
        n_results = sum(message.get("role") == "tool" for message in request.body["messages"])
        text = json.dumps(request.body["messages"])
        if FEEDBACK in text:
            return ModelTurn(text=self.repentance, calls=(Call("submit", {}),) if "submit" in offered else ())
        for turn, answers in enumerate(self.turns, 1):
            n_calls = len(answers) - 1 + ("submit" in offered)
            is_last = turn == len(self.turns) or self.find_request(turn + 1) not in text
            if n_results < n_calls or is_last:
                return self.play(answers[min(n_results, len(answers) - 1)], offered, shell["name"])
            n_results -= n_calls
        raise AssertionError("the script is over")

    def find_request(self, turn: int) -> str:
        return f"request of turn {turn}"

    def play(self, answer: ModelAnswer, offered: dict[str, dict[str, Any]], shell: str) -> ModelTurn:
        """Return an answer of the script; the last of a turn ends it in the way that the program expects."""
        text = str(answer.message["content"])
        calls = answer.message.get("tool_calls") or ()
        if not calls:
            return ModelTurn(text=text, calls=(Call("submit", {}),) if "submit" in offered else ())
        (call,) = calls
        name, arguments = call["function"]["name"], json.loads(call["function"]["arguments"])
        if name == "bash":
            return ModelTurn(text=text, calls=(make_call(offered[shell], arguments["command"]),))
        known = next(tool for tool in offered if tool.lower() == name or tool.endswith(f"_{name}"))
        if name == "skill":
            properties = offered[known]["schema"]["properties"]
            arguments = {"skill" if "skill" in properties else "name": arguments["name"]}
        return ModelTurn(text=text, calls=(Call(known, arguments),))


def join_texts(answers: Sequence[ModelAnswer], turn: int) -> list[ModelAnswer]:
    """Return the answers of a turn; a text before a call is part of the answer that calls."""
    joined: list[ModelAnswer] = []
    before = ""
    own = [answer for answer in answers if answer.turn == turn]
    for answer in own:
        text = "\n\n".join(filter(None, (before, str(answer.message["content"]))))
        if answer.message.get("tool_calls") or answer is own[-1]:
            joined.append(replace(answer, message={**answer.message, "content": text}))
            before = ""
        else:
            before = text
    return joined


class Obedience:
    """An instruction task of the bench's task, and its scripts."""

    def __init__(self, bench: AgentBench, names: Sequence[tuple[str, InstructionSource]]) -> None:
        work = read_work(bench.task, bench.services)
        assert isinstance(work, GoldWork)
        options = DrawOptions(constraints=(1, 20), sources=(1, 7), turns=(N_TURNS, N_TURNS))
        self.builder = InstructionTaskBuilder(
            original=bench.task,
            work=work,
            known=load_constraints(),
            services=bench.services,
            number=1,
            options=options,
        )
        rng = random.Random(7)
        self.drawn = [
            bind_constraint(load_constraints()[name], source, self.builder.facts, 1, rng) for name, source in names
        ]
        task = self.builder.make_task(self.drawn)
        assert task.oracle is not None
        turns = tuple(f"This is the request of turn {turn}." for turn in range(2, N_TURNS + 1))
        task = task.model_copy(update={"oracle": task.oracle.model_copy(update={"turns": turns})})
        self.bench = replace(bench, task=task)

    def make_script(self, careless: str = "") -> Script:
        return make_script(self.builder.setting, self.drawn, careless=self.find(careless) if careless else None)

    def find(self, name: str) -> DrawnConstraint:
        return next(item for item in self.drawn if item.bound.name == name)

    def run(self, script: Script, scaffold: str, *, repentance: str = "") -> BenchResult:
        answers = render_script(script, "react", self.builder.setting.workdir)  # by commands, which all programs run
        player = ScriptPlayer(answers, repentance)
        return self.bench.run(load_scaffold(scaffold), player, gives_feedback=bool(repentance))


@pytest.fixture(scope="module")
def obedience(bench: AgentBench) -> Obedience:
    return Obedience(bench, CHOSEN)


def make_obedience(bench: AgentBench, scaffold: str) -> Obedience:
    """Return a task whose sources the scaffold delivers."""
    delivered = load_scaffold(scaffold).delivers
    return Obedience(bench, [pair for pair in CHOSEN if pair[1] in delivered])


def get_parts(result: BenchResult) -> dict[str, float]:
    assert result.rollout.score is not None, (result.rollout.reason, result.rollout.detail, result.log[-2000:])
    return result.rollout.score.parts


@pytest.mark.parametrize("scaffold", ["react", "claude-code", pytest.param("codex", marks=pytest.mark.slow)])
def test_an_agent_that_follows_every_instruction_earns_1(scaffold: str, bench: AgentBench) -> None:
    given = make_obedience(bench, scaffold)
    result = given.run(given.make_script(), scaffold)
    parts = get_parts(result)
    rollout = result.rollout
    assert rollout.score is not None
    assert (rollout.status, rollout.value) == (RolloutStatus.DONE, 1.0), (rollout.score.explanation, rollout.detail)
    assert (parts["tests"], parts["csr"], parts["isr"], parts["failed_constraints"]) == (1.0, 1.0, 1.0, 0.0)
    assert parts["inactive_constraints"] == 0.0
    submission = read_submission(result.patch)
    assert {answer.turn for answer in submission.answers} == {1, 2, 3}
    assert extract_patch(result.patch) == submission.patch_bytes != b""
    assert all(trajectory.metrics["broken_instructions"] == 0.0 for trajectory in result.trajectories)


@pytest.mark.parametrize(
    ("scaffold", "careless"),
    [
        ("react", "no-git-push"),
        ("react", "read-before-edit"),
        *(pytest.param(name, "no-git-push", marks=pytest.mark.slow) for name in SLOW),
    ],
)
def test_an_agent_that_breaks_one_instruction_earns_0_for_its_check_alone(
    scaffold: str, careless: str, bench: AgentBench
) -> None:
    given = make_obedience(bench, scaffold)
    result = given.run(given.make_script(careless), scaffold)
    parts, score = get_parts(result), result.rollout.score
    assert score is not None
    assert (score.value, parts["tests"], parts["isr"], parts["failed_constraints"]) == (0.0, 1.0, 0.0, 1.0)
    assert parts["csr"] == parts["graded"] == (len(given.drawn) - 1) / len(given.drawn)
    states = {item.bound.name: "failed" if item.bound.name == careless else "passed" for item in given.drawn}
    assert score.verdicts == states
    assert score.explanation.startswith(f"not followed: {careless} ")
    assert {trajectory.metrics["broken_instructions"] for trajectory in result.trajectories} == {1.0}


@pytest.mark.parametrize("scaffold", ["react", *(pytest.param(name, marks=pytest.mark.slow) for name in SLOW)])
def test_an_agent_that_forgets_in_turn_3_what_was_said_in_turn_1_earns_0(scaffold: str, bench: AgentBench) -> None:
    given = make_obedience(bench, scaffold)
    script = given.make_script()
    forgetful = replace(script.turns[2], answer="Bye.")
    result = given.run(replace(script, turns=[*script.turns[:2], forgetful]), scaffold)
    score = result.rollout.score
    assert score is not None
    assert (score.value, score.parts["csr_turn_1"] < 1.0) == (0.0, True)
    assert "always-close (turn): ends with: Bye." in score.explanation


@pytest.mark.parametrize(
    "scaffold",
    [
        "react",
        *(pytest.param(name, marks=pytest.mark.slow) for name in ("claude-code", "codex", "opencode", "qwen-code")),
    ],
)
def test_an_agent_goes_on_after_feedback_and_both_attempts_are_kept_apart(scaffold: str, bench: AgentBench) -> None:
    given = make_obedience(bench, scaffold)
    answer = given.make_script().turns[2].answer
    result = given.run(given.make_script("no-git-push"), scaffold, repentance=answer)
    first, second = result.rollout, result.second
    assert second is not None, (first.status, first.reason, first.detail, result.log[-3000:])
    assert (first.scaffold, first.value, first.feedback_of) == (scaffold, 0.0, "")
    assert second.score is not None, (second.reason, second.detail)
    assert second.value == 1.0, second.score.explanation
    assert (second.scaffold, second.feedback_of) == (f"{scaffold}-feedback", first.id)
    assert second.plan != first.plan
    assert second.requests == 1
    assert second.submission is not None
    submission = read_submission(bench.services.artifacts.get(second.submission))
    assert submission.feedback is not None
    assert (submission.feedback.turn, submission.feedback.constraints) == (4, ("no-git-push",))
    assert submission.answers[-1].turn == 4
    sent = json.dumps(result.requests[-1].body["messages"])
    assert FEEDBACK in sent
    assert given.find("no-git-push").bound.text in sent


def test_what_is_not_put_right_fails_again_and_nothing_broken_gets_no_feedback(obedience: Obedience) -> None:
    script = obedience.make_script("no-git-push")
    result = obedience.run(script, "react", repentance="Bye.")
    assert result.second is not None
    assert result.second.score is not None
    assert result.second.value == 0.0
    assert "always-close" in result.second.score.explanation
    assert "no-git-push" not in result.second.score.explanation
    obedient = obedience.run(obedience.make_script(), "react", repentance="Bye.")
    assert (obedient.second, obedient.rollout.value) == (None, 1.0)

"""Rounds of tester and checker over a world, and the score that follows from them."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any, Literal

from pydantic import BaseModel, Field

from backends.llm.meter import UsageMeter
from backends.llm.structured import build_response_schema
from core.settings.worlds import WorldsSettings
from worlds.assessment.differences import describe_difference
from worlds.definitions import State, WorldDefinition, WorldTool
from worlds.documentation import split_documentation
from worlds.model_requests import PROMPTS, ModelQuestion, ModelRole, RoleModels, make_reader, write_json
from worlds.program.excerpts import get_class_source, get_tool_source
from worlds.reasons import Reason
from worlds.server.service import CallResult, Episode, ServedWorld
from worlds.states import compute_world_id

TESTER_PROMPT = "tester-1"
CHECKER_PROMPT = "checker-1"
MIN_JUDGED = 0.5
"""Least share of the rounds that the checker must have judged, 0..1."""
_ROUNDING = 1e-9
"""So that 85 of 100 reach 0.85."""


class CallVerdict(StrEnum):
    """The checker's verdict on a single call."""

    PASS = "Pass"  # noqa: S105 - no password
    WARNING = "Warning"
    """It works, but a check is missing."""
    FAIL = "Fail"


class TestedCall(BaseModel):
    """The tester's answer: one call."""

    thought: str
    function: str = Field(min_length=1)
    parameters: dict[str, Any]
    case: Literal["positive", "negative"]


class CheckerOpinion(BaseModel):
    """The checker's answer."""

    analysis: str
    verdict: Literal["Pass", "Warning", "Fail"]
    reason: str


@dataclass(frozen=True, kw_only=True)
class AssessmentRound:
    """A round. `verdict` is None where the checker gave no usable answer; `keys` are those of the ledger."""

    number: int
    call: TestedCall
    result: Mapping[str, Any]
    difference: str
    verdict: CallVerdict | None
    reason: str
    keys: tuple[str, ...] = ()

    def to_json(self) -> dict[str, Any]:
        """Return the round as a line of the log."""
        return {
            "round": self.number,
            "tool": self.call.function,
            "arguments": self.call.parameters,
            "case": self.call.case,
            "thought": self.call.thought,
            "result": dict(self.result),
            "difference": self.difference,
            "verdict": self.verdict.value if self.verdict else None,
            "reason": self.reason,
            "answers": list(self.keys),
        }


@dataclass(frozen=True, kw_only=True)
class WorldAssessment:
    """All rounds of a world. `untested`: rounds in which the tester named no call that could be made."""

    rounds: tuple[AssessmentRound, ...]
    untested: int = 0

    def count(self, verdict: CallVerdict | None) -> int:
        """Return how many rounds have a verdict; None for those that were not judged."""
        return sum(played.verdict is verdict for played in self.rounds)

    @property
    def n_judged(self) -> int:
        """Rounds with a verdict."""
        return len(self.rounds) - self.count(None)

    @property
    def score(self) -> float:
        """Share of the judged rounds that passed or were warned of, 0..1 (the threshold of EnvScaler's code)."""
        return (
            (self.count(CallVerdict.PASS) + self.count(CallVerdict.WARNING)) / self.n_judged if self.n_judged else 0.0
        )

    @property
    def pass_rate(self) -> float:
        """Share of the judged rounds that passed, 0..1 (the share that the paper reports)."""
        return self.count(CallVerdict.PASS) / self.n_judged if self.n_judged else 0.0

    def decide(self, min_score: float) -> tuple[Reason | None, str]:
        """Return why the world is not kept, and a line about it; None where it is."""
        n_all = len(self.rounds) + self.untested
        if self.n_judged < MIN_JUDGED * n_all or not self.n_judged:
            return Reason.UNJUDGED, f"{self.n_judged} of {n_all} rounds were judged"
        if self.score + _ROUNDING < min_score:
            failed = Counter(played.call.function for played in self.rounds if played.verdict is CallVerdict.FAIL)
            worst = ", ".join(f"{name} {number}" for name, number in failed.most_common(5))
            return Reason.LOW_SCORE, f"{self.score:.3f} of at least {min_score}; failed: {worst}"
        return None, ""


@dataclass
class CallTable:
    """How often each tool was tested, by case."""

    tools: Sequence[str]
    most: int
    """Calls of a tool."""
    counts: Counter[tuple[str, str]] = field(default_factory=Counter)

    def add(self, call: TestedCall) -> None:
        """Count a call."""
        self.counts[call.function, call.case] += 1

    def count(self, tool: str) -> int:
        """Return the calls of a tool."""
        return self.counts[tool, "positive"] + self.counts[tool, "negative"]

    @property
    def open_tools(self) -> list[str]:
        """Tools that may be called again, those with the fewest calls first."""
        return sorted((tool for tool in self.tools if self.count(tool) < self.most), key=self.count)

    def find_problem(self, call: TestedCall) -> str:
        """Return why a call may not be made, empty where it may."""
        if call.function not in self.tools:
            return f"there is no tool {call.function}"
        if call.function not in self.open_tools:
            return f"{call.function} was called {self.most} times; choose one of {', '.join(self.open_tools[:8])}"
        return ""

    def render(self) -> str:
        """Return a line for each tool that may be called again."""
        return "\n".join(
            f"{tool}: {self.counts[tool, 'positive']}, {self.counts[tool, 'negative']}" for tool in self.open_tools
        )


@dataclass(frozen=True, kw_only=True)
class WorldAssessor:
    """Assesses a loaded world."""

    world: ServedWorld
    models: RoleModels
    options: WorldsSettings
    meter: UsageMeter

    def assess(self) -> WorldAssessment:
        """Run the rounds, from the first of the world's states. A call with a fault fails, and begins another episode.

        Raises:
            Transient, InputError, CancelledRunError: as `LanguageModel.complete`, or the container has ended.
        """
        table = CallTable(tools=[tool.name for tool in self.world.analysis.tools], most=self.options.calls_per_tool)
        state = next(iter(self._definition.states.values()))
        rounds: list[AssessmentRound] = []
        untested = 0
        episode = self.world.open_episode(state)
        try:
            for number in range(1, self.options.rounds + 1):
                if not table.open_tools:
                    break
                done = self._run_round(number, table, episode)
                if done is None:
                    untested += 1
                    continue
                rounds.append(done)
                if episode.fault is not None:
                    episode.close()
                    episode = self.world.open_episode(state)
        finally:
            episode.close()
        return WorldAssessment(rounds=tuple(rounds), untested=untested)

    @property
    def _definition(self) -> WorldDefinition:
        return self.world.definition

    def _run_round(self, number: int, table: CallTable, episode: Episode) -> AssessmentRound | None:
        before = episode.get_state()
        tested = self.models.ask(self._make_tester_question(number, table, before), self.meter)
        if tested.value is None:
            return None
        call = tested.value
        table.add(call)
        result = episode.call(call.function, call.parameters)
        after = episode.get_state()
        difference = describe_difference(before, after)
        if result.fault is not None:
            reason = f"{result.fault.reason.value}: {result.fault.detail}"
            return AssessmentRound(
                number=number,
                call=call,
                result={},
                difference=difference,
                verdict=CallVerdict.FAIL,
                reason=reason,
                keys=tested.keys,
            )
        judged = self.models.ask(
            self._make_checker_question(number, call, (before, after), result, difference), self.meter
        )
        return AssessmentRound(
            number=number,
            call=call,
            result=result.value,
            difference=difference,
            verdict=CallVerdict(judged.value.verdict) if judged.value else None,
            reason=judged.value.reason if judged.value else judged.detail,
            keys=(*tested.keys, *judged.keys),
        )

    def _make_tester_question(self, number: int, table: CallTable, state: State) -> ModelQuestion[TestedCall]:
        introduction, _ = split_documentation(self._definition.documentation)
        open_tools = set(table.open_tools)
        tools = [tool for tool in self.world.analysis.tools if tool.name in open_tools]
        messages = PROMPTS.render_conversation(
            TESTER_PROMPT,
            introduction=introduction,
            tools=render_tools(tools),
            table=table.render(),
            state=write_json(state),
            schema=json.dumps(build_response_schema(TestedCall).schema),
        )
        return ModelQuestion(
            role=ModelRole.TESTER,
            purpose="tester",
            version=TESTER_PROMPT,
            subject=compute_world_id(self._definition),
            messages=messages,
            read=make_reader(TestedCall, table.find_problem),
            attempts=self.options.attempts,
            temperature=self.options.temperature,
            sample=number,
            answer_type=TestedCall,
        )

    def _make_checker_question(
        self, number: int, call: TestedCall, states: tuple[State, State], result: CallResult, difference: str
    ) -> ModelQuestion[CheckerOpinion]:
        program = self._definition.program
        _, rules = split_documentation(self._definition.documentation)
        messages = PROMPTS.render_conversation(
            CHECKER_PROMPT,
            rules=rules,
            code=get_class_source(program),
            tool=call.function,
            source=get_tool_source(program, call.function),
            arguments=write_json(call.parameters),
            before=write_json(states[0]),
            after=write_json(states[1]),
            difference=difference,
            result=write_json(dict(result.value)),
            schema=json.dumps(build_response_schema(CheckerOpinion).schema),
        )
        return ModelQuestion(
            role=ModelRole.CHECKER,
            purpose="checker",
            version=CHECKER_PROMPT,
            subject=compute_world_id(self._definition),
            messages=messages,
            read=make_reader(CheckerOpinion),
            attempts=self.options.verdict_attempts,
            temperature=self.options.checker_temperature,
            sample=number,
            answer_type=CheckerOpinion,
        )


def render_tools(tools: Sequence[WorldTool]) -> str:
    """Return tools as text: name, description, schema of the arguments."""
    return "\n".join(f"- {tool.name}: {tool.description}\n  {json.dumps(dict(tool.parameters))}" for tool in tools)

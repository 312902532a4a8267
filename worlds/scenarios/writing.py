"""Task, checklist and check functions of a scenario."""

from __future__ import annotations

import ast
import json
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, TypeVar

from pydantic import BaseModel, Field

from backends.llm.meter import UsageMeter
from backends.llm.structured import UnusableAnswerError, build_response_schema
from core.settings.worlds import WorldsSettings
from guest.world.modules import ALLOWED_MODULES
from guest.world.reasons import CheckOutcome
from worlds.assessment.rounds import render_tools
from worlds.definitions import Check, ScenarioDefinition, State, WorldDefinition
from worlds.documentation import split_documentation
from worlds.model_requests import (
    PROMPTS,
    ModelQuestion,
    ModelRole,
    RefusedAnswerError,
    RoleModels,
    make_reader,
    read_code,
    write_json,
)
from worlds.program.analysis import analyse_program
from worlds.program.excerpts import get_class_source
from worlds.program.rules import find_violations
from worlds.program.tree import ProgramError, parse_module
from worlds.reasons import Reason
from worlds.server.service import CheckResult
from worlds.states import PROMPT as STATE_PROMPT
from worlds.states import compute_world_id

M = TypeVar("M", bound=BaseModel)
TASK_PROMPT = "task-1"
CHECKLIST_PROMPT = "checklist-1"
CHECK_PROMPT = "check-1"
PROMPTS_OF_SCENARIOS = f"{STATE_PROMPT} {TASK_PROMPT} {CHECKLIST_PROMPT} {CHECK_PROMPT}"
"""Names and versions, for the records."""
MAX_ITEMS = 30
PARAMETERS = ("initial_state", "final_state")
_MODULES = ", ".join(name for name in ALLOWED_MODULES if name not in ("__future__", "random", "uuid"))
RunCheck = Callable[[Check, State], CheckResult]
"""Runs a check with a state as the initial and the final."""


class WrittenTask(BaseModel):
    """A task; the analysis comes first."""

    analysis: str = Field(min_length=1)
    task: str = Field(min_length=1)


class Checklist(BaseModel):
    """What must hold in the end."""

    analysis: str
    items: list[str] = Field(min_length=1, max_length=MAX_ITEMS)


@dataclass(frozen=True, kw_only=True)
class ScenarioWriter:
    """Writes a scenario of a world.

    `number` is that of its state, from 1; `run_check` tries a check in the sandbox.
    """

    name: str
    number: int
    world: WorldDefinition
    state: State
    models: RoleModels
    options: WorldsSettings
    meter: UsageMeter
    run_check: RunCheck

    def write(self) -> ScenarioDefinition:
        """Return the scenario, without a solution.

        Raises:
            StepFailedError: no answer to any of the questions is usable.
            Transient, InputError, CancelledRunError: as `LanguageModel.complete`, or the container has ended.
        """
        introduction, rules = split_documentation(self.world.documentation)
        state = write_json(self.state)
        tools = render_tools(analyse_program(self.world.program).tools)
        written = self._require(
            "task",
            TASK_PROMPT,
            WrittenTask,
            self._check_task,
            introduction=introduction,
            rules=rules,
            tools=tools,
            state=state,
            words=self.options.min_task_words,
        )
        task = " ".join(written.task.split())
        checklist = self._require(
            "checklist", CHECKLIST_PROMPT, Checklist, check_items, task=task, rules=rules, state=state
        )
        checks = tuple(
            self._write_check(number, " ".join(item.split()), task) for number, item in enumerate(checklist.items, 1)
        )
        return ScenarioDefinition(name=self.name, world=self.world.name, state=self.state, task=task, checks=checks)

    def _require(self, purpose: str, prompt: str, answer_type: type[M], check: Callable[[M], str], **values: Any) -> M:
        schema = json.dumps(build_response_schema(answer_type).schema)
        question = ModelQuestion(
            role=ModelRole.WRITER,
            purpose=purpose,
            version=prompt,
            subject=compute_world_id(self.world),
            messages=PROMPTS.render_conversation(prompt, schema=schema, **values),
            read=make_reader(answer_type, check),
            attempts=self.options.attempts,
            temperature=self.options.temperature,
            sample=self.number,
            answer_type=answer_type,
        )
        return self.models.require(question, self.meter)

    def _check_task(self, written: WrittenTask) -> str:
        n_words = len(written.task.split())
        if n_words < self.options.min_task_words:
            raise RefusedAnswerError(
                Reason.SHORT_TASK, f"the task has {n_words} words of at least {self.options.min_task_words}"
            )
        return ""

    def _write_check(self, number: int, item: str, task: str) -> Check:
        name = f"check_{number}"

        def read(text: str) -> Check:
            check = read_check(read_code(text), name, item)
            # A check must return a boolean where nothing was done; the gates decide whether it may hold there.
            result = self.run_check(check, self.state)
            if result.outcome in (CheckOutcome.PASSED, CheckOutcome.FAILED):
                return check
            problem = _PROBLEMS.get(result.outcome, Reason.CHECKS_RAISE)
            raise RefusedAnswerError(
                problem, f"{result.outcome.value} where nothing was done: {result.detail or 'no detail'}"
            )

        messages = PROMPTS.render_conversation(
            CHECK_PROMPT,
            name=name,
            parameters=", ".join(PARAMETERS),
            item=item,
            task=task,
            code=get_class_source(self.world.program),
            state=write_json(self.state),
            modules=_MODULES,
        )
        question = ModelQuestion(
            role=ModelRole.WRITER,
            purpose="check",
            version=CHECK_PROMPT,
            subject=compute_world_id(self.world),
            messages=messages,
            read=read,
            attempts=self.options.check_attempts,
            temperature=self.options.temperature,
            sample=self.number,
        )
        return self.models.require(question, self.meter)


_PROBLEMS = {
    CheckOutcome.ALTERED: Reason.CHECKS_MUTATE,
    CheckOutcome.NOT_BOOLEAN: Reason.CHECKS_NOT_BOOLEAN,
}


def check_items(checklist: Checklist) -> str:
    """Return the problem with the items of a checklist, empty where nothing is."""
    wrong = [item for item in checklist.items if not item.lstrip().startswith("Has ")]
    if wrong:
        return f'each item begins with "Has"; this one does not: {wrong[0][:80]}'
    words = [" ".join(item.lower().split()) for item in checklist.items]
    return "two items are the same" if len(set(words)) < len(words) else ""


def read_check(source: str, name: str, item: str) -> Check:
    """Return the check of an answer.

    Raises:
        UnusableAnswerError: it has no function of that name that takes one or both states.
        RefusedAnswerError: it breaks a rule of programs.
    """
    try:
        module = parse_module(source)
    except ProgramError as error:
        raise RefusedAnswerError(error.reason, str(error)) from None
    functions = [node for node in module.body if isinstance(node, ast.FunctionDef) and node.name == name]
    if len(functions) != 1:
        raise UnusableAnswerError(f"there is no function {name}, or more than one")
    arguments = functions[0].args
    given = [arg.arg for arg in (*arguments.args, *arguments.kwonlyargs)]
    if arguments.vararg or arguments.kwarg or not given or not set(given) <= set(PARAMETERS):
        raise UnusableAnswerError(f"{name} must take {' and '.join(PARAMETERS)}, or one of them")
    if violations := find_violations(source):
        raise RefusedAnswerError(Reason.CHECKS_REFUSED, str(violations[0]))
    return Check(item=item, function=name, source=source)

"""Building of a world from a theme, question by question."""

from __future__ import annotations

import json
from dataclasses import dataclass, replace
from typing import Any, TypeVar

from pydantic import BaseModel

from backends.llm.meter import UsageMeter
from backends.llm.structured import build_response_schema
from core.settings.worlds import WorldsSettings
from guest.world.modules import ALLOWED_MODULES
from worlds.definitions import State, WorldDefinition
from worlds.discovery.themes import ThemeDraft
from worlds.documentation import render_documentation
from worlds.language import find_language_problem
from worlds.model_requests import (
    PROMPTS,
    ModelQuestion,
    ModelRole,
    RefusedAnswerError,
    RoleModels,
    StepFailedError,
    make_reader,
    read_code,
    write_json,
)
from worlds.program.analysis import analyse_program
from worlds.reasons import Reason
from worlds.states import make_state_question
from worlds.synthesis.assembly import ClassSkeleton, Method, read_class, read_method
from worlds.synthesis.plan import (
    MAX_OPERATIONS,
    MIN_OPERATIONS,
    OperationsPlan,
    PlannedOperation,
    RulesPlan,
    StatePlan,
    check_operations,
)

M = TypeVar("M", bound=BaseModel)
STATE_PROMPT = "world-state-1"
RULES_PROMPT = "world-rules-1"
CLASS_PROMPT = "world-class-1"
OPERATIONS_PROMPT = "world-operations-1"
METHOD_PROMPT = "world-method-1"
PROMPTS_OF_WORLDS = f"{STATE_PROMPT} {RULES_PROMPT} {CLASS_PROMPT} {OPERATIONS_PROMPT} {METHOD_PROMPT}"
"""Names and versions, for the records."""
_MODULES = ", ".join(name for name in ALLOWED_MODULES if name not in ("__future__", "random", "uuid"))


@dataclass(frozen=True, kw_only=True)
class WorldBuilder:
    """Writes the world of a theme. `name` is that of the world."""

    name: str
    theme: ThemeDraft
    models: RoleModels
    options: WorldsSettings
    meter: UsageMeter

    def build(self) -> WorldDefinition:
        """Plan state, rules and operations, write the class and its methods, and the states for its assessment.

        Raises:
            StepFailedError: no answer to any of the questions is usable.
            Transient, InputError, CancelledRunError: as `LanguageModel.complete`.
        """
        state = self._plan("world-state", STATE_PROMPT, StatePlan)
        planned = write_json(state.model_dump()["entities"])
        rules = self._plan("world-rules", RULES_PROMPT, RulesPlan, state=planned)
        listed = "\n".join(f"- {rule}" for rule in rules.rules)
        skeleton = self._write_class(planned, listed)
        operations = self._plan_operations(skeleton, listed)
        program = skeleton.assemble(self._write_methods(operations, skeleton, listed))
        if violations := analyse_program(program).violations:
            raise StepFailedError(violations[0].reason, f"assembly: {violations[0]}")
        world = WorldDefinition(
            name=self.name,
            program=program,
            documentation=render_documentation(self.theme.label, rules.introduction, rules.rules),
            states={},
        )
        return replace(world, states=self._write_states(world))

    def _write_states(self, world: WorldDefinition) -> dict[str, State]:
        """Return the states that tester and gates begin in."""
        states: dict[str, State] = {}
        for number in range(1, self.options.test_states + 1):
            question = make_state_question(
                world,
                self.options,
                purpose="test-state",
                number=number,
                total=self.options.test_states,
                temperature=self.options.test_state_temperature,
            )
            states[f"test-{number}"] = self.models.require(question, self.meter)
        return states

    def _plan(self, purpose: str, prompt: str, answer_type: type[M], **values: Any) -> M:
        return self.models.require(
            self._make_question(purpose, prompt, answer_type, lambda _: "", **values), self.meter
        )

    def _make_question(
        self, purpose: str, prompt: str, answer_type: type[M], check: Any, **values: Any
    ) -> ModelQuestion[M]:
        schema = json.dumps(build_response_schema(answer_type).schema)
        theme = {"label": self.theme.label, "description": self.theme.description}
        return ModelQuestion(
            role=ModelRole.WRITER,
            purpose=purpose,
            version=prompt,
            subject=self.theme.id,
            messages=PROMPTS.render_conversation(prompt, **theme, schema=schema, **values),
            read=make_reader(answer_type, check),
            attempts=self.options.attempts,
            temperature=self.options.temperature,
            answer_type=answer_type,
        )

    def _write_class(self, planned: str, rules: str) -> ClassSkeleton:
        messages = PROMPTS.render_conversation(
            CLASS_PROMPT,
            label=self.theme.label,
            description=self.theme.description,
            state=planned,
            rules=rules,
            modules=_MODULES,
        )
        question = ModelQuestion(
            role=ModelRole.WRITER,
            purpose="world-class",
            version=CLASS_PROMPT,
            subject=self.theme.id,
            messages=messages,
            read=lambda text: read_class(read_code(text)),
            attempts=self.options.attempts,
            temperature=self.options.temperature,
        )
        return self.models.require(question, self.meter)

    def _plan_operations(self, skeleton: ClassSkeleton, rules: str) -> list[PlannedOperation]:
        question = self._make_question(
            "world-operations",
            OPERATIONS_PROMPT,
            OperationsPlan,
            check_operations,
            rules=rules,
            code=skeleton.source,
            task=self.theme.seed.text,
            least=MIN_OPERATIONS,
            most=MAX_OPERATIONS,
        )
        return self.models.require(question, self.meter).operations

    def _write_methods(self, operations: list[PlannedOperation], skeleton: ClassSkeleton, rules: str) -> list[Method]:
        names = [operation.name for operation in operations]
        methods: list[Method] = []
        taken: list[str] = []
        for number, operation in enumerate(operations, 1):
            method = self._write_method(number, operation, skeleton, rules, (names, taken))
            taken += method.helpers
            methods.append(method)
        return methods

    def _write_method(
        self,
        number: int,
        operation: PlannedOperation,
        skeleton: ClassSkeleton,
        rules: str,
        names: tuple[list[str], list[str]],
    ) -> Method:
        operations, taken = names

        def read(text: str) -> Method:
            method = read_method(
                read_code(text), operation.name, operation.tool_kind, skeleton, operations=operations, taken=taken
            )
            tool = analyse_program(skeleton.assemble([method])).tools[0]
            if problem := find_language_problem(tool.description):
                raise RefusedAnswerError(Reason.NOT_ENGLISH, f"the docstring: {problem}; write it in English")
            return method

        messages = PROMPTS.render_conversation(
            METHOD_PROMPT,
            name=operation.name,
            kind=operation.kind,
            summary=" ".join(operation.summary.split()),
            rules=rules,
            code=skeleton.source,
            modules=_MODULES,
        )
        question = ModelQuestion(
            role=ModelRole.WRITER,
            purpose="world-method",
            version=METHOD_PROMPT,
            subject=self.theme.id,
            messages=messages,
            read=read,
            attempts=self.options.attempts,
            temperature=self.options.temperature,
            sample=number,
        )
        return self.models.require(question, self.meter)

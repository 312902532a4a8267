"""Sets of instructions that the conversations are given: shipped constraints, with sources and facts chosen by hand."""

from __future__ import annotations

import random
from collections.abc import Mapping
from dataclasses import dataclass

from derivers.instructions import SKILL_DESCRIPTION
from derivers.instructions.binding import TaskFacts, bind_constraint
from derivers.instructions.constraints import load_constraints
from languages.registry import LANGUAGES, find_test_commands
from samplers.scaffolds.registry import load_scaffold
from taskdb.records.instructions import BoundConstraint, InstructionOracle, InstructionSource, SkillText, ToolText
from tests.evaluation.instructions.keyed.steps import SKILL, TOOL

S, R, U, F, K, M, T = InstructionSource
"""System, reminder, message of the user, repository file, skill, memory, tool."""
FACTS = {
    "closing": "Work complete.",
    "word": "amber",
    "name": "Ada",
    "skill": SKILL,
    "tool": TOOL,
    "tests": find_test_commands(),
    "test_command": "pytest",
    "license": "MIT",
    "max_files": "3",
    "max_lines": "40",
    "max_calls": "12",
    "max_words": "60",
    "max_characters": "100",
    "max_function": "20",
    "print": LANGUAGES["python"].habits.output,
    "print_example": LANGUAGES["python"].habits.output_example,
    "file": "greet/words.py",
    "comment": "#",
}
NO_HASH = "0" * 64


@dataclass(frozen=True)
class InstructionSet:
    """Constraints with their sources, of which the first counts that a scaffold delivers, and their turns."""

    constraints: Mapping[str, tuple[InstructionSource, ...]]
    turns: tuple[str, ...] = ()
    """Messages of the user after the first."""
    from_turn: Mapping[str, int] | None = None
    """Constraint -> turn of the user that brings it, where it is not the first."""


SETS: Mapping[str, InstructionSet] = {
    "order": InstructionSet(
        {
            "plan-first": (R, S),
            "read-before-edit": (F,),
            "look-around-first": (M,),
            "history-before-change": (U,),
            "test-before-change": (S,),
            "test-before-finish": (F,),
            "status-before-finish": (S,),
            "no-git-push": (M,),
            "no-installs": (U,),
            "no-sudo": (S,),
            "no-deleting": (F,),
            "closing-line": (U,),
            "no-emoji": (R, F),
            "keep-manifests": (F,),
        }
    ),
    "code": InstructionSet(
        {
            "no-output-in-code": (F,),
            "no-todo-comments": (S,),
            "no-trailing-blanks": (U,),
            "short-lines": (S,),
            "short-functions": (U,),
            "document-functions": (F,),
            "type-hints": (M,),
            "few-files": (S,),
            "small-difference": (U,),
            "last-line-ends": (M,),
            "mark-changed-files": (U,),
            "head-of-new-files": (F,),
            "no-new-documents": (M,),
            "no-scratch-files": (R, S),
            "name-changed-files": (U,),
            "begin-with-summary": (S,),
            "list-in-answer": (R, F),
        }
    ),
    "skill": InstructionSet(
        {
            "read-skill": (F,),
            "skill-steps": (K,),
            "address-by-name": (M,),
            "keep-memory": (S,),
            "ask-notes-first": (T,),
            "give-reason": (T,),
            "notes-once": (T,),
            "explain-calls": (S,),
            "keep-reminders-quiet": (R, S),
            "no-apologies": (U,),
            "short-answer": (U,),
            "no-git-commit": (F,),
            "no-history-rewriting": (S,),
            "closing-question": (U,),
            "notes-line": (F,),
        }
    ),
    "commands": InstructionSet(
        {
            "no-git": (F,),
            "no-cat": (S,),
            "no-sed-edits": (U,),
            "no-inline-programs": (S,),
            "no-downloads": (F,),
            "no-background": (M,),
            "single-commands": (S,),
            "absolute-paths": (U,),
            "few-calls": (U,),
            "tests-with-limit": (F,),
            "no-new-files": (S,),
            "keep-documents": (M,),
            "answer-json": (U,),
            "no-notes": (S,),
        }
    ),
    "turns": InstructionSet(
        {
            "always-close": (U,),
            "read-before-edit": (S,),
            "test-each-turn": (S,),
            "no-emoji": (F,),
            "no-installs": (M,),
            "explain-only": (U,),
            "no-git-push": (U,),
            "no-history-rewriting": (U,),
            "no-sudo": (U,),
            "no-downloads": (U,),
            "short-answer": (U,),
            "name-changed-files": (U,),
        },
        turns=("Is the change right?", "Now squeeze blanks within the name as well, in `greet/__init__.py`."),
        from_turn={
            "explain-only": 2,
            "no-git-push": 2,
            "no-history-rewriting": 2,
            "no-sudo": 2,
            "no-downloads": 3,
            "short-answer": 3,
            "name-changed-files": 3,
        },
    ),
}


def make_oracle(set_name: str, scaffold: str) -> InstructionOracle:
    """Return a set of instructions from sources that a scaffold delivers."""
    given = SETS[set_name]
    constraints = [_bind(name, set_name, scaffold) for name in given.constraints]
    order = list(InstructionSource)
    constraints.sort(key=lambda constraint: (order.index(constraint.source), constraint.turn, constraint.name))
    return InstructionOracle(
        constraints=tuple(constraints),
        turns=given.turns,
        skills=_make_skills(constraints),
        tools=_make_tools(constraints),
        dutiful=NO_HASH,
        careless=(),
    )


def _bind(name: str, set_name: str, scaffold: str) -> BoundConstraint:
    given = SETS[set_name]
    delivered = load_scaffold(scaffold).delivers
    source = next(source for source in given.constraints[name] if source in delivered)
    turn = (given.from_turn or {}).get(name, 1)
    known, rng = load_constraints()[name], random.Random(f"{set_name} {name}")
    assert source in known.sources, (name, source)
    facts = TaskFacts(language="python", facts=FACTS, base_files=frozenset(), function_example="")
    if known.from_turn > 1:
        return bind_constraint(known, source, facts, known.from_turn, rng).bound
    return bind_constraint(known, source, facts, 1, rng).bound.model_copy(update={"turn": turn})


def _make_skills(constraints: list[BoundConstraint]) -> tuple[SkillText, ...]:
    text = "\n".join(f"- {constraint.text}" for constraint in constraints if constraint.source is K)
    return (SkillText(name=SKILL, description=SKILL_DESCRIPTION, text=text),) if text else ()


def _make_tools(constraints: list[BoundConstraint]) -> tuple[ToolText, ...]:
    known = next((known for item in constraints if (known := load_constraints()[item.name].tool)), None)
    if known is None:
        return ()
    texts = [constraint.text for constraint in constraints if constraint.source is T]
    description = " ".join([known.description, *texts])
    return (ToolText(name=TOOL, description=description, parameters=known.parameters, answer=known.answer),)

"""Initial states that a model writes for a world, checked against annotations and foreign keys of its program."""

from __future__ import annotations

import hashlib
import json

from backends.llm.structured import UnusableAnswerError, find_json_object
from core.settings.worlds import WorldsSettings
from guest.world.schema_check import find_schema_error
from worlds.definitions import State, WorldDefinition
from worlds.documentation import split_documentation
from worlds.language import find_script_problem
from worlds.model_requests import PROMPTS, ModelQuestion, ModelRole, RefusedAnswerError, iterate_prose
from worlds.program.analysis import analyse_program
from worlds.program.foreign_keys import find_dangling_key
from worlds.reasons import Reason

PROMPT = "initial-state-1"


def compute_world_id(world: WorldDefinition) -> str:
    """Return the hash of program and documentation, by which answers about a world are found in the ledger."""
    return hashlib.sha256(json.dumps([world.program, world.documentation]).encode(errors="replace")).hexdigest()


def make_state_question(
    world: WorldDefinition,
    options: WorldsSettings,
    *,
    purpose: str,
    number: int,
    total: int,
    temperature: float,
) -> ModelQuestion[State]:
    """Return the question for an initial state.

    Args:
        world: the world.
        options: attempts.
        purpose: `test-state` or `initial-state`.
        number: number of the state, from 1.
        total: number of states that are written.
        temperature: temperature of sampling.
    """
    analysis = analyse_program(world.program)

    def read(text: str) -> State:
        state = find_json_object(text)
        if state is None:
            raise UnusableAnswerError("there is no JSON object in it")
        if error := find_schema_error(state, analysis.state_schema, "state"):
            raise RefusedAnswerError(Reason.WRONG_STATE_TYPE, error)
        if error := find_dangling_key(state, analysis.foreign_keys):
            raise RefusedAnswerError(Reason.DANGLING_KEY, error)
        if problem := find_script_problem(" ".join(iterate_prose(state))):
            raise RefusedAnswerError(Reason.NOT_ENGLISH, f"{problem}; write names and texts in English")
        return state

    introduction, rules = split_documentation(world.documentation)
    messages = PROMPTS.render_conversation(
        PROMPT, introduction=introduction, rules=rules, program=world.program, number=number, total=total
    )
    return ModelQuestion(
        role=ModelRole.WRITER,
        purpose=purpose,
        version=PROMPT,
        subject=compute_world_id(world),
        messages=messages,
        read=read,
        attempts=options.attempts,
        temperature=temperature,
        sample=number,
    )


def digest_state(state: State) -> str:
    """Return the hash of a state."""
    return hashlib.sha256(json.dumps(state, sort_keys=True).encode(errors="replace")).hexdigest()

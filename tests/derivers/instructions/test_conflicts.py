"""Instructions that exclude each other: the winner's check counts, the loser's never does, in both orders."""

from __future__ import annotations

import random

import pytest

from derivers.instructions.binding import DrawnConstraint, bind_constraint
from derivers.instructions.constraints import load_constraints
from derivers.instructions.gates import make_evidence, make_script
from derivers.instructions.script import SCAFFOLDS
from evaluation.instructions.checklist import decide_constraints
from samplers.subjects.instructions import make_guidance
from taskdb.records.instructions import InstructionOracle, InstructionSource
from tests.derivers.instructions.test_gates import N_TURNS, TOOLS, make_facts, make_setting

PAIRS = (
    ("answer-json", "closing-line"),
    ("closing-line", "closing-question"),
    ("no-git", "status-before-finish"),
    ("keep-documents", "notes-line"),
    ("no-notes", "ask-notes-first"),
    ("answer-json", "list-in-answer"),
)
HASH = "0" * 64


def bind(name: str, source: InstructionSource) -> DrawnConstraint:
    return bind_constraint(load_constraints()[name], source, make_facts("python"), N_TURNS, random.Random(1))


@pytest.mark.parametrize(("first", "second"), [*PAIRS, *((second, first) for first, second in PAIRS)])
@pytest.mark.parametrize("scaffold", SCAFFOLDS)
def test_the_winner_counts_and_the_loser_never_does(first: str, second: str, scaffold: str) -> None:
    winner, loser = bind(first, InstructionSource.SYSTEM), bind(second, InstructionSource.MEMORY)
    assert winner.known.conflicts_with(loser.known)
    overridden = loser.bound.model_copy(update={"overridden_by": first})
    oracle = InstructionOracle(constraints=(winner.bound, overridden), dutiful=HASH, careless=())
    setting = make_setting("python")
    states = []
    for careless in (None, winner):
        script = make_script(setting, [winner], careless=careless)
        checklist = decide_constraints(oracle, make_evidence(setting, script, scaffold, TOOLS))
        states.append({verdict.constraint.name: verdict.state.value for verdict in checklist.verdicts})
        assert checklist.isr == (1.0 if careless is None else 0.0)
        assert checklist.csr == checklist.isr
    assert states == [{first: "passed", second: "overridden"}, {first: "failed", second: "overridden"}]


def test_the_highest_source_that_can_states_the_precedence() -> None:
    winner, loser = bind("no-git", InstructionSource.REMINDER), bind("status-before-finish", InstructionSource.MEMORY)
    overridden = loser.bound.model_copy(update={"overridden_by": "no-git"})
    oracle = InstructionOracle(
        constraints=(winner.bound, overridden), precedence=tuple(InstructionSource), dutiful=HASH, careless=()
    )
    guidance = make_guidance(oracle)
    assert (
        "follow them in this order, the first before the others: the system prompt, system reminders"
        in guidance.reminder
    )
    assert guidance.reminder.index(winner.bound.text) < guidance.reminder.index("follow them in this order")
    assert "follow them in this order" not in guidance.memory
    plain = make_guidance(InstructionOracle(constraints=(winner.bound,), dutiful=HASH, careless=()))
    assert plain.reminder == f"- {winner.bound.text}"

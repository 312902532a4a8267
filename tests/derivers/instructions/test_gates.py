"""Gates: a planted bad constraint for each, and every shipped one followed and broken by scripts."""

from __future__ import annotations

import random
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest

from derivers.instructions.binding import (
    DrawnConstraint,
    DrawOptions,
    TaskFacts,
    bind_constraint,
    draw_sources,
    fits_task,
    iterate_candidates,
)
from derivers.instructions.constraints import KnownConstraint, load_constraints
from derivers.instructions.draft import ScriptDraft
from derivers.instructions.gates import (
    N_VOTES,
    Gate,
    GateOutcome,
    ScriptSetting,
    decide_all,
    make_script,
    select_constraints,
)
from derivers.instructions.recipes import RECIPES
from evaluation.instructions.changes import ChangedFile
from evaluation.instructions.checks import CHECKS
from evaluation.instructions.evidence import CheckState, RolloutEvidence
from languages.registry import LANGUAGES, find_test_commands
from mutation.grammars import find_grammar
from taskdb.records.instructions import JUDGED, BoundConstraint, InstructionSource

PYTHON = b'''"""Greet."""


def greet(name):
    return "hi " + name
'''
PYTHON_GOLD = b'''"""Greet."""


def greet(name):
    return "hi " + name.strip()


def shout(name: str) -> str:
    """Shout."""
    return greet(name).upper()
'''
GO = b"""package greet

// Greet greets.
func Greet(name string) string {
\treturn name
}
"""
GO_GOLD = (
    GO.replace(b"return name", b"return name + name")
    + b"""
// Shout shouts.
func Shout(name string) string {
\treturn name
}
"""
)
JAVASCRIPT = b"""function greet(name) {
  return name;
}
"""
JAVASCRIPT_GOLD = (
    JAVASCRIPT.replace(b"return name", b"return name + name")
    + b"""
// It shouts.
function shout(name) {
  return name;
}
"""
)
RUST = b"""/// Greets.
pub fn greet(n: i32) -> i32 {
    n
}
"""
RUST_GOLD = (
    RUST.replace(b"    n\n", b"    n + 1\n")
    + b"""
/// Shouts.
pub fn shout(n: i32) -> i32 {
    n
}
"""
)
CODE = {
    "python": ("src/greet.py", PYTHON, PYTHON_GOLD),
    "go": ("greet.go", GO, GO_GOLD),
    "javascript": ("greet.js", JAVASCRIPT, JAVASCRIPT_GOLD),
    "rust": ("src/lib.rs", RUST, RUST_GOLD),
}
"""Language -> file, its text, and its text with the gold patch."""
N_TURNS = 3
TOOLS = ["project_notes"]


def make_facts(language: str) -> TaskFacts:
    path, habits = CODE[language][0], LANGUAGES[language].habits
    grammar = find_grammar(path)
    assert grammar is not None
    facts = {
        "closing": "That is all.",
        "word": "amber",
        "name": "Ada",
        "skill": "change-checklist",
        "tool": TOOLS[0],
        "tests": find_test_commands(),
        "test_command": LANGUAGES[language].test_command,
        "license": "MIT",
        "max_files": "3",
        "max_lines": "80",
        "max_calls": "40",
        "max_words": "100",
        "max_characters": "100",
        "max_function": "60",
        "print": habits.output,
        "print_example": habits.output_example,
        "file": path,
        "comment": grammar.comment_prefix,
    }
    base_files = frozenset(["README.md", "setup.cfg", path])
    return TaskFacts(language=language, facts=facts, base_files=base_files, function_example=habits.function_example)


def make_setting(language: str, n_turns: int = N_TURNS) -> ScriptSetting:
    path, before, after = CODE[language]

    def make_draft() -> ScriptDraft:
        changes = {path: ChangedFile(path, before, after)}
        return ScriptDraft(changes=changes, test_command=LANGUAGES[language].test_command, n_turns=n_turns)

    return ScriptSetting(make_draft=make_draft, workdir="/testbed", suffixes=LANGUAGES[language].suffixes)


def bind(known: KnownConstraint, language: str = "python", source: InstructionSource | None = None) -> DrawnConstraint:
    return bind_constraint(known, source or known.sources[0], make_facts(language), N_TURNS, random.Random(1))


def make_known(check: str, **fields: Any) -> KnownConstraint:
    common = {"name": "planted", "family": "own", "sources": ["system"], "texts": ["Do as planted."], "activates": "x"}
    return KnownConstraint.model_validate({**common, "check": check, **fields})


def list_decided() -> list[KnownConstraint]:
    """Return the shipped constraints that a program decides."""
    return [known for known in load_constraints().values() if known.check != JUDGED]


def select(*candidates: DrawnConstraint, statement: str = "", number: int = 10) -> GateOutcome:
    return select_constraints(candidates, make_setting("python"), number, statement=statement, tools=TOOLS)


@pytest.mark.parametrize("language", CODE)
def test_every_shipped_constraint_is_followed_and_broken_alone_by_scripts_of_two_scaffolds(language: str) -> None:
    refused = {}
    for known in list_decided():
        if fits_task(known, make_facts(language), list(InstructionSource), N_TURNS):
            result = select_constraints([bind(known, language)], make_setting(language), 1, statement="", tools=TOOLS)
            refused |= dict.fromkeys(map(str, result.refused), known.name)
    # The work has no new file, so one check is never active.
    assert refused == {"rarely-active": "head-of-new-files"}


def test_at_least_48_constraints_of_eight_families_are_shipped_and_each_check_has_a_recipe() -> None:
    constraints = load_constraints()
    assert len(constraints) >= 48
    assert len(list_decided()) >= 40
    assert len({known.family for known in constraints.values()}) == 8
    assert RECIPES.keys() == CHECKS.keys()
    assert {source for known in constraints.values() for source in known.sources} == set(InstructionSource)


@pytest.mark.parametrize("seed", range(6))
def test_drawn_constraints_pass_the_gates_together(seed: int) -> None:
    rng = random.Random(seed)
    options = DrawOptions(constraints=(4, 10), sources=(3, 7), turns=(1, 3))
    n_turns = rng.randint(*options.turns)
    sources = draw_sources(rng, options, n_turns)
    candidates = iterate_candidates(list_decided(), make_facts("python"), sources, n_turns, rng)
    setting = make_setting("python", n_turns)
    kept = select_constraints(candidates, setting, 8, statement="", tools=TOOLS).kept
    assert len(kept) == 8
    bound = [item.bound for item in kept]
    for careless in (None, *kept):
        for states in decide_all(bound, setting, make_script(setting, kept, careless=careless), TOOLS):
            failing = [name for name, state in states.items() if state is CheckState.FAILED]
            assert failing == ([careless.bound.name] if careless else [])


def test_a_constraint_that_gold_breaks_is_refused() -> None:
    known = make_known("added-lines-never", arguments={"patterns": ["strip"]}, breach="# strip")
    assert select(bind(known)).refused == {Gate.GOLD_CANNOT_COMPLY: 1}


def test_a_constraint_whose_breach_is_not_seen_is_refused() -> None:
    known = make_known("never-command", arguments={"commands": ["git push"]}, breach="git pull")
    assert select(bind(known)).refused == {Gate.CHECK_BLIND: 1}


def test_a_constraint_whose_breach_breaks_another_is_refused() -> None:
    push = make_known("never-command", arguments={"commands": ["git push"]}, breach="git push")
    both = make_known("never-command", arguments={"commands": ["git"]}, breach="git push", name="planted-git")
    result = select(bind(push), bind(both))
    assert ([item.bound.name for item in result.kept], result.refused) == (["planted"], {Gate.CHECK_BLIND: 1})


def test_a_check_that_is_inactive_is_refused_where_most_are() -> None:
    known = make_known("new-files-begin", arguments={"pattern": "SPDX"}, comply="# SPDX")
    assert select(bind(known), number=2).refused == {Gate.RARELY_ACTIVE: 1}


def test_the_same_check_twice_is_refused() -> None:
    known = load_constraints()["read-before-edit"]
    result = select(bind(known), bind(known.model_copy(update={"name": "planted"})))
    assert result.refused == {Gate.DUPLICATE_CHECK: 1}


def test_constraints_that_exclude_each_other_are_not_drawn_together() -> None:
    constraints = load_constraints()
    result = select(bind(constraints["answer-json"]), bind(constraints["closing-line"]))
    assert result.refused == {Gate.CONFLICT: 1}


def test_a_constraint_against_the_statement_is_refused() -> None:
    known = load_constraints()["keep-manifests"]
    assert select(bind(known), statement="Declare the package in setup.cfg.").refused == {Gate.STATEMENT_CONFLICT: 1}
    assert not select(bind(known), statement="Strip names.").refused


def test_a_check_that_sees_the_tools_of_one_scaffold_alone_is_refused() -> None:
    known = make_known("no-writes-by", arguments={"programs": ["cat"]})  # a shell writes files by it
    assert select(bind(known)).refused == {Gate.SCAFFOLD_DEPENDENT: 1}


JUDGED_ITEM = {
    "check": JUDGED,
    "arguments": {"question": "Is the cause named?"},
    "comply": "The cause was a blank.",
    "texts": ["Name the cause."],
}


@pytest.mark.parametrize(
    ("votes", "gate"),
    [
        (lambda text: "yes" if "The cause was" in text else "no", None),
        (lambda text: "yes", Gate.JUDGE_BLIND),
        (lambda text: "no", Gate.JUDGE_BLIND),
    ],
)
def test_a_judged_item_is_kept_where_the_model_passes_the_dutiful_and_fails_the_careless(
    votes: Callable[[str], str], gate: Gate | None
) -> None:
    def collect_votes(constraint: BoundConstraint, evidence: RolloutEvidence) -> list[str]:
        return [votes(evidence.answers[-1].text)] * N_VOTES

    setting = replace(make_setting("python"), collect_votes=collect_votes)
    known = make_known(**JUDGED_ITEM)
    result = select_constraints([bind(known)], setting, 4, statement="", tools=TOOLS)
    assert result.refused == ({gate: 1} if gate else {})


def test_a_model_that_wavers_once_is_not_relied_on() -> None:
    setting = replace(make_setting("python"), collect_votes=lambda *_: ["yes", "yes", "no"])
    result = select_constraints([bind(make_known(**JUDGED_ITEM))], setting, 4, statement="", tools=TOOLS)
    assert result.refused == {Gate.JUDGE_BLIND: 1}


def test_at_most_a_quarter_of_a_tasks_constraints_is_judged() -> None:
    assert select(bind(make_known(**JUDGED_ITEM)), number=3).refused == {Gate.TOO_MANY_JUDGED: 1}


def test_draws_are_balanced_over_families_and_sources() -> None:
    sources = [InstructionSource.SYSTEM, InstructionSource.REPOSITORY, InstructionSource.MEMORY]
    rng = random.Random(0)
    drawn = []
    for candidate in iterate_candidates(list_decided(), make_facts("python"), sources, 1, rng):
        drawn.append(candidate.bound)
        if len(drawn) == 12:
            break
    assert len({constraint.family for constraint in drawn[:6]}) >= 5
    assert {drawn.count(constraint) for constraint in drawn} == {1}
    assert all(sum(constraint.source is source for constraint in drawn) >= 2 for source in sources)

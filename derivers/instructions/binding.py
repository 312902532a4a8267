"""Constraints bound to a task: drawn, with their wording, source and turn, and with the facts of the task."""

from __future__ import annotations

import random
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass

from derivers.instructions.constraints import KnownConstraint, fill_facts, list_facts
from derivers.instructions.recipes import RecipeInput
from taskdb.records.instructions import BoundConstraint, InstructionSource

NO_TURN = "turn"
"""Fact with the number of the turn that brings a constraint."""


@dataclass(frozen=True, kw_only=True)
class DrawnConstraint:
    """A bound constraint, the known one that it was made of, and the input of its recipe."""

    bound: BoundConstraint
    known: KnownConstraint
    given: RecipeInput


@dataclass(frozen=True, kw_only=True)
class DrawOptions:
    """How many constraints, sources and turns a task has: least and greatest numbers."""

    constraints: tuple[int, int]
    sources: tuple[int, int]
    turns: tuple[int, int]


@dataclass(frozen=True, kw_only=True)
class TaskFacts:
    """Facts of the original that a draw depends on."""

    language: str
    facts: Mapping[str, str]
    base_files: frozenset[str]
    function_example: str


def draw_sources(rng: random.Random, options: DrawOptions, n_turns: int) -> list[InstructionSource]:
    """Return the sources of a task; further turns are one."""
    n_sources = rng.randint(*options.sources)
    sources = list(InstructionSource)
    rng.shuffle(sources)
    chosen = sources[:n_sources]
    if n_turns > 1 and InstructionSource.TURN not in chosen:
        chosen[-1] = InstructionSource.TURN
    return sorted(chosen, key=list(InstructionSource).index)


def iterate_candidates(
    known: Sequence[KnownConstraint],
    task: TaskFacts,
    sources: Sequence[InstructionSource],
    n_turns: int,
    rng: random.Random,
) -> Iterator[DrawnConstraint]:
    """Yield constraints in a drawn order that is balanced over families and sources.

    Those whose language or facts the task has not are left out, and so are those that no source of it can bring.
    """
    families: dict[str, list[KnownConstraint]] = {}
    for constraint in known:
        if fits_task(constraint, task, sources, n_turns):
            families.setdefault(constraint.family, []).append(constraint)
    for members in families.values():
        rng.shuffle(members)
    order = sorted(families)
    rng.shuffle(order)
    used = dict.fromkeys(sources, 0)
    while order:
        for family in list(order):
            if not families[family]:
                order.remove(family)
                continue
            constraint = families[family].pop()
            possible = [source for source in sources if source in constraint.sources]
            fewest = min(used[source] for source in possible)
            source = rng.choice([source for source in possible if used[source] == fewest])
            used[source] += 1
            yield bind_constraint(constraint, source, task, n_turns, rng)


def fits_task(
    constraint: KnownConstraint, task: TaskFacts, sources: Collection[InstructionSource], n_turns: int
) -> bool:
    """Return whether a constraint can be part of a task."""
    facts = list_facts(constraint) - {NO_TURN}
    return (
        (not constraint.languages or task.language in constraint.languages)
        and facts <= task.facts.keys()
        and not sources_disjoint(constraint, sources)
        and constraint.from_turn <= n_turns
    )


def sources_disjoint(constraint: KnownConstraint, sources: Collection[InstructionSource]) -> bool:
    """Return whether no source of a task can bring a constraint."""
    return not set(constraint.sources) & set(sources)


def bind_constraint(
    constraint: KnownConstraint, source: InstructionSource, task: TaskFacts, n_turns: int, rng: random.Random
) -> DrawnConstraint:
    """Return a constraint with a drawn wording and turn, and with the facts of the task."""
    turn = rng.randint(constraint.from_turn, n_turns) if source is InstructionSource.TURN else 1
    facts = {**task.facts, NO_TURN: str(turn)}
    arguments = {key: _convert(value) for key, value in fill_facts(constraint.arguments, facts).items()}
    bound = BoundConstraint(
        name=constraint.name,
        family=constraint.family,
        source=source,
        text=fill_facts(rng.choice(constraint.texts), facts),
        turn=turn,
        check=constraint.check,
        arguments=arguments,
    )
    given = RecipeInput(
        name=constraint.name,
        arguments=arguments,
        turn=turn,
        comply=fill_facts(constraint.comply, facts),
        breach=fill_facts(constraint.breach, facts),
        comment=facts.get("comment", ""),
        source=facts.get("file", ""),
        base_files=task.base_files,
        long_function=task.function_example,
    )
    return DrawnConstraint(bound=bound, known=constraint, given=given)


def _convert(value: object) -> object:
    """Return a number for a text of digits: facts are texts."""
    return int(value) if isinstance(value, str) and value.isdecimal() else value

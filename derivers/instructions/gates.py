"""Gates: each constraint of a task is seen to be followed and to be broken, by scripts of which nothing is run.

The dutiful script must pass every check, and a careless one for each constraint must fail exactly that, with the tools
of two scaffolds.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from enum import StrEnum

from derivers.instructions.binding import DrawnConstraint
from derivers.instructions.draft import ScriptDraft
from derivers.instructions.recipes import RECIPES
from derivers.instructions.script import SCAFFOLDS, Script, render_script
from evaluation.instructions.actions import read_actions
from evaluation.instructions.checklist import decide_by_check
from evaluation.instructions.evidence import CheckState, RolloutEvidence
from taskdb.records.instructions import JUDGED, BoundConstraint

MIN_ACTIVE_SHARE = 0.6
"""Share of a task's checks that are active for the dutiful script."""


class Gate(StrEnum):
    """Why a drawn constraint is refused."""

    CONFLICT = "conflict"
    """It excludes another of the task."""
    DUPLICATE_CHECK = "duplicate-check"
    """Another of the task has the same check with the same arguments."""
    STATEMENT_CONFLICT = "statement-conflict"
    """The statement is about a file that it protects."""
    GOLD_CANNOT_COMPLY = "gold-cannot-comply"
    """The dutiful script fails its check."""
    RARELY_ACTIVE = "rarely-active"
    """Its check would be inactive, and too many of the task's are already."""
    TOO_MANY_JUDGED = "too-many-judged"
    """A quarter of the task's would be decided by a model already."""
    JUDGE_BLIND = "judge-blind"
    """The model does not pass the dutiful conversation and fail the careless one, with each of its votes."""
    CHECK_BLIND = "check-blind"
    """The careless script passes its check, or fails another as well."""
    SCAFFOLD_DEPENDENT = "scaffold-dependent"
    """The verdicts differ with the tools."""


VoteCollector = Callable[[BoundConstraint, RolloutEvidence], Sequence[str]]
"""Returns the valid votes on a judged item, `yes` or `no`."""
N_VOTES = 3
MAX_JUDGED_SHARE = 0.25
"""Share of a task's constraints that a model may decide."""


@dataclass(frozen=True, kw_only=True)
class ScriptSetting:
    """Parts that scripts of a task are made of."""

    make_draft: Callable[[], ScriptDraft]
    """Returns a draft of the work without any constraint."""
    workdir: str
    suffixes: tuple[str, ...]
    """Of program files."""
    collect_votes: VoteCollector | None = None
    """Lets a model vote on judged items; None without a model, and then no such item is kept."""


@dataclass
class GateOutcome:
    """Constraints that passed, and the number of those that did not."""

    kept: list[DrawnConstraint] = field(default_factory=list)
    refused: Counter[str] = field(default_factory=Counter)


def make_script(
    setting: ScriptSetting, drawn: Sequence[DrawnConstraint], careless: DrawnConstraint | None = None
) -> Script:
    """Return the script that follows constraints, and breaks one of them where `careless` is given."""
    draft = setting.make_draft()
    for item in drawn:
        RECIPES[item.bound.check].comply(draft, item.given)
    if careless is not None:
        RECIPES[careless.bound.check].breach(draft, careless.given)
    return draft.make_script()


def make_evidence(setting: ScriptSetting, script: Script, scaffold: str, tools: Iterable[str]) -> RolloutEvidence:
    """Return the evidence of a script with the tools of a scaffold."""
    answers = render_script(script, scaffold, setting.workdir)
    log = read_actions(answers, workdir=setting.workdir, own_tools=tools)
    return RolloutEvidence(actions=log.actions, changes=script.changes, suffixes=setting.suffixes)


def decide_all(
    constraints: Iterable[BoundConstraint], setting: ScriptSetting, script: Script, tools: Iterable[str]
) -> list[dict[str, CheckState]]:
    """Return name of a constraint that a program decides -> state, for the tools of each scaffold."""
    listed = [constraint for constraint in constraints if constraint.check != JUDGED]
    names = list(tools)
    states = []
    for scaffold in SCAFFOLDS:
        evidence = make_evidence(setting, script, scaffold, names)
        states.append(
            {
                constraint.name: decide_by_check(constraint, evidence.since(constraint.turn, constraint.until)).state
                for constraint in listed
            }
        )
    return states


def select_constraints(
    candidates: Iterable[DrawnConstraint],
    setting: ScriptSetting,
    number: int,
    *,
    statement: str,
    tools: Sequence[str],
) -> GateOutcome:
    """Return the first constraints that pass all gates together, at most `number`.

    A further constraint is refused if it, or one that was kept before, would not pass any more.
    """
    result = GateOutcome()
    for candidate in candidates:
        if len(result.kept) == number:
            break
        gate = _find_gate(candidate, result.kept, setting, number, statement=statement, tools=tools)
        if gate is None:
            result.kept.append(candidate)
        else:
            result.refused[gate] += 1
    return result


def _find_gate(
    candidate: DrawnConstraint,
    kept: Sequence[DrawnConstraint],
    setting: ScriptSetting,
    number: int,
    *,
    statement: str,
    tools: Sequence[str],
) -> Gate | None:
    """Return the gate that refuses a constraint; None where it passes."""
    if gate := _find_clash(candidate, kept, number, statement):
        return gate
    together = [*kept, candidate]
    bound = [item.bound for item in together]
    first, second = decide_all(bound, setting, make_script(setting, together), tools)
    # Of all that are wanted, not of those so far: the first may be inactive.
    n_inactive = sum(state is CheckState.INACTIVE for state in first.values())
    if first != second:
        return Gate.SCAFFOLD_DEPENDENT
    if CheckState.FAILED in first.values():
        return Gate.GOLD_CANNOT_COMPLY
    if first.get(candidate.bound.name) is CheckState.INACTIVE and n_inactive > (1 - MIN_ACTIVE_SHARE) * number:
        return Gate.RARELY_ACTIVE
    gates = (_find_blindness(item, together, setting, tools) for item in together)
    gate = next((gate for gate in gates if gate is not None), None)
    return gate or _find_judge_blindness(together, setting, tools)


def _find_clash(
    candidate: DrawnConstraint, kept: Sequence[DrawnConstraint], number: int, statement: str
) -> Gate | None:
    """Return the gate for a constraint that does not go together with others, or with the statement."""
    n_judged = sum(item.bound.check == JUDGED for item in kept)
    if candidate.bound.check == JUDGED and n_judged + 1 > MAX_JUDGED_SHARE * number:
        return Gate.TOO_MANY_JUDGED
    if any(candidate.known.conflicts_with(other.known) for other in kept):
        return Gate.CONFLICT
    if any(is_same_check(candidate.bound, other.bound) for other in kept):
        return Gate.DUPLICATE_CHECK
    return Gate.STATEMENT_CONFLICT if is_asked_for(candidate.bound, statement) else None


def _find_blindness(
    careless: DrawnConstraint, together: Sequence[DrawnConstraint], setting: ScriptSetting, tools: Sequence[str]
) -> Gate | None:
    """Return the gate for a constraint whose breach is not seen as its own alone."""
    try:
        script = make_script(setting, together, careless=careless)
    except (KeyError, IndexError, ValueError):
        return Gate.CHECK_BLIND  # the work has nothing that can be changed so that it breaks
    first, second = decide_all([item.bound for item in together], setting, script, tools)
    if first != second:
        return Gate.SCAFFOLD_DEPENDENT
    failing = [name for name, state in first.items() if state is CheckState.FAILED]
    expected = [] if careless.bound.check == JUDGED else [careless.bound.name]
    return None if failing == expected else Gate.CHECK_BLIND


def _find_judge_blindness(
    together: Sequence[DrawnConstraint], setting: ScriptSetting, tools: Sequence[str]
) -> Gate | None:
    """Return the gate for the newest constraint where a model is to decide it, and its votes are not as they must be.

    Earlier items are not voted on again: a further constraint seldom changes the words that they are about.
    """
    candidate = together[-1]
    if candidate.bound.check != JUDGED:
        return None
    if setting.collect_votes is None:
        return Gate.JUDGE_BLIND
    for careless, vote in ((None, "yes"), (candidate, "no")):
        evidence = make_evidence(setting, make_script(setting, together, careless=careless), SCAFFOLDS[0], tools)
        if list(setting.collect_votes(candidate.bound, evidence)) != [vote] * N_VOTES:
            return Gate.JUDGE_BLIND
    return None


def is_same_check(constraint: BoundConstraint, other: BoundConstraint) -> bool:
    """Return whether two constraints are decided alike."""
    return (constraint.check, constraint.arguments) == (other.check, other.arguments)


def is_asked_for(constraint: BoundConstraint, statement: str) -> bool:
    """Return whether a statement names a file that a constraint protects, so that the change may need it."""
    if constraint.check not in {"files-untouched", "new-files-never"}:
        return False
    names = [str(glob).replace("*", "").strip("/.") for glob in constraint.arguments.get("globs", ())]
    return any(len(name) > 2 and name.lower() in statement.lower() for name in names)

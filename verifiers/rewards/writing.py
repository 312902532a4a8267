"""What submitted tests are worth: they notice the fault, hold once it is mended, and notice other faults there, too.

The value is 0 unless all of these hold; reading `_gates` is reading them:

- the patch applies and touches tests alone, no configuration of the runner and no source;
- at least one test ran and failed before the fix, in both runs, and passes after it; a file that cannot be collected
  before the fix shows nothing;
- all new tests pass after the fix, in both runs, and no PASS_TO_PASS test of the files is lost;
- no test fails on a rewrite of the fixed tree that keeps its behaviour;
- the fault is noticed, too, where it is written in other words: tests look at behaviour, not at text, git or dates;
- at least one mutant is noticed that is more than a part of the fix left out, where there are any.

Then it is the mean of 1 (for the fault), the share of mutants noticed, and the share of `oracle.unreached` that the
submitted files run, where that can be told. `resolved`: the value is 1, so all that the change's own tests notice and
reach is noticed and reached. Only the new tests and those that notice the fault count, not what stands beside them.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

from backends.services import Services
from backends.testing.coverage import Covered
from backends.testing.submitted import Submitted, fault_of, read_submission
from backends.testing.written import FAULT, LEFT_OUT, NotScoredError, Seen, Subject, Trial, alarmed, noticed
from taskdb.oracles import Edit, Span, Writing
from taskdb.records import Score, Task


def grade(task: Task, services: Services, submission: bytes) -> Score:
    """The score of a patch of tests; empty is the no-op.

    `parts`: `detects` and `holds` (0 or 1); where these are 1 `false_alarms` and `faults_missed` (how many) as well;
    where these are 0 `mutants_killed` and, if it can be told, `covered` (shares).

    Raises:
        Transient: engine, disk or network failed.
    """
    oracle = task.oracle
    if oracle is None or oracle.form != "test-writing":
        raise LookupError(f"{task.name} asks for no tests")
    try:
        return _Grading(task=task, services=services, oracle=oracle, submission=submission).score()
    except NotScoredError as error:
        return Score(
            task=task.name, value=None, resolved=False, f2p_rate=0.0, p2p_rate=0.0, infrastructure_error=str(error)
        )


def gold(task: Task, services: Services) -> bytes:
    """The submission that must be worth 1: the change's own tests."""
    return services.artifacts.get(task.test_patch)


def subject_of(task: Task, services: Services) -> Subject:
    """What the tests of a task are written for."""
    kept = frozenset(task.PASS_TO_PASS)
    return Subject(
        services=services, image=task.image, plan=task.the_plan, language=task.language,
        gold=services.artifacts.get(task.gold_patch), kept=kept,
        known=kept | {test for test, _ in task.FAIL_TO_PASS}, script=services.artifacts.text(task.the_script),
    )  # fmt: skip


@dataclass(kw_only=True)
class _Grading:
    """One submission as it is judged, gate by gate."""

    task: Task
    services: Services
    oracle: Writing
    submission: bytes
    parts: dict[str, float] = field(default_factory=dict)

    def score(self) -> Score:
        submitted = self._read()
        if isinstance(submitted, str):
            return self._nothing(submitted)
        if fault := fault_of(submitted.files):
            return self._nothing(fault, tampering=(fault,) if submitted.files else ())
        trial = Trial(subject=subject_of(self.task, self.services), submitted=submitted)
        found = trial.observe()
        self.parts = {"detects": float(bool(found.detecting)), "holds": float(found.holds)}
        why_not = _unfit(found) or self._gates(trial, found)
        if why_not:
            return self._nothing(why_not, tampering=(*found.tampering, *_lost(found)))
        return self._valued(trial, found)

    def _read(self) -> Submitted | str:
        """The submission, or why it cannot be read."""
        if not self.submission.strip():
            return "the patch is empty"
        with self.services.sandbox.series(self.task.image, limits=self.services.test_limits()) as boxes:
            found = read_submission(boxes, self.task.the_plan.workdir, self.submission)
        return found or "the patch does not apply"

    def _gates(self, trial: Trial, found: Seen) -> str | None:
        """Why tests that detect and hold are worth nothing all the same."""
        faults = [edit for edit in self.oracle.mutants if edit.operator == FAULT]
        edits = [*self.oracle.variants, *faults]
        results = trial.after([self._patch(edit) for edit in edits]) if edits else []
        told = list(zip(edits, results, strict=True))
        alarms = [(edit, test) for edit, one in told if edit not in faults and (test := alarmed(one, found.own))]
        missed = [edit for edit, one in told if edit in faults and not noticed(one, found.own)]
        self.parts |= {"false_alarms": float(len(alarms)), "faults_missed": float(len(missed))}
        if alarms:
            edit, test = alarms[0]
            return f"false alarm: {test} fails where the behaviour is the same ({edit.operator}, {edit.path})"
        return "the fault goes unnoticed where it is written in other words" if missed else None

    def _valued(self, trial: Trial, found: Seen) -> Score:
        """The score of tests that passed all gates but the last."""
        mutants = [edit for edit in self.oracle.mutants if edit.operator != FAULT]
        wanted = self.oracle.unreached
        results = trial.after([self._patch(edit) for edit in mutants], hurried=True)
        killed = [edit for edit, one in zip(mutants, results, strict=True) if noticed(one, found.own)]
        if mutants:
            self.parts["mutants_killed"] = len(killed) / len(mutants)
        if (others := _others(mutants)) and not _others(killed):
            return self._nothing(f"none of {len(others)} mutants of the fix is noticed")
        reached = trial.after([b""], collect_lines=True)[0].covered if wanted else None
        if reached is not None:
            self.parts["covered"] = share(wanted, reached)
        shares = [1.0, *(self.parts[name] for name in ("mutants_killed", "covered") if name in self.parts)]
        value = sum(shares) / len(shares)
        return Score(
            task=self.task.name, value=value, resolved=value == 1.0, f2p_rate=1.0, p2p_rate=1.0, parts=self.parts,
            explanation=self._explanation(found, mutants, killed),
        )  # fmt: skip

    def _explanation(self, found: Seen, mutants: Sequence[Edit], killed: Sequence[Edit]) -> str:
        text = f"{len(found.detecting)} tests notice the fault, {len(killed)} of {len(mutants)} mutants are noticed"
        left = next((edit for edit in mutants if edit not in killed), None)
        return f"{text}; not {left.detail} ({left.path}:{left.line})" if left else text

    def _nothing(self, why: str, tampering: tuple[str, ...] = ()) -> Score:
        return Score(
            task=self.task.name, value=0.0, resolved=False, f2p_rate=self.parts.get("detects", 0.0),
            p2p_rate=self.parts.get("holds", 0.0), tampering=tampering, explanation=why, parts=self.parts,
        )  # fmt: skip

    def _patch(self, edit: Edit) -> bytes:
        return self.services.artifacts.get(edit.patch)


def _others(mutants: Sequence[Edit]) -> list[Edit]:
    """Those that are no part of the fault as it stood."""
    return [edit for edit in mutants if edit.operator != LEFT_OUT]


def share(wanted: Sequence[Span], reached: Covered) -> float:
    """Share of the lines of spans that were run, 0..1; 1 when there are none."""
    lines = {(span.path, line) for span in wanted for line in range(span.first_line, span.last_line + 1)}
    return sum(line in reached.get(path, ()) for path, line in lines) / len(lines) if lines else 1.0


def _unfit(found: Seen) -> str | None:
    """Why the tests show nothing, by what they came to before and after the fix."""
    if found.tampering:
        return found.tampering[0]
    if found.lost:
        return f"{found.lost[0]} is gone or fails, and passed before"
    if found.broken:
        return f"after the fix this does not hold: {found.broken[0]}"
    return None if found.detecting else "no test fails before the fix and passes after it"


def _lost(found: Seen) -> tuple[str, ...]:
    return (f"{len(found.lost)} existing tests are gone or fail",) if found.lost else ()

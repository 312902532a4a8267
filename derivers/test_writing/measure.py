"""What submitted tests will be held against, found out by trying the change's own tests.

They are tried, two boxes at a time, on the fixed tree with something wrong (mutants: kept when they notice), written
otherwise (variants: kept when they and all PASS_TO_PASS tests pass), and with the fault back in other words (kept when
the same tests fail as before the fix). The constants bound how much is run: at most 2 * 2 + 1 runs before anything is
tried, then TRIED_MUTANTS + TRIED_FAULTS + TRIED_VARIANTS, those that last once more with all tests, and two for lines.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from enum import StrEnum
from functools import cached_property

from backends.git import Repository
from backends.index import ScratchIndex
from backends.services import Services
from backends.testing.coverage import Covered
from backends.testing.submitted import Submitted, fault_of, read_submission
from backends.testing.written import Seen, Subject, Trial, alarmed, failed_in
from derivers.base import Refusal
from derivers.test_writing import edits
from derivers.test_writing.edits import Draft, Fixed
from taskdb.lineage import Lineage
from taskdb.oracles import Edit, Span, Writing

MAX_MUTANTS, TRIED_MUTANTS = 8, 14
MAX_VARIANTS, TRIED_VARIANTS = 3, 4
MAX_FAULTS, TRIED_FAULTS = 1, 2
"""How many edits of a sort a task keeps, and how many are tried for it."""
WHOLE_SECONDS = 60.0
"""Where a run of all of the task's tests takes longer, the change's own tests alone decide on variants, and which lines
the others run is not asked."""


class Reason(StrEnum):
    """Why a verified change gives no task of this kind."""

    NO_BEHAVIOURAL_FAILURE = "no-behavioural-failure"
    NOT_ONLY_TESTS = "not-only-tests"
    """Its tests need more than tests: configuration of the runner, links, or they do not apply alone."""
    TESTS_DO_NOT_HOLD = "tests-do-not-hold"
    """The files of the change's tests, run alone, do not notice the fault or do not pass after the fix."""
    NO_MUTANT = "no-mutant"
    """Nothing on the lines of the fix can be made wrong by the rules there are."""
    NO_MUTANT_NOTICED = "no-mutant-noticed"


@dataclass(kw_only=True)
class Measure:
    """One change's measure, made step by step. The methods raise `Transient` and `NotScoredError` as a trial does."""

    lineage: Lineage
    services: Services

    def oracle(self) -> Writing | Refusal:
        """The measure, or why there is none."""
        submitted = self._own_tests()
        if isinstance(submitted, Refusal):
            return submitted
        drafts = edits.wrong(self._files, TRIED_MUTANTS)
        if not drafts:
            return Refusal(Reason.NO_MUTANT, "nothing on the lines of the fix can be made wrong by the rules there are")
        trial = Trial(subject=self._subject, submitted=submitted)
        found = trial.observe()
        if not found.detecting or not found.holds or found.tampering:
            return Refusal(Reason.TESTS_DO_NOT_HOLD, _why(found))
        results = trial.after([draft.patch for draft in drafts], hurried=True)
        mutants = [draft for draft, one in zip(drafts, results, strict=True) if failed_in(one, found.own)][:MAX_MUTANTS]
        if not mutants:
            return Refusal(Reason.NO_MUTANT_NOTICED, f"the change's own tests pass with each of {len(drafts)} mutants")
        faults, variants = self._faults(trial, found), self._variants(trial, found)
        lines = edits.spans(self._files)
        covered, unreached = self._coverage(trial, lines)
        return Writing(
            mutants=tuple(self._kept(draft) for draft in [*faults, *mutants]),
            variants=tuple(self._kept(draft) for draft in variants),
            lines=tuple(lines), covered=covered, unreached=tuple(unreached),
        )  # fmt: skip

    @cached_property
    def _tree(self) -> Repository:
        candidate = self.lineage.candidate
        return self.services.clones.open(candidate.source, candidate.repo)

    @cached_property
    def _longest(self) -> float:
        """Seconds of the longest run of all the task's tests."""
        return max((run.test_seconds for run in self.lineage.the_verification.runs), default=0.0)

    @cached_property
    def _subject(self) -> Subject:
        environment, verification = self.lineage.the_environment, self.lineage.the_verification
        artifacts = self.services.artifacts
        kept = frozenset(verification.PASS_TO_PASS)
        return Subject(
            services=self.services, image=environment.image, plan=environment.plan,
            language=self.lineage.candidate.language, gold=artifacts.get(self.lineage.candidate.gold_patch),
            kept=kept, known=kept | {test for test, _ in verification.FAIL_TO_PASS},
            script=artifacts.text(verification.eval_script),
        )  # fmt: skip

    @cached_property
    def _files(self) -> list[Fixed]:
        candidate = self.lineage.candidate
        with ScratchIndex(self._tree, candidate.base_commit) as index:
            return edits.fixed_files(index, candidate.gold_files, self._subject.gold)

    def _own_tests(self) -> Submitted | Refusal:
        """The change's tests, read as any submission is."""
        patch = self.services.artifacts.get(self.lineage.candidate.test_patch)
        environment = self.lineage.the_environment
        with self.services.sandbox.series(environment.image, limits=self.services.test_limits()) as boxes:
            submitted = read_submission(boxes, environment.plan.workdir, patch)
        if submitted is None:
            return Refusal(Reason.NOT_ONLY_TESTS, "the test patch does not apply alone")
        detail = fault_of(submitted.files)
        return Refusal(Reason.NOT_ONLY_TESTS, detail) if detail else submitted

    # -------------------------------------------------------------------------------------- what is kept of edits

    def _faults(self, trial: Trial, found: Seen) -> list[Draft]:
        """The fault in other words, where the tests see it as they saw the fault."""
        drafts = edits.fault_again(self._files, TRIED_FAULTS)
        results = trial.after([draft.patch for draft in drafts])
        seen = [
            draft for draft, one in zip(drafts, results, strict=True)
            if all(failed_in(one, [test]) for test in found.detecting)
            and alarmed(one, found.own - found.detecting) is None
        ]  # fmt: skip
        return self._behaving(trial, seen[:MAX_FAULTS])

    def _variants(self, trial: Trial, found: Seen) -> list[Draft]:
        """The fixed tree written otherwise, where no test sees a difference."""
        drafts = edits.otherwise(self._files, TRIED_VARIANTS)
        results = trial.after([draft.patch for draft in drafts])
        quiet = [draft for draft, one in zip(drafts, results, strict=True) if alarmed(one, found.own) is None]
        return self._behaving(trial, quiet[:MAX_VARIANTS])

    def _behaving(self, trial: Trial, drafts: Sequence[Draft]) -> list[Draft]:
        """Those under which all PASS_TO_PASS tests pass."""
        if self._longest > WHOLE_SECONDS or not drafts:
            return list(drafts)
        results = trial.whole([draft.patch for draft in drafts])
        return [draft for draft, one in zip(drafts, results, strict=True) if alarmed(one, self._subject.kept) is None]

    def _kept(self, draft: Draft) -> Edit:
        return Edit(
            operator=draft.operator, path=draft.path, line=draft.line, detail=draft.detail,
            patch=self.services.artifacts.put(draft.patch),
        )  # fmt: skip

    # ----------------------------------------------------------------------------------------------------- lines

    def _coverage(self, trial: Trial, lines: Sequence[Span]) -> tuple[float | None, list[Span]]:
        """Share of the lines that the base tree's tests run, and those that only the change's tests do."""
        if self._longest > WHOLE_SECONDS:
            return None, []
        own = trial.after([b""], collect_lines=True)[0].covered
        base = self._covered_before(trial) if own is not None else None
        if own is None or base is None:
            return None, []
        all_lines = [(one.path, line) for one in lines for line in range(one.first_line, one.last_line + 1)]
        before = [at for at in all_lines if at[1] in base.get(at[0], ())]
        gained = [at for at in all_lines if at not in before and at[1] in own.get(at[0], ())]
        reached = len(before) + len(gained)
        return (len(before) / reached if reached else None), _joined(gained)

    def _covered_before(self, trial: Trial) -> Covered | None:
        """Lines that the tests of the base tree run after the fix; of those the task runs."""
        wanted = self.lineage.the_verification.eval_files
        present = {entry.path for entry in self._tree.ls_tree(self.lineage.candidate.base_commit)} if wanted else set()
        files = [file for file in wanted if file in present]
        return trial.unpatched(files, seconds=self._longest).covered if files or not wanted else {}


def _joined(lines: Sequence[tuple[str, int]]) -> list[Span]:
    """Lines as spans, as few as there can be; they come in order."""
    found: list[Span] = []
    for path, line in lines:
        last = found[-1] if found else None
        if last and last.path == path and last.last_line + 1 == line:
            found[-1] = last.model_copy(update={"last_line": line})
        else:
            found.append(Span(path=path, first_line=line, last_line=line))
    return found


def _why(found: Seen) -> str:
    if found.tampering:
        return found.tampering[0]
    wrong = [*found.broken, *found.lost]
    return f"{wrong[0]} does not pass after the fix" if wrong else "no test of theirs fails before the fix"

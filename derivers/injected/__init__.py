"""Injected bugs: something wrong is put into code that passing tests run, and is to be found by what fails then.

The agent's tree is the base commit's with the bug, and without the test files that show it; these are the hidden tests.
Kept is what tests notice while most of them still pass, alike in every run.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import islice

from backends.git import GitError, Repository
from backends.services import Services
from backends.testing.coverage import Covered
from derivers.base import Refusal, task_of
from derivers.injected import places, telling
from derivers.injected.asking import Asking
from derivers.injected.patches import patches
from derivers.injected.proof import Proof, prove
from derivers.injected.search import Noticed, Reason, Search, hideable_files, hurried
from derivers.mutation import Change, spread
from taskdb.lineage import Lineage
from taskdb.records import Kind, Task

__all__ = ["Reason", "injected"]

RUNS = 20
"""Runs of the tests that one change costs at most, roughly: the whole suite runs where the budget allows so many."""
POOL = 40
"""Bugs in store, of which those are tried that find their turn."""


def injected(lineage: Lineage, services: Services) -> list[Task] | Refusal:
    """Tasks of bugs put into the base tree of a verified change, `injected_per_change` of `injected_bugs` each.

    Raises:
        Transient: engine, disk or network failed.
    """
    candidate, environment = lineage.candidate, lineage.the_environment
    history = services.clones.open(candidate.source, candidate.repo)
    known = hideable_files(entry.path for entry in history.ls_tree(candidate.base_commit))
    with services.sandbox.series(environment.image, limits=services.test_limits()) as boxes:
        search = Search(
            lineage=lineage, services=services, boxes=boxes, files=_files(lineage, services, known), test_files=known
        )
        passing = search.begin()
    if search.first is None or len(passing) < 2:
        return Refusal(Reason.NO_PASSING_TESTS, f"{len(passing)} tests pass at the base commit, two are needed")
    contents = places.files(candidate, history, search.first.covered, passing)
    asking = Asking.begin(services)
    pool = _pool(lineage, asking, contents, search.first.covered)
    if not pool:
        return Refusal(Reason.NO_MUTABLE_CODE, f"no rule applies to what the tests run in {len(contents)} files")
    limits = replace(services.test_limits(), seconds=hurried(search, search.first.test_seconds))
    with services.sandbox.series(environment.image, limits=limits) as boxes:
        search.boxes = boxes
        noticed = search.noticed(pool, contents.__getitem__, passing)
        tasks = _Maker(search=search, history=history, asking=asking).tasks(noticed)
    return tasks or Refusal(*search.why_not())


def _files(lineage: Lineage, services: Services, known: frozenset[str]) -> tuple[str, ...]:
    """Test files to run: none, which is all, where there is time for it; else those of the verification."""
    seconds, settings = lineage.the_environment.test_seconds, services.settings
    if seconds * RUNS <= settings.budget_seconds and seconds <= settings.test_timeout / 2:
        return ()
    chosen = lineage.the_verification.eval_files or lineage.candidate.test_files
    return tuple(sorted(known & set(chosen)))


def _pool(
    lineage: Lineage, asking: Asking | None, contents: Mapping[str, bytes], covered: Covered | None
) -> list[Change]:
    """A model's bugs in the best file, where one takes part, and those of the rules."""
    best = next(iter(contents), None)
    written: list[Change] = []
    if asking is not None and best is not None:
        written = asking.bugs(best, contents[best], places.lines(lineage.candidate, best, contents[best], covered))
    return [*written, *spread(places.bugs(lineage.candidate, contents, covered), POOL)]


@dataclass(frozen=True, kw_only=True)
class _Maker:
    """Makes tasks of bugs that were noticed."""

    search: Search
    history: Repository
    asking: Asking | None

    def tasks(self, noticed: Iterator[Noticed]) -> list[Task]:
        """As many as are wanted, where there are so many."""
        settings = self.search.services.settings
        made: list[Task] = []
        while len(made) < settings.injected_per_change:
            bugs = list(islice(noticed, settings.injected_bugs))
            if len(bugs) < settings.injected_bugs:
                break
            task = self._task(bugs, len(made) + 1)
            if isinstance(task, Reason):
                self.search.tally[task] += 1
            else:
                made.append(task)
        return made

    def _task(self, bugs: Sequence[Noticed], number: int) -> Task | Reason:
        """The task of bugs that were each noticed; or why they are none together."""
        lineage, services = self.search.lineage, self.search.services
        hidden = sorted({test.partition("::")[0] for bug in bugs for test in bug.failing})
        try:
            given = patches(self.history, lineage.candidate.base_commit, [bug.patch for bug in bugs], hidden)
        except GitError:
            return Reason.BUGS_DO_NOT_COMBINE
        proof = prove(lineage, services, given, hidden, self.search.files)
        if isinstance(proof, Reason):
            return proof
        failing = {test for test, _ in proof.lists.fail_to_pass}
        if any(not failing & set(bug.failing) for bug in bugs):
            return Reason.BUGS_DO_NOT_COMBINE
        if not {test.partition("::")[0] for test in failing} <= set(hidden):
            return Reason.NOT_STABLE
        text = self._statement(proof, bugs, given.gold)
        if text is None:
            return Reason.STATEMENT_LEAKS
        put = services.artifacts.put
        return task_of(
            lineage, Kind.INJECTED, number, problem_statement=text, hints="", setup_patch=put(given.setup),
            gold_patch=put(given.gold), test_patch=put(given.tests),
            twin_patch=put(proof.twins.patch) if proof.twins.confirmed else None, twins=proof.twins.confirmed,
            FAIL_TO_PASS=proof.lists.fail_to_pass, PASS_TO_PASS=proof.lists.pass_to_pass,
            eval_script=services.artifacts.put_text(proof.script), image=proof.image.name,
            image_digest=proof.image.digest, test_seconds=proof.test_seconds, published=None,
        )  # fmt: skip

    def _statement(self, proof: Proof, bugs: Sequence[Noticed], gold: bytes) -> str | None:
        candidate = self.search.lineage.candidate
        tests = [test for test, _ in proof.lists.fail_to_pass]
        told = telling.failures(tests, proof.wrong.report, lambda path: self.history.read(candidate.base_commit, path))
        told = telling.best_first(told, [bug.failing for bug in bugs])
        if self.asking is not None:
            text = self.asking.statement(candidate.repo, told, bugs=len(bugs), gold=gold)
            if text is not None:
                return text
        return telling.statement(candidate.repo, candidate.language, told, bugs=len(bugs), gold=gold)

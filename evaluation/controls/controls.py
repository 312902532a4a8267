"""Making and confirming controls: the gold patch must fail each other value of a test, and pass the true one.

A first run holds every other value of every test as an instance of the test, next to the true one. It shows which of
them gold fails by an assertion. A second run is drawn as a grading is, and gold must pass it; where the first run has
shown each of its outcomes and a certificate grades gold anyway, it is left out. Tests of which no
instances can stand side by side are confirmed a form at a time (`evaluation.controls.single`).
"""

from __future__ import annotations

import json
import logging
import secrets
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cache, cached_property
from itertools import islice
from random import Random
from typing import Any

from backends.git import GitError, GitRepository, list_patch_paths
from backends.index import ScratchIndex
from evaluation.controls import NO_CONTROLS
from evaluation.controls.blocks import TestBlock, TestFile, drop_plan, find_blocks
from evaluation.controls.calls import SilentHelpers
from evaluation.controls.features import TreeCounts, add_sums, count_tree
from evaluation.controls.memory import ControlMemory
from evaluation.controls.odds import select_menus, sort_by_odds
from evaluation.controls.planning import (
    BOUND,
    GRADING_SECONDS,
    INSTANCE_SECONDS,
    MAX_EVALUATIONS,
    MAX_MENUS,
    MAX_READER_EVALUATIONS,
    MAX_VALUES,
    MIN_INSTANCES,
    OTHER_INSTANCES,
    GradingPlan,
    compute_cost,
    count_values,
    make_menus,
    make_other_menus,
    rank_plans,
    shorten_menus,
)
from evaluation.controls.single import SingleTest, confirm_single_tests, list_seen_failures
from evaluation.controls.sites import Site
from evaluation.controls.trials import (
    TrialPlan,
    TrialResult,
    TriedBlock,
    TriedInstance,
    ValueTrial,
    read_true,
)
from evaluation.reports.outcomes import EvaluationReport, OutcomeStatus
from evaluation.runner.evaluator import EvaluationRun, Evaluator
from evaluation.runner.time_limit import limit_repeat
from guest.controls import blind
from guest.controls.texts import DRAWN_WORD, WORD_LENGTH, Edit, apply_edits, rename_test
from languages.paths import is_protected
from taskdb.artifacts import Artifacts
from taskdb.records import RunVariant, TestId

log = logging.getLogger(__name__)

MAX_OTHER_BLOCKS = 8
"""Tests outside of FAIL_TO_PASS that stand several times as well, a sample."""
MAX_OTHER_SECONDS = 0.1
"""Duration of a test up to which it is in this sample, as it stands several times in each evaluation."""
MAX_BLOCKS = 400
MAX_FEW_BLOCKS = 70
"""Tests that are tried where they stand once."""
MORE_INSTANCES = (1.0, 1.2, 1.5, 2.0, 4.0, 8.0)
"""Multiples of the planned instances of a test that are tried, as long as they cost less than further evaluations."""
SURPLUS = 1.25
"""Multiple of the most instances of a test up to which there may be more of them: they cost less than another
evaluation, and readers are often right a little more often than by chance."""
ROUNDING = 1 + 1e-9
MAX_TRIALS = 800
"""Instances that are tried at most, of all tests together where each has LEAST_TRIALS."""
LEAST_TRIALS = 40
MAX_SHARED_TRIALS = 2400
"""Instances of a run that tries values for further tasks as well."""
TRIAL_SECONDS = 120.0
"""Time that the instances of the first run may take, by the seconds of the tests."""
SPARING_SHARE = 0.25
"""Share of the seconds of all tests that the values of a test may take; of one that takes longer fewer are tried.

Of SPARING_TESTS the values of all may take as much."""
SPARING_SECONDS = 0.5
"""The same in seconds, where all tests take few."""
SPARING_TESTS = 8
"""Tests to control with which the bound is reached though readers are right about each more often than once in three:
each of them needs few values."""


@dataclass(frozen=True, kw_only=True)
class BlindControls:
    """Confirmed controls of a task; `document` is None where there are none (see `guest.controls.blind`)."""

    document: dict[str, Any] | None = None
    required: frozenset[TestId] = frozenset()
    """Tests to control."""
    runs: tuple[EvaluationRun, ...] = ()

    @property
    def confirmed(self) -> list[TestId]:
        """Tests to control that are controlled, sorted."""
        blocks = self.document["blocks"] if self.document else ()
        return sorted(self.required & {test for block in blocks for test in blind.list_controlled_tests(block)})

    def make_fields(self, artifacts: Artifacts) -> dict[str, Any]:
        """Return the fields of a verification or task that describe its controls; the document is stored."""
        if self.document is None:
            return dict(NO_CONTROLS)
        content = json.dumps(self.document, sort_keys=True).encode()
        return {
            **NO_CONTROLS,
            "blind_controls": artifacts.put(content),
            "control_bound": blind.compute_bound(self.document),
            "worst_block_bound": blind.compute_worst_bound(self.document, self.required),
            "evaluations": self.document["evaluations"],
            "controls": tuple(self.confirmed),
        }


@dataclass(kw_only=True)
class _Candidate:
    """A block with the values that gold was seen to fail."""

    tried: TriedBlock
    is_likely: bool
    """Whether its name occurs in a test to control."""
    seconds: float = 0.0
    n_cases: int = 1
    """Tests of the gold report that have its name, each of which runs in every instance."""
    tests: tuple[TestId, ...] = ()
    """Listed tests of the block; none before instances of it were seen to stand side by side."""
    values: dict[Site, list[dict[str, Any]]] = field(default_factory=dict)
    """Site -> values that gold fails, as a document has them."""
    is_required: bool = False

    @property
    def file(self) -> TestFile:
        """File of the block."""
        return self.tried.file

    @property
    def block(self) -> TestBlock:
        """The block."""
        return self.tried.block

    @property
    def cost(self) -> float:
        """Seconds of an instance."""
        return self.seconds + self.tried.compile_seconds

    def has_lost_instances(self, trials: Sequence[ValueTrial]) -> bool:
        """Return whether no instance of these trials left a result, in a language in which a crash ends the process."""
        results = [self.tried.results[trial.key] for trial in trials if trial.key in self.tried.results]
        is_absent = bool(results) and not any(r.true.outcomes or r.instance.outcomes for r in results)
        return is_absent and bool(self.file.sites.crash_guard[0])

    def describe(self, tree: TreeCounts) -> dict[str, Any]:
        """Return the block of a document, without menus. `tree`: counts of the agent's tree."""
        is_blind = any(not site.is_known for site in self.values)
        sites = [site for site in self.values if site.is_known != is_blind]
        # A value equal to everything passes an inverted assertion as an honest solution does.
        if strict := [site for site in sites if not site.is_inverted]:
            sites = strict
        return {
            "file": self.file.path,
            "span": [self.block.start, self.block.end],
            "name": list(self.block.name_span) if self.block.name_span else None,
            "blind": is_blind,
            "required": self.is_required,
            "tests": list(self.tests),
            "sites": sort_by_odds([part for site in sites for part in self._split_swaps(site, sites, tree)]),
        }

    def _split_swaps(self, site: Site, sites: Sequence[Site], tree: TreeCounts) -> Iterator[dict[str, Any]]:
        """Yield a site as it may be used alone, and as it may be combined with others.

        Two members of a set that take each other's place make the same set.
        """
        described = self._describe_site(site, tree)
        groups = {group for _, group in site.groups}
        members = {
            other.literal
            for other in sites
            if other.literal != site.literal and not groups.isdisjoint(group for _, group in other.groups)
        }
        values = [value for value in described["values"] if site.write(value["text"]) not in members]
        if len(values) < len(described["values"]):
            yield {**described, "is_alone": True}
        if values:
            yield {**described, "values": values}

    def _describe_site(self, site: Site, tree: TreeCounts) -> dict[str, Any]:
        surroundings, true = self.tried.read_surroundings(site, tree), read_true(self.file, site)
        texts = [true, *(value["text"] for value in self.values[site])]
        own, *others = add_sums([[*surroundings.describe(text), site.shows(text)] for text in texts])
        return {
            "features": own,
            "is_natural": site.is_natural(true),
            "spans": [list(span) for span in site.spans],
            "places": self.tried.find_places(site),
            "literal": site.literal_start,
            "inverts": site.is_inverted,
            "is_input": site.is_input,
            "is_alone": False,
            "values": [
                {**value, "features": features} for value, features in zip(self.values[site], others, strict=True)
            ],
        }


@dataclass(kw_only=True)
class ControlBuilder:
    """Makes the controls of a task.

    Args:
        evaluator: its image holds the tree of the base commit.
        gold_patch: the patch with which all listed tests pass.
        required: tests to control, FAIL_TO_PASS as a rule.
        others: further listed tests, of which a sample is controlled as well.
        test_files: path -> content of the tests' files in every evaluation.
        old_files: path -> content of those that the agent's tree contains.
        random: random of the sample of other tests, and of the draws by which menus are compared.
        seconds: duration of a run of all tests.
        report: report of a run with the gold patch, for the seconds of each test.
        tree: tokens and trigrams of the agent's tree, with their numbers.
        memory: values and results of tasks with the same tree of the gold patch; of this task alone by default.
        foreseen: tests that fail in further tasks of the memory, whose values are tried in the same runs.
        grades_gold: whether gold is graded in a last run even where the run of all values has shown its outcomes.
    """

    evaluator: Evaluator
    gold_patch: bytes
    required: frozenset[TestId]
    others: frozenset[TestId]
    test_files: Mapping[str, bytes]
    old_files: Mapping[str, bytes]
    random: Random
    seconds: float = 0.0
    report: EvaluationReport | None = None
    tree: TreeCounts = field(default_factory=TreeCounts)
    memory: ControlMemory | None = None
    foreseen: Collection[frozenset[TestId]] = ()
    grades_gold: bool = True
    runs: list[EvaluationRun] = field(default_factory=list)

    def __post_init__(self) -> None:
        own = ControlMemory(seed=str(self.random.getrandbits(64)), read_tree=lambda _: self.tree)
        self._memory = self.memory or own
        self._candidates: list[_Candidate] = []
        # Of its own, so that controls do not depend on how many trials an earlier task has saved.
        self._names = Random(self.random.getrandbits(64))  # noqa: S311 - nobody sees an instance of these runs

    def build(self) -> BlindControls:
        """Return controls whose other values the gold patch was seen to fail, and that it passes as a grading."""
        self._candidates = candidates = self._select_candidates()
        self._confirm_values([candidate for candidate in candidates if candidate.tried.can_repeat])
        repeated = [candidate for candidate in candidates if candidate.values]
        document, broken = self._try_repeated(candidates, repeated)
        for drop in (_drop_broken_tests, _drop_broken_files):
            if broken:
                repeated = drop(repeated, broken)
                document, broken = self._try_repeated(candidates, repeated)
        if broken is not None:
            singles = self._confirm_single(candidates, set())
            document, broken = self._try((), singles)
            if broken and document is not None:
                document, broken = self._try((), [s for s in singles if not broken & blind.list_block_tests(s)])
        return BlindControls(
            document=document if broken is None else None, required=self.required, runs=tuple(self.runs)
        )

    # ---------------------------------------------------------------------------------------------------- candidates

    def _select_candidates(self) -> list[_Candidate]:
        """Return the tests of the files that required tests may be, and a sample of the others."""
        likely: list[_Candidate] = []
        others: list[tuple[TestFile, TestBlock, frozenset[bytes], list[float]]] = []
        for path, file in self._files.items():
            old_lines = frozenset(line.strip() for line in self.old_files.get(path, b"").splitlines())
            is_own = path in self._required_files
            # A file without tests of its own may define tests that classes in other files inherit.
            ids = [test.partition("::") for test in self.required]
            names = [name for file_path, _, name in ids if not is_own or file_path == path]
            for block in find_blocks(file):
                name = file.source[slice(*block.name_span)].decode() if block.name_span else ""
                is_likely = any(name in test for test in names) and (is_own or bool(name))
                if not (is_own or is_likely):
                    continue
                seconds = self._list_seconds(path if is_own else "", name)
                if not is_likely:
                    # Of a test that is in no list, such as a benchmark, an instance shows nothing.
                    if any(name in test for test in self.others):
                        others.append((file, block, old_lines, seconds))
                elif candidate := self._make_candidate(file, block, old_lines, seconds, is_likely=True):
                    likely.append(candidate)
        return [*likely[: MAX_BLOCKS - MAX_OTHER_BLOCKS], *self._sample_others(others)]

    def _sample_others(
        self, others: Iterable[tuple[TestFile, TestBlock, frozenset[bytes], list[float]]]
    ) -> list[_Candidate]:
        """Return a sample of the tests that are not required, so that a submission cannot rely on which tests are.

        `others`: file, block, lines of the file in the agent's tree and seconds of each. Sites are searched for in as
        few of them as the sample needs.
        """
        short = [other for other in others if sum(other[-1]) <= MAX_OTHER_SECONDS]
        self.random.shuffle(short)
        # Of those that were tried for other tasks no value needs another run.
        short.sort(key=lambda other: not self._memory.has_results(*other[:-1]))
        candidates = (self._make_candidate(*other, is_likely=False) for other in short)
        return list(islice(filter(None, candidates), MAX_OTHER_BLOCKS))

    def _make_candidate(
        self,
        file: TestFile,
        block: TestBlock,
        old_lines: frozenset[bytes],
        seconds: Sequence[float],
        *,
        is_likely: bool,
    ) -> _Candidate | None:
        """Return a test as a candidate; None where it has no site. `seconds`: those of each of its cases."""
        tried = self._memory.find_block(file, block, old_lines)
        if tried is None:
            return None
        return _Candidate(tried=tried, is_likely=is_likely, seconds=sum(seconds), n_cases=max(1, len(seconds)))

    @cached_property
    def _files(self) -> dict[str, TestFile]:
        """Path -> test file, of languages with a grammar."""
        parsed = {path: self._memory.parse(path, content) for path, content in self.test_files.items()}
        return {path: file for path, file in parsed.items() if file is not None}

    @cached_property
    def _required_files(self) -> frozenset[str]:
        """The files of the tests to control."""
        return frozenset(test.partition("::")[0] for test in self.required)

    def _list_seconds(self, path: str, name: str) -> list[float]:
        """Return the seconds of the tests whose id has a name, of a file or of all."""
        outcomes = self.report.outcomes if self.report else {}
        return [o.seconds for test, o in outcomes.items() if test.startswith(path) and name in test]

    # ---------------------------------------------------------------------------------------------------- confirming

    def _confirm_values(self, candidates: Sequence[_Candidate]) -> None:
        """Run the other values of all candidates as instances, and keep those that gold fails as it should.

        No run is made where each value of the likely tests was tried for an earlier task. Where no instance left a
        result, because an input took all the memory or time, or because of an error of types, they are tried once more:
        without inputs in the first case, else values that stand in the file. Those of tests that left none because the
        process had ended, as by a crash outside of a test's own function, are tried once more without inputs.
        """
        trials = self._choose_trials(candidates)
        likely = [candidate for candidate in candidates if candidate.is_likely]
        if all(self._is_known(candidate, trial) for candidate in likely for trial in trials[id(candidate)]):
            self._read_trials(candidates, trials)
            return
        plans = self._plan_trials(candidates, trials)
        shared = self._add_further_trials(plans)
        lost = self._run_trials(shared, runs_all=self._may_leave_out_grading)
        if lost and shared != plans:
            self._memory.crowded |= lost
            self._run_trials([plan for plan in plans if plan.tried.file.path in lost])
        self._read_trials(candidates, trials)
        has_crashed = any(candidate.tests for candidate in likely)
        untried = [c for c in likely if c.has_lost_instances(trials[id(c)])] if has_crashed else likely
        is_killed = has_crashed or self.runs[-1].record.killed_by is not None
        again = {
            id(c): [trial for trial in trials[id(c)] if not trial.site.is_input]
            if is_killed
            else [trial for trial in trials[id(c)] if _stands_in_file(c.file, trial.text)][:MAX_VALUES]
            for c in untried
        }
        if any(again.values()):
            retried = [candidate for candidate in untried if again[id(candidate)]]
            self._run_trials(_make_plans(retried, again))
            self._read_trials(retried, again)

    def _choose_trials(self, candidates: Sequence[_Candidate]) -> dict[int, list[ValueTrial]]:
        """Return id of a candidate -> the values to try, few more than needed where all would take long.

        Few are also tried of a test that no bound needs.
        """
        wanted = self._count_wanted(candidates)
        most = max(LEAST_TRIALS, MAX_TRIALS // max(1, sum(candidate.n_cases for candidate in candidates)))
        likely = [candidate for candidate in candidates if candidate.is_likely]
        # Tests that the agent's tree has unchanged count only where there is no other.
        likely = [candidate for candidate in likely if candidate.tried.is_hidden] or likely
        chosen = {id(c): c.tried.choose_trials(wanted, most) for c in likely}
        for candidate in candidates:
            if id(candidate) not in chosen:
                number = min(wanted, MIN_INSTANCES) if candidate.is_likely else OTHER_INSTANCES
                chosen[id(candidate)] = candidate.tried.choose_trials(number, most, is_sparing=True)
        # Where few tests have to reach the bound, it depends on the values of each.
        if wanted > MIN_INSTANCES:
            return chosen
        limit = max(SPARING_SECONDS, SPARING_SHARE * self.seconds)
        costs = {id(c): len(chosen[id(c)]) * c.cost for c in likely}
        total = sum(costs.values()) if len(likely) >= SPARING_TESTS else 0.0
        for candidate in sorted(likely, key=lambda c: -costs[id(c)]):
            if max(total, costs[id(candidate)]) <= limit:
                break
            few = candidate.tried.choose_trials(wanted, most, is_sparing=True)
            total -= costs[id(candidate)] - len(few) * candidate.cost
            chosen[id(candidate)] = few
        return chosen

    def _plan_trials(
        self, candidates: Sequence[_Candidate], trials: Mapping[int, Sequence[ValueTrial]]
    ) -> list[TrialPlan]:
        """Return the trials without a result; with each also that of the same value with or without assertions."""
        unknown = {
            (id(c), trial.key[:2]) for c in candidates for trial in trials[id(c)] if not self._is_known(c, trial)
        }
        missing = {id(c): [t for t in trials[id(c)] if (id(c), t.key[:2]) in unknown] for c in candidates}
        return _make_plans(candidates, missing)

    def _is_known(self, candidate: _Candidate, trial: ValueTrial) -> bool:
        """Return whether a run has shown the outcomes of a value in all tests of its block."""
        result = candidate.tried.results.get(trial.key)
        if result is None:
            return False
        further = self._required_files - result.files
        # Classes of further files may inherit the test.
        return not further or not any(
            candidate.tried.name in test and test.partition("::")[0] in further
            for test in (*self.required, *self.others)
        )

    def _add_further_trials(self, plans: Sequence[TrialPlan]) -> list[TrialPlan]:
        """Return trials with those that further tasks of the memory are expected to need, as far as there is room."""
        if self._memory.read_file is None:
            return list(plans)
        shared = {plan.place: plan for plan in plans}
        room = MAX_SHARED_TRIALS - sum(len(plan.trials) for plan in plans)
        seconds = max(TRIAL_SECONDS, self.seconds) - sum(plan.cost for plan in plans)
        for failing in self.foreseen:
            for plan in self._foresee(failing).plan_likely_trials():
                known = shared.get(plan.place, replace(plan, trials=()))
                added = replace(plan, trials=plan.list_others(known))
                is_small = len(added.trials) <= room and added.cost <= seconds
                if added.trials and is_small and plan.tried.file.path not in self._memory.crowded:
                    shared[plan.place] = replace(known, trials=(*known.trials, *added.trials))
                    room -= len(added.trials)
                    seconds -= added.cost
        return list(shared.values())

    def _foresee(self, failing: frozenset[TestId]) -> ControlBuilder:
        """Return the builder of a further task, with the files of the memory. `failing`: its tests to control."""
        paths = sorted({test.partition("::")[0] for test in failing})
        contents = {path: self._memory.read_file(path) for path in paths} if self._memory.read_file else {}
        return replace(
            self,
            required=failing,
            others=self._memory.listed - failing,
            test_files={path: content for path, content in contents.items() if content is not None},
            old_files={},
            random=Random(0),  # noqa: S311 - chooses nothing here
            foreseen=(),
            runs=[],
        )

    def plan_likely_trials(self) -> list[TrialPlan]:
        """Return the trials without a result of the tests that required tests may be."""
        likely = [c for c in self._select_candidates() if c.is_likely and c.tried.can_repeat]
        return self._plan_trials(likely, self._choose_trials(likely))

    def _count_wanted(self, candidates: Sequence[_Candidate]) -> int:
        """Return how many instances of each test are needed, the true one among them."""
        likely = [candidate for candidate in candidates if candidate.is_likely]
        most = [candidate.tried.count_combinations(self._max_instances) for candidate in likely]
        plan, *_ = self._rank_plans(most, [candidate.cost for candidate in likely], singles=0)
        total = sum(candidate.cost for candidate in likely)
        affordable = int(max(TRIAL_SECONDS, self.seconds) / total) if total else self._max_instances
        return max(2, min(plan.instances, affordable))

    def _rank_plans(self, most: Sequence[int], seconds: Sequence[float], *, singles: int) -> list[GradingPlan]:
        return rank_plans(
            most,
            seconds,
            singles=singles,
            suite=self.seconds,
            max_evaluations=self._max_evaluations,
            max_instances=self._max_instances,
        )

    @property
    def _max_evaluations(self) -> int:
        return min(MAX_EVALUATIONS, int(GRADING_SECONDS / self.seconds) if self.seconds else MAX_EVALUATIONS)

    @cached_property
    def _max_instances(self) -> int:
        return min((file.sites.max_instances for file in self._files.values()), default=MAX_VALUES)

    @property
    def _surplus_instances(self) -> int:
        """The most instances of a test where they save an evaluation; compiled tests are too dear for that."""
        return self._max_instances if self._max_instances <= MAX_VALUES else int(SURPLUS * self._max_instances)

    def _run_trials(self, plans: Sequence[TrialPlan], *, runs_all: bool = False) -> set[str]:
        """Run trials, keep their results, and return the test files of which the report has no instance.

        A value that keeps a file from being loaded shows nothing of the others there: none of them has a result.

        Args:
            plans: the trials.
            runs_all: whether to run the files without instances as well, and a grading may not be needed afterwards.
        """
        planned = [plan for plan in plans if plan.trials]
        if not planned:
            return set()
        run_files = sorted(self._required_files | {plan.tried.file.path for plan in planned})
        sources = {plan.tried.file.path: plan.tried.file for plan in planned}
        silenced = {plan.tried.file.path for plan in planned if any(trial.is_silent for trial in plan.trials)}
        helpers = {path: SilentHelpers.copy(sources[path], self._names) for path in sorted(silenced)}
        edits: dict[str, list[Edit]] = {path: [*helpers[path].edits] if path in helpers else [] for path in sources}
        names: list[list[str]] = []
        for plan in planned:
            copies = helpers[plan.tried.file.path].names if plan.tried.file.path in helpers else None
            instances = plan.make_instances(copies, self._names)
            edits[plan.tried.file.path].append(instances.edit)
            names.append(instances.names)
        files = {path: apply_edits(file.source, edits[path]) for path, file in sources.items()}
        instance_seconds = sum(len(drawn) * plan.seconds for drawn, plan in zip(names, planned, strict=True))
        run = self._run(files, () if runs_all else run_files, instance_seconds=instance_seconds, last=runs_all)
        report = run.report
        by_word: dict[str, list[TestId]] = {}
        for test in report.outcomes:
            for word in set(DRAWN_WORD.findall(test)):
                by_word.setdefault(word, []).append(test)
        seen = {
            plan.tried.file.path
            for plan, drawn in zip(planned, names, strict=True)
            if any(name[-WORD_LENGTH:] in by_word for name in drawn)
        }
        for plan, drawn in zip(planned, names, strict=True):
            if plan.tried.file.path in seen:
                plan.keep_results(drawn, by_word, report, frozenset(run_files))
        return sources.keys() - seen

    def _read_trials(self, candidates: Sequence[_Candidate], trials: Mapping[int, Sequence[ValueTrial]]) -> None:
        """Keep the values of candidates that gold fails by an assertion."""
        for candidate in candidates:
            results = candidate.tried.results
            seen = [trial for trial in trials[id(candidate)] if trial.key in results]
            self._read_trial(candidate, seen, [results[trial.key] for trial in seen])

    def _read_trial(self, candidate: _Candidate, trials: Sequence[ValueTrial], results: Sequence[TrialResult]) -> None:
        """Keep the values that gold fails by an assertion, if the true instance of their run passes as well."""
        trues = list({result.true.name: result.true for result in results}.values())
        listed = [self._list_own_tests(true) for true in trues]
        # Instances that leave no test of the list, as with runners that print other names, cannot be graded.
        own = max((tests for tests in listed if tests is not None), key=len, default=())
        if not own or None in listed:
            return
        candidate.tests = tuple(sorted(own))
        # A test that fails may take longer than one that passes.
        instances = [*trues, *(result.instance for result in results)]
        total = sum(outcome.seconds for instance in instances for outcome in instance.outcomes.values())
        candidate.seconds = max(candidate.seconds, total / len(instances))
        candidate.is_required = not self.required.isdisjoint(own)
        self._keep_seen_values(candidate, trials, results)

    def _list_own_tests(self, true: TriedInstance) -> list[TestId] | None:
        """Return the listed tests of a true instance; None if any of them did not pass under its name."""
        own = []
        for (test, outcome), origin in zip(true.outcomes.items(), true.list_origins(), strict=True):
            if origin in self.required or origin in self.others:
                if outcome.status is not OutcomeStatus.PASSED or rename_test(origin, true.old, true.name) != test:
                    return None
                own.append(origin)
        return own

    def _keep_seen_values(
        self, candidate: _Candidate, trials: Sequence[ValueTrial], results: Sequence[TrialResult]
    ) -> None:
        """Keep the values that gold fails by an assertion, and passes with the assertions switched off."""
        unseen = set()
        for trial, result in zip(trials, results, strict=True):
            changed = result.instance.list_changed_ids(result.true)
            if trial.is_silent and not result.instance.passes(candidate.tests, changed):
                unseen.add((trial.site.spans, trial.text))
        candidate.values.clear()
        for trial, result in zip(trials, results, strict=True):
            if trial.is_silent or (trial.site.spans, trial.text) in unseen:
                continue
            wanted = list_seen_failures(candidate.file, trial.site)
            changed = result.instance.list_changed_ids(result.true)
            if fails := self._list_failures(candidate, result.instance, changed, wanted):
                value: dict[str, Any] = {"text": trial.text, "fails": fails}
                if ids := {test: changed[test] for test in candidate.tests if test in changed}:
                    value["ids"] = ids
                candidate.values.setdefault(trial.site, []).append(value)

    def _list_failures(
        self,
        candidate: _Candidate,
        instance: TriedInstance,
        changed: Mapping[TestId, TestId],
        wanted: Collection[str],
    ) -> dict[TestId, str]:
        """Return test -> how it fails in an instance; none where the instance cannot be used."""
        fails: dict[TestId, str] = {}
        for test in candidate.tests:
            outcome = instance.get_outcome(changed.get(test, test))
            if outcome is None or outcome.status in (OutcomeStatus.SKIPPED, OutcomeStatus.XFAILED):
                return {}
            if outcome.status is OutcomeStatus.PASSED:
                continue
            # In a grading nothing guards the instance, so that a crash would end the process.
            if outcome.by_assertion is False and candidate.file.sites.crash_guard[0]:
                return {}
            kind = blind.classify_failure(outcome.status.value, outcome.message)
            if kind not in wanted:
                return {}
            fails[test] = kind
        needed = self.required if candidate.is_required else fails.keys()
        return fails if not fails.keys().isdisjoint(needed) else {}

    def _confirm_single(self, candidates: Sequence[_Candidate], covered: set[TestId]) -> list[dict[str, Any]]:
        """Return blocks of tests that stand once, for the tests to control that no other block has."""
        missing = self.required - covered
        singles = self._list_singles(candidates, covered)
        if not all(single.was_tried for single in singles):
            self._confirm_forms(singles)
        blocks = [single.describe(missing, self.required | self.others) for single in singles if single.forms]
        return [block for block in blocks if block["required"]]

    def _list_singles(self, candidates: Sequence[_Candidate], covered: set[TestId]) -> list[SingleTest]:
        """Return the tests that may be those to control that no other block has."""
        files = {test.partition("::")[0] for test in self.required - covered}
        rest = [
            candidate
            for candidate in candidates
            if candidate.is_likely and candidate.file.path in files and covered.isdisjoint(candidate.tests)
        ]
        return [candidate.tried.single for candidate in rest[:MAX_FEW_BLOCKS]]

    def _confirm_forms(self, singles: Sequence[SingleTest]) -> None:
        """Confirm the forms of tests that stand once, and in the same runs those of tests of further tasks."""
        tried = {(single.path, single.block.start): single for single in singles}
        for failing in self.foreseen if self._memory.read_file else ():
            for single in self._foresee(failing).list_likely_singles():
                if len(tried) < MAX_FEW_BLOCKS and not single.was_tried:
                    tried.setdefault((single.path, single.block.start), single)
        sources = {path: file.source for path, file in self._files.items()}
        sources |= {single.path: single.file.source for single in tried.values()}
        run_files = self._required_files | {path for path, _ in tried}
        listed = self.required | self.others | self._memory.listed

        def run(batch: Sequence[Mapping[str, bytes]]) -> Sequence[EvaluationReport | None]:
            return self._run_batch(batch, sorted(run_files))

        # Tests of files that are not run would be missing in each report, as if every form failed them.
        confirm_single_tests(
            list(tried.values()), run, sources, {test for test in listed if test.partition("::")[0] in run_files}
        )

    def _run_batch(
        self, batch: Sequence[Mapping[str, bytes]], files: Sequence[str]
    ) -> Sequence[EvaluationReport | None]:
        """Return the reports of runs with some contents of test files.

        They share a container where a memory has the tests that pass if none of them has disturbed the next. Whatever
        one leaves there, gold must pass a grading in a fresh container.
        """
        passing = {test for test in self._memory.listed if test.partition("::")[0] in files}
        limit = limit_repeat(self.seconds)
        if passing and len(batch) > 1 and limit is not None:
            reports = self.evaluator.run_series(
                batch, patch=self.gold_patch, files=files, passing=passing, seconds=limit.seconds
            )
            if reports is not None:
                return reports
        return [self._run(contents, files).result.report for contents in batch]

    def list_likely_singles(self) -> list[SingleTest]:
        """Return the tests to control of which no instances can stand side by side, as far as trials have shown it."""
        candidates = self._select_candidates()
        repeatable = [candidate for candidate in candidates if candidate.tried.can_repeat]
        self._read_trials(repeatable, self._choose_trials(repeatable))
        return self._list_singles(candidates, {test for c in candidates if c.values for test in c.tests})

    def _run(
        self,
        test_files: Mapping[str, bytes],
        files: Sequence[str] = (),
        *,
        instance_seconds: float = 0.0,
        last: bool = False,
    ) -> EvaluationRun:
        """Run the tests with the gold patch.

        Args:
            test_files: path -> content of the files with instances.
            files: test files to run; empty for those of the script.
            instance_seconds: expected seconds of instances, where no earlier run had as many.
            last: whether no run is expected to follow.
        """
        ended = [run.record.seconds for run in self.runs if not run.record.killed_by]
        run = self.evaluator.run(
            RunVariant.CONTROL,
            patch=self.gold_patch,
            test_files=test_files,
            files=files,
            time_limit=limit_repeat(max(self.seconds, *ended, 0.0) + instance_seconds) if self.seconds else None,
            last=last,
        )
        self.runs.append(run)
        return run

    # ------------------------------------------------------------------------------------------------------ document

    def _try_repeated(
        self, candidates: Sequence[_Candidate], repeated: Sequence[_Candidate]
    ) -> tuple[dict[str, Any] | None, set[TestId] | None]:
        """Return a document of tests that stand several times and of single ones for the rest, and the broken tests."""
        if not any(candidate.is_required for candidate in repeated):
            return None, set(self.required)
        covered = {test for candidate in repeated for test in candidate.tests}
        return self._try(repeated, self._confirm_single(candidates, covered))

    def _try(
        self, repeated: Sequence[_Candidate], singles: Sequence[dict[str, Any]]
    ) -> tuple[dict[str, Any] | None, set[TestId] | None]:
        """Return a document, and the tests whose outcomes were not as expected of gold; None if there are none.

        No document where no required test is left.
        """
        blocks = [candidate.describe(self.tree) for candidate in repeated]
        seconds = [candidate.cost for candidate in repeated]
        if not any(block["required"] for block in (*blocks, *singles)):
            return None, None
        document = self._make_document(blocks, seconds, singles)
        is_shown = self._has_shown_grading(document, repeated)
        return document, None if is_shown else self._grade_gold(document)

    @property
    def _may_leave_out_grading(self) -> bool:
        """Return whether the run of all values may show what a grading would; then it is of all files."""
        is_repeated = all(candidate.tried.can_repeat for candidate in self._candidates if candidate.is_likely)
        return not self.grades_gold and is_repeated

    def _has_shown_grading(self, document: Mapping[str, Any], repeated: Sequence[_Candidate]) -> bool:
        """Return whether the run of all values has shown that gold passes whatever is drawn of a document.

        All values stood in it, and each listed test passed: if in a block, before all other instances and after them,
        so that none of them disturbs it. A combination of values that nothing but assertions see fails by the first.
        """
        if self.grades_gold or len(self.runs) != 1:
            return False
        plain = {(c.file.path, c.block.start, s.spans) for c in repeated for s in c.values if not s.needs_silence}
        for block in document["blocks"]:
            for menu in block.get("menus", ()):
                sites = [tuple(map(tuple, block["sites"][number]["spans"])) for number, _ in menu]
                if len(sites) > 1 and any((block["file"], block["span"][0], spans) not in plain for spans in sites):
                    return False
        if not all("menus" in block for block in document["blocks"]):
            return False
        shown = {test for c in self._candidates if c.tried.is_undisturbed for test in c.tests}
        report = self.runs[0].report
        return all(test in shown or report.has_passed(test) for test in self.required | self.others)

    def _make_document(
        self, blocks: Sequence[dict[str, Any]], seconds: Sequence[float], singles: Sequence[dict[str, Any]]
    ) -> dict[str, Any]:
        """Return the document of the cheapest plan that reaches the bound.

        Only blind blocks count, where a required block is blind. Where none is, all count: a submission has to compare
        texts to find the true ones.
        """
        has_blind = any(block["blind"] and block["required"] for block in (*blocks, *singles))
        counted = [block["required"] and (block["blind"] or not has_blind) for block in blocks]
        n_singles = sum(block["required"] and (block["blind"] or not has_blind) for block in singles)
        most = [
            count_values(block["sites"], self._max_instances)
            for block, counts in zip(blocks, counted, strict=True)
            if counts
        ]
        times = [time for time, counts in zip(seconds, counted, strict=True) if counts]
        plans = self._rank_plans(most, times, singles=n_singles)
        files = {block["file"] for block in (*blocks, *singles)}
        document: dict[str, Any] = {
            "files": {path: content.decode() for path, content in self.test_files.items() if path in files},
            "copies": 0,
            "partial": True,
        }
        add_menus = cache(lambda instances: [*self._add_menus(blocks, counted, instances), *singles])
        # A test that stands once is real or not by a coin, which needs many evaluations.
        fewest = plans[0].evaluations if n_singles else min(plan.evaluations for plan in plans)
        last = max(fewest, min(MAX_READER_EVALUATIONS, self._max_evaluations))
        # Readers find some true instances more often than a guess does.
        larger = {
            replace(plan, instances=min(self._surplus_instances, int(plan.instances * factor)))
            for plan in plans
            for factor in (MORE_INSTANCES if plan.evaluations <= last else ())
        }
        tried: list[dict[str, Any]] = []
        affordable = max(INSTANCE_SECONDS, self.seconds)
        larger = {
            plan
            for plan in larger
            if plan in plans or compute_cost(replace(plan, evaluations=1), most, times) <= affordable
        }
        for plan in sorted(larger, key=lambda plan: (compute_cost(plan, most, times), plan.instances)):
            tried.append({**document, "blocks": add_menus(plan.instances), "evaluations": plan.evaluations})
            if blind.compute_bound(tried[-1]) <= BOUND * ROUNDING:
                return tried[-1]
        # Further evaluations that do not reach the bound would cost as much in each grading.
        return min((d for d in tried if d["evaluations"] == fewest), key=blind.compute_bound)

    def _add_menus(
        self, blocks: Sequence[dict[str, Any]], counted: Sequence[bool], instances: int
    ) -> list[dict[str, Any]]:
        """Return the blocks of a document, with menus and the odds of readers.

        Args:
            blocks: the blocks.
            counted: whether each of them counts for the bound; one that does not has few instances.
            instances: number of instances of a block that counts.
        """
        described = []
        for block, counts in zip(blocks, counted, strict=True):
            number = instances if counts else min(instances, MIN_INSTANCES)
            menus = make_menus(block["sites"], number) if block["required"] else make_other_menus(block["sites"])
            odds: dict[str, list[float]] = {}
            # Blocks that are not required count for no bound.
            if block["required"]:
                menus, odds["readers"] = select_menus(block["sites"], menus, self.random)
            kept = ("spans", "features", "values", "is_input")
            sites = [{key: site[key] for key in kept} for site in block["sites"]]
            described.append({**block, **odds, "sites": sites, "menus": menus[:MAX_MENUS]})
        return described

    def _grade_gold(self, document: dict[str, Any]) -> set[TestId] | None:
        """Grade the gold patch; return the tests whose outcomes were not as expected, None if there are none."""
        judgement = blind.Judgement(self.required | self.others)
        # Drawn as in a real grading: a document that gold fails by chance would fail honest solutions, too.
        # The first grading of gold in a certificate has all instances.
        evaluations = blind.draw_evaluations(shorten_menus(document), secrets.SystemRandom())
        # A coin needs both sides to be seen, and every further draw of instances is like the first.
        graded = evaluations[: blind.FIRST_EVALUATIONS if not evaluations[0].is_decisive else 1]
        for number, evaluation in enumerate(graded, 1):
            run = self._run(evaluation.files, evaluation.only or (), last=number == len(graded))
            judgement.add(evaluation, run.report.list_results())
        for test, reason in judgement.wrong.items():
            log.debug("with controls, gold fails %s: %s", test, reason)
        return None if judgement.is_right else set(judgement.wrong)


def _drop_broken_tests(candidates: list[_Candidate], broken: set[TestId]) -> list[_Candidate]:
    """Return the candidates without broken tests, and without the files of broken tests that no candidate has.

    Such tests compare their own file, or share a state: they fail because of instances of others.
    """
    disturbed = broken.difference(*(candidate.tests for candidate in candidates))
    files = {test.partition("::")[0] for test in disturbed}
    return [c for c in candidates if broken.isdisjoint(c.tests) and c.file.path not in files]


def _drop_broken_files(candidates: list[_Candidate], broken: set[TestId]) -> list[_Candidate]:
    """Return the required candidates of files without broken tests."""
    files = {test.partition("::")[0] for test in broken}
    return [c for c in candidates if c.is_required and c.file.path not in files and broken.isdisjoint(c.tests)]


def _make_plans(candidates: Iterable[_Candidate], trials: Mapping[int, Sequence[ValueTrial]]) -> list[TrialPlan]:
    return [TrialPlan(tried=c.tried, seconds=c.seconds, trials=trials[id(c)]) for c in candidates]


def _stands_in_file(file: TestFile, text: str) -> bool:
    return text in file.literals.strings or text in file.literals.numbers or text in ("true", "false", "True", "False")


def build_controls(
    evaluator: Evaluator,
    repository: GitRepository,
    base: str,
    *,
    test_patch: bytes,
    gold_patch: bytes,
    tests: Sequence[TestId],
    others: Sequence[TestId],
    seconds: float,
    report: EvaluationReport | None = None,
    memory: ControlMemory | None = None,
    foreseen: Collection[frozenset[TestId]] = (),
    grades_gold: bool = True,
) -> BlindControls:
    """Make other instances of the tests, and run the gold patch to confirm which of them it fails.

    Args:
        evaluator: its image holds the tree of `base`, or a tree with the same test files.
        repository: repository that holds the commit `base`.
        base: the commit that the test patch applies to.
        test_patch: test patch that adds the tests; empty where `base` has them.
        gold_patch: the patch with which all of the tests pass.
        tests: the tests to control, FAIL_TO_PASS as a rule.
        others: the other tests of the task.
        seconds: duration of a run of all tests.
        report: report of a run with the gold patch, for the seconds of each test.
        memory: values and results of tasks with the same tree of the gold patch and tests; None for this task alone.
        foreseen: tests that fail in further tasks of the memory.
        grades_gold: whether gold is graded in a last run even where the run of all values has shown its outcomes.

    Raises:
        Transient: the engine failed.
    """
    try:
        added, changed = list_patch_paths(test_patch), list_patch_paths(gold_patch)
        wanted = sorted({*(test.partition("::")[0] for test in tests), *(path for path in added if is_protected(path))})
        files = [path for path in wanted if (path in added or is_protected(path)) and path not in changed]
        old, new = read_test_files(repository, base, test_patch, files)
    except GitError:
        return BlindControls()
    if not new:
        return BlindControls()
    builder = ControlBuilder(
        evaluator=evaluator,
        gold_patch=gold_patch,
        required=frozenset(tests),
        others=frozenset(others) - frozenset(tests),
        test_files={path: drop_plan(path, content) for path, content in new.items()},
        old_files=old,
        seconds=seconds,
        report=report,
        tree=memory.counter.count(repository, base) if memory else count_tree(repository, base),
        memory=memory,
        foreseen=foreseen,
        grades_gold=grades_gold,
        random=Random(base),  # noqa: S311 - the values are no secret, which of them are drawn is
    )
    return builder.build()


def read_test_files(
    repository: GitRepository, base: str, patch: bytes, files: Sequence[str]
) -> tuple[dict[str, bytes], dict[str, bytes]]:
    """Return path -> content of `files` in the tree of `base`, and with `patch` applied, without absent files.

    Raises:
        GitError: the patch does not apply.
    """
    with ScratchIndex(repository, base) as index:
        old = {path: index.read_file(path) for path in files}
        index.apply(patch)
        new = {path: index.read_file(path) for path in files}
    return _drop_absent(old), _drop_absent(new)


def _drop_absent(contents: Mapping[str, bytes | None]) -> dict[str, bytes]:
    return {path: content for path, content in contents.items() if content is not None}

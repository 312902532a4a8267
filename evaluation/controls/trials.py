"""Trials: the other values of a test, each an instance in a run of the gold patch, with its outcomes there.

The outcomes depend on the tree of the gold patch and the text of the instance. Tasks that share this tree, as those of
an environment with injected bugs do, therefore share the results (`evaluation.controls.memory`): a value is tried for
the first task whose test may need it. Every task still has a run of its own, drawn as a grading is, that gold must
pass.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from math import prod
from random import Random

from evaluation.controls.alternatives import MAX_ALTERNATIVES
from evaluation.controls.blocks import TestBlock, TestFile, parse_test_file
from evaluation.controls.calls import guard_against_crashes, silence_assertions
from evaluation.controls.features import Surroundings, TreeCounts, compute_balance, sort_by_likeness
from evaluation.controls.planning import MAX_VALUES, MIN_INSTANCES, are_separate, is_disjoint
from evaluation.controls.single import SingleTest
from evaluation.controls.sites import Site
from evaluation.controls.tables import list_changed_ids
from evaluation.reports.outcomes import EvaluationReport, Outcome, OutcomeStatus
from guest.controls.choices import Instances, Variant, name_instances
from guest.controls.texts import WORD_LENGTH, Edit, apply_edits, rename_test, restore_test_id
from taskdb.records import TestId

SPARE_SHARE = 1.3
SPARE_VALUES = 12
"""Values that are tried for each that is needed, and besides: gold passes some or fails them otherwise, and the true
one shall lie between others in every feature."""
SPARE_REACH = 4
"""Combinations of values that are tried for each instance, as readers find some true values."""
FEW_SPARE_VALUES = 2
"""Values of a site that are tried besides where each of them is dear, or where no bound depends on them."""
FEW_TRIALS = 12
"""Instances of such a test after which no further site is tried, where it is to have few."""
KEPT_SHARE = 0.5
"""Share of the values of a site that are expected to be of use."""
MANY_SITES = 4
"""Sites of a test of which few values are tried each."""
LEAST_BALANCE = 0.1
"""Balance of a site below which its true value shows among the others."""
INPUT_SITES = 4
"""Inputs of a test that are tried where it has nothing else."""

Spans = tuple[tuple[int, int], ...]


@dataclass(frozen=True, kw_only=True)
class ValueTrial:
    """A value to try: a site with another text. `is_silent`: whether the test asserts nothing."""

    site: Site
    text: str
    is_silent: bool = False

    @property
    def key(self) -> tuple[Spans, str, bool]:
        """Site, text and silence, which distinguish it from the other trials of its test."""
        return self.site.spans, self.text, self.is_silent

    def make_variant(self, silent: Sequence[Edit], guards: Sequence[Edit] = ()) -> Variant:
        """Return the instance.

        Args:
            silent: the edits that switch the assertions off.
            guards: the edits with which a crash fails the instance alone.
        """
        edits: list[Edit] = [[start, end, self.text] for start, end in self.site.spans]
        return Variant([*edits, *guards, *(silent if self.is_silent else ())], {})


@dataclass(frozen=True, kw_only=True)
class TriedInstance:
    """An instance in a run, with the tests in the report that have its name, in their order."""

    old: str
    """Name of its block."""
    name: str
    outcomes: Mapping[TestId, Outcome]
    """Outcomes of its tests."""

    @classmethod
    def read(cls, old: str, name: str, tests: Iterable[TestId], report: EvaluationReport) -> TriedInstance:
        """Return an instance. `tests`: the tests of the report that have its name."""
        return cls(old=old, name=name, outcomes={test: report.outcomes[test] for test in tests})

    def list_origins(self) -> list[TestId]:
        """Return the ids that its tests would have in the block."""
        return [restore_test_id(test, self.old, self.name) or "" for test in self.outcomes]

    def list_statuses(self) -> list[tuple[TestId, OutcomeStatus]]:
        """Return the id that each test would have in the block, and its status."""
        return [(origin, o.status) for origin, o in zip(self.list_origins(), self.outcomes.values(), strict=True)]

    def list_changed_ids(self, true: TriedInstance) -> dict[TestId, TestId]:
        """Return id -> new id of the tests of the true instance whose ids contain a changed value."""
        return list_changed_ids(true.list_origins(), self.list_origins()) or {}

    def get_outcome(self, test: TestId) -> Outcome | None:
        """Return the outcome of a test, by the id that it would have in the block."""
        return self.outcomes.get(rename_test(test, self.old, self.name))

    def passes(self, tests: Iterable[TestId], changed: Mapping[TestId, TestId]) -> bool:
        """Return whether all tests passed."""
        outcomes = [self.get_outcome(changed.get(test, test)) for test in tests]
        return all(outcome is not None and outcome.status is OutcomeStatus.PASSED for outcome in outcomes)


@dataclass(frozen=True, kw_only=True)
class TrialResult:
    """The instance of a trial in a run."""

    true: TriedInstance
    """The true instance of the block in the same run."""
    instance: TriedInstance
    files: frozenset[str]
    """Test files that were run."""


@dataclass(kw_only=True)
class TriedBlock:
    """A test with its sites, and the results of their values in runs of the gold patch."""

    file: TestFile
    block: TestBlock
    sites: list[Site]
    """The values of each are those most like the true one, the most alike first."""
    shown: frozenset[Spans]
    """Spans of the sites whose true value shows among the others."""
    results: dict[tuple[Spans, str, bool], TrialResult] = field(default_factory=dict)
    """Key of a trial -> its result."""
    is_undisturbed: bool = False
    """Whether its last run had the same outcomes before all other instances and after them."""

    @classmethod
    def read(cls, file: TestFile, block: TestBlock, sites: Sequence[Site], tree: TreeCounts) -> TriedBlock:
        """Return a test that was not tried yet. `tree`: counts by which values are chosen."""
        alike: list[Site] = []
        shown: set[Spans] = set()
        for site in sites:
            surroundings, true = _read_surroundings(file, block, site, tree), read_true(file, site)
            texts = tuple(sort_by_likeness(surroundings, true, site.texts)[:MAX_ALTERNATIVES])
            alike.append(replace(site, texts=texts))
            if compute_balance(surroundings, true, texts) < LEAST_BALANCE:
                shown.add(site.spans)
        return cls(file=file, block=block, sites=alike, shown=frozenset(shown))

    @property
    def name(self) -> str:
        """Name of the test; empty where it has none."""
        return _read_name(self.file, self.block)

    @property
    def compile_seconds(self) -> float:
        """Seconds that a compiler takes for an instance."""
        sites = self.file.sites
        return sites.instance_seconds + sites.kilobyte_seconds * (self.block.end - self.block.start) / 1000

    @property
    def is_hidden(self) -> bool:
        """Whether it has a site in lines that the agent's tree does not have."""
        return any(not site.is_known for site in self.sites)

    @property
    def was_tried(self) -> bool:
        """Whether a run has shown anything of it."""
        return bool(self.results) or self.single.was_tried

    @property
    def can_repeat(self) -> bool:
        """Whether instances of the block can be written: it has a name and begins a line."""
        line = self.file.source.rfind(b"\n", 0, self.block.start) + 1
        return bool(self.block.name_span) and not self.file.source[line : self.block.start].strip()

    @cached_property
    def single(self) -> SingleTest:
        """The block as it stands once."""
        return SingleTest(file=self.file, block=self.block, sites=self.sites)

    @cached_property
    def combinable(self) -> list[Site]:
        """Sites that may be changed at once (`evaluation.controls.planning.are_separate`)."""
        chosen: list[Site] = []
        for site in self.sites:
            if not (site.is_input or site.is_known) and all(
                site.is_inverted == other.is_inverted
                and is_disjoint(site.spans, other.spans)
                and are_separate(self.find_places(site), self.find_places(other))
                for other in chosen
            ):
                chosen.append(site)
        return chosen

    def find_places(self, site: Site) -> list[tuple[int, int]]:
        """Return the lines of a site, with the first byte of the container of each place."""
        groups = dict(site.groups)
        return sorted({(self.file.source.count(b"\n", 0, start), groups.get(start, start)) for start, _ in site.spans})

    def count_combinations(self, most: int) -> int:
        """Return the number of instances that the sites could give together. `most`: number to reach."""
        number = prod(1 + len(site.texts) for site in self.combinable)
        if all(site.is_inverted for site in self.combinable):
            number = max([number, *(1 + len(site.texts) for site in self.sites if site.is_input)])
        return min(number, most)

    def read_surroundings(self, site: Site, tree: TreeCounts) -> Surroundings:
        """Return the surroundings of a site. `tree`: counts of the agent's tree."""
        return _read_surroundings(self.file, self.block, site, tree)

    def _can_be_parsed(self, site: Site, text: str) -> bool:
        """Return whether the block can be parsed with another value, as its file would not be loaded otherwise."""
        start, end = self.block.start, self.block.end
        inner = [[first - start, last - start, text] for first, last in site.spans if start <= first and last <= end]
        return not self._is_sound or _is_parsed(self.file.path, apply_edits(self.file.source[start:end], inner))

    @cached_property
    def _is_sound(self) -> bool:
        """Whether the block can be parsed outside of its file."""
        return _is_parsed(self.file.path, self.file.source[self.block.start : self.block.end])

    def choose_trials(self, wanted: int, most: int, *, is_sparing: bool = False) -> list[ValueTrial]:
        """Return values to try, of the best sites, until their combinations are enough for so many instances.

        A value that may have other effects than a failed assertion is tried with the assertions switched off as well.

        Args:
            wanted: number of instances.
            most: the most instances to try.
            is_sparing: whether to try few more values than the instances need, which are to be few.
        """
        # Inputs and inverted assertions are used only where no other value is hidden among others.
        ordered = sorted(
            self.sites,
            key=lambda site: (site.is_known, site.spans in self.shown, site.is_input, site.is_inverted, site.rank),
        )
        combinable = [site for site in self.combinable if site.spans not in self.shown]
        goal = wanted if is_sparing else SPARE_REACH * wanted
        most = min(most, FEW_TRIALS) if is_sparing else most
        needed = int(SPARE_SHARE * goal ** (1 / max(1, min(len(combinable), MANY_SITES))))
        needed += FEW_SPARE_VALUES if is_sparing else SPARE_VALUES
        chosen: list[ValueTrial] = []
        hidden: list[str] = []
        reach = 1.0
        # No assertion may see any of the inputs, and an inverted one is a single value: some come first.
        inverted = [site for site in ordered if site.is_inverted][:MIN_INSTANCES]
        for site in (*inverted, *(site for site in ordered if site not in inverted)):
            is_last_resort = site.is_known or site.is_input or site.spans in self.shown
            is_enough = len(hidden) + 1 >= min(wanted, MAX_VALUES) if is_last_resort else reach >= goal
            if len(chosen) >= most or is_enough:
                break
            texts = site.texts[: max(MIN_INSTANCES, needed // INPUT_SITES) if site.is_input else needed]
            texts = tuple(text for text in texts if self._can_be_parsed(site, text))
            chosen += _list_trials(site, texts, can_be_silent=bool(self.file.sites.silent_calls))
            # Few inputs are seen by an assertion.
            hidden += texts[::INPUT_SITES] if site.is_input else () if is_last_resort or site.is_inverted else texts
            if site in combinable:
                # Gold passes some of the values, or fails them otherwise.
                reach *= max(1.0, len(texts) * KEPT_SHARE)
        return chosen


@dataclass(frozen=True, kw_only=True)
class TrialPlan:
    """Trials of a test that a run is to make. `seconds`: duration of the test."""

    tried: TriedBlock
    trials: Sequence[ValueTrial]
    seconds: float

    @property
    def place(self) -> tuple[str, int]:
        """File and first byte of the test."""
        return self.tried.file.path, self.tried.block.start

    def list_others(self, plan: TrialPlan) -> list[ValueTrial]:
        """Return the trials whose values are not among those of another plan for the test."""
        present = {trial.key[:2] for trial in plan.trials}
        return [trial for trial in self.trials if trial.key[:2] not in present]

    @property
    def cost(self) -> float:
        """Seconds of its instances."""
        return len(self.trials) * (self.seconds + self.tried.compile_seconds)

    def make_instances(self, helpers: Mapping[str, str] | None, random: Random) -> Instances:
        """Return the instances: the true one, those of the trials, and as the last both kinds once more.

        So the true one shows what the others leave for it, and another what it leaves for further tests. Where a crash
        would end the process, it fails the instance: a value of which gold crashes is not kept, and hides no other.

        Args:
            helpers: name of a helper that asserts -> name of its copy that does not; None where no trial is silent.
            random: random of the names.
        """
        file, block = self.tried.file, self.tried.block
        silent, guards = silence_assertions(file, block, helpers), guard_against_crashes(file, block)
        true = Variant(guards, {})
        failing = next((t for t in reversed(self.trials) if not t.is_silent), self.trials[-1])
        tried = [trial.make_variant(silent, guards) for trial in self.trials]
        variants = [true, *tried, true, failing.make_variant(silent, guards)]
        described = {"span": [block.start, block.end], "name": block.name_span, "tests": ()}
        return name_instances(file.source, described, variants, random)

    def keep_results(
        self,
        names: Sequence[str],
        by_word: Mapping[str, Sequence[TestId]],
        report: EvaluationReport,
        files: frozenset[str],
    ) -> None:
        """Keep the results of a run.

        Args:
            names: names of the instances that `make_instances` returned.
            by_word: last word of a drawn name -> tests of the report that have it, in their order.
            report: report of the run.
            files: test files that were run.
        """
        true, *others, again, _ = (
            TriedInstance.read(self.tried.name, name, by_word.get(name[-WORD_LENGTH:], ()), report) for name in names
        )
        self.tried.is_undisturbed = true.list_statuses() == again.list_statuses()
        for trial, instance in zip(self.trials, others, strict=True):
            self.tried.results[trial.key] = TrialResult(true=true, instance=instance, files=files)


def _is_parsed(path: str, source: bytes) -> bool:
    parsed = parse_test_file(path, source)
    return parsed is not None and not parsed.root.has_error


def _list_trials(site: Site, texts: Iterable[str], *, can_be_silent: bool) -> Iterator[ValueTrial]:
    for text in texts:
        yield ValueTrial(site=site, text=text)
        if site.needs_silence and can_be_silent:
            yield ValueTrial(site=site, text=text, is_silent=True)


def _read_name(file: TestFile, block: TestBlock) -> str:
    return file.source[slice(*block.name_span)].decode() if block.name_span else ""


def _read_surroundings(file: TestFile, block: TestBlock, site: Site, tree: TreeCounts) -> Surroundings:
    return Surroundings.read(file, (block.start, block.end), site.spans, tree, _read_name(file, block))


def read_true(file: TestFile, site: Site) -> str:
    """Return the true value of a site."""
    return file.source[slice(*site.spans[0])].decode(errors="replace")

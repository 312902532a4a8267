"""Mirrored issues: an issue and fix of another project are made again as a bug in an environment that exists.

The driver finds bug fixes of similar projects in the database (`taskdb.queries.similar_changes`), which travel with the
lineage. For each of them a model writes the counterpart in this project: the bug, tests that show it, and the issue.
Its answers are tried like injected bugs and like tests that a model writes for a change without tests; objections are
sent back, up to `write_attempts` times for a change. This is the method of SWE-Mirror (arXiv:2509.08724).
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import islice
from os.path import commonpath

from backends.llm.base import LanguageModel
from backends.sandbox.base import ContainerPool
from backends.services import Services
from backends.tree import CommitTree
from derivers.base import FewerTasks, KindRejection, count_wanted, get_next_number
from derivers.injected import bug_sites
from derivers.injected.search import BugSearch, compute_timeout
from derivers.mirrored.gates import ACCEPT_ALL, MirrorGates, MirrorObjection, Reason
from derivers.mirrored.matching import ChangeModel, MirrorPlace, match_models
from derivers.mirrored.trial import MirrorBase, MirrorTrial
from derivers.mirrored.writer import MirrorWriter, ModelBudget, ProjectView
from derivers.search_progress import SearchProgress, load_progress
from languages.registry import get_language
from taskdb.records import Candidate, Task
from taskdb.records.lineage import Lineage

__all__ = ["Reason", "derive_mirrored"]

MAX_TRIED_CHANGES = 3
"""Changes that are tried for each task that is wanted."""


def derive_mirrored(
    lineage: Lineage, services: Services, gates: MirrorGates = ACCEPT_ALL
) -> list[Task] | KindRejection:
    """Return mirrored tasks in the environment of a change: `per_environment` less the existing ones, or one.

    Nothing is returned, not even a rejection, where the database was not searched for similar changes.

    Args:
        lineage: a change with its environment; it need not be verified. `similar` are the changes to mirror, and those
            that its existing tasks mirror are left out.
        services: sandbox, clones, artifacts, settings and the model.
        gates: checks that belong to other stages.

    Raises:
        Transient: engine, disk or network failed, or the model cannot be reached.
    """
    if services.model is None:
        return KindRejection(Reason.NO_MODEL, "mirrored needs --llm")
    if lineage.similar is None or (wanted := count_wanted(lineage, services, 1)) < 1:
        return []
    used = {task.mirror.candidate for task in lineage.existing if task.mirror}
    others = [candidate for candidate in lineage.similar if candidate.id not in used]
    if not others:
        detail = "no change of another project in the database may be mirrored, or all have been"
        return KindRejection(Reason.NO_SIMILAR_CHANGE, detail)
    progress = load_progress(lineage, services)
    base = _read_base(lineage, services, progress)
    if isinstance(base, KindRejection):
        return base
    matched = match_models([_read_model(other, services) for other in others], base.tree.sources)
    places = [place for place in matched if place.model.candidate.id not in progress.tried]
    n_wanted = progress.n_wanted if services.settings.derive.per_environment else wanted
    limits = services.test_limits(lineage.require_environment().plan.language)
    limits = replace(limits, seconds=base.seconds)
    # A bug may make the tests run for ever, so the limit follows from the measured time of the base run.
    with services.sandbox.open_pool(lineage.require_environment().image, limits=limits) as pool:
        builder = MirroredTaskBuilder(
            base=base.tree, pool=pool, gates=gates, model=services.model, earlier=progress.tally
        )
        most = MAX_TRIED_CHANGES * n_wanted - len(progress.tried)
        tasks = builder.build_tasks(places, wanted, max(0, most))
    if len(tasks) == wanted:
        progress.tried += builder.tried
        progress.tally = builder.count_objections()
        return progress.make_step(tasks)
    return FewerTasks(tasks, builder.explain_rejection()) if tasks else builder.explain_rejection()


@dataclass(frozen=True)
class MeasuredBase:
    """A base tree, and the time limit in seconds of a run of its tests with a bug."""

    tree: MirrorBase
    seconds: float


def _read_base(lineage: Lineage, services: Services, progress: SearchProgress) -> MeasuredBase | KindRejection:
    """Run the tests of the base tree once in a search; return it with the source files that they execute."""
    candidate = lineage.candidate
    repository = services.clones.open_tree(candidate.source, candidate.repo, candidate.base_commit)
    search, passing = BugSearch.open_base(lineage, services, repository, progress.base)
    base_result = progress.base = search.require_base_result()
    if not passing:
        return KindRejection(Reason.NO_PASSING_TESTS, "no test passes at the base commit")
    sources = bug_sites.select_files(candidate, repository, base_result.covered_lines, passing)
    if not sources:
        return KindRejection(Reason.NO_TESTED_CODE, f"{len(passing)} passing tests execute no source file")
    tree = MirrorBase(
        lineage=lineage,
        services=services,
        repository=repository,
        tree=CommitTree(repository, candidate.base_commit),
        sources=sources,
        passing=passing,
        hideable=search.test_files,
        files=search.files,
    )
    return MeasuredBase(tree, compute_timeout(search, base_result.test_seconds))


def _read_model(candidate: Candidate, services: Services) -> ChangeModel:
    gold_patch, test_patch = (services.artifacts.get_text(key) for key in (candidate.gold_patch, candidate.test_patch))
    return ChangeModel(candidate=candidate, gold_patch=gold_patch, test_patch=test_patch)


@dataclass(frozen=True, kw_only=True)
class MirroredTaskBuilder:
    """Builds tasks from changes of other projects, each from a change of its own."""

    base: MirrorBase
    pool: ContainerPool
    """Containers of the base tree."""
    gates: MirrorGates
    model: LanguageModel
    objections: list[tuple[MirrorPlace, MirrorObjection]] = field(default_factory=list)
    """Objections to all rejected answers."""
    earlier: Mapping[str, int] = field(default_factory=dict)
    """Reason -> answers that were rejected for it in earlier steps of the search."""
    tried: list[str] = field(default_factory=list)
    """Ids of the changes that were tried."""

    def build_tasks(self, places: Sequence[MirrorPlace], wanted: int, most: int | None = None) -> list[Task]:
        """Return at most `wanted` tasks; on average MAX_TRIED_CHANGES changes are tried for each.

        Each task has a budget of its own, and so have as many changes that give none.
        """
        tasks, number = list[Task](), get_next_number(self.base.lineage)
        tried_with_budget = 0
        for place in islice(places, MAX_TRIED_CHANGES * wanted if most is None else most):
            self.tried.append(place.model.candidate.id)
            if tried_with_budget == 0:
                budget = ModelBudget.start(self.model, self.base.services)
            result = self._try_place(place, number + len(tasks), budget)
            tried_with_budget = (tried_with_budget + 1) % MAX_TRIED_CHANGES
            if isinstance(result, Task):
                tasks.append(result)
                tried_with_budget = 0
            if len(tasks) == wanted:
                break
        return tasks

    def explain_rejection(self) -> KindRejection:
        """Return the reason of the answer that came furthest, the last of several, and the counts of all reasons."""
        if not self.objections:
            return KindRejection(Reason.NO_SIMILAR_CHANGE, "each similar change of another project has given a task")
        counts = self.count_objections()
        place, furthest = max(reversed(self.objections), key=lambda pair: pair[1].progress)
        tried = ", ".join(f"{reason} {number}" for reason, number in counts.most_common())
        name = place.model.candidate.name
        return KindRejection(furthest.reason, f"{furthest.detail} (after {name}; answers: {tried})")

    def count_objections(self) -> Counter[str]:
        """Return reason -> answers that were rejected for it, also in earlier steps."""
        return Counter(self.earlier) + Counter(str(objection.reason) for _, objection in self.objections)

    def _try_place(self, place: MirrorPlace, number: int, budget: ModelBudget) -> Task | MirrorObjection:
        """Return the task of the first answer that passes every check, or the objection to the last one."""
        writer = MirrorWriter(place=place, project=self._make_view(place), budget=budget)
        for attempt in range(1, self.base.services.settings.verify.write_attempts + 1):
            answer = writer.write()
            result: Task | MirrorObjection
            if isinstance(answer, MirrorObjection):
                result = answer
            else:
                trial = MirrorTrial(base=self.base, pool=self.pool, gates=self.gates, place=place, answer=answer)
                result = trial.run(number, self.model.name, attempt, writer.transcript)
            if isinstance(result, Task):
                return result
            self.objections.append((place, result))
            # Other answers would not change the reason, so they would be paid for nothing.
            if result.is_final:
                break
            writer.object(result)
        return result

    def _make_view(self, place: MirrorPlace) -> ProjectView:
        """Return the parts of the project for the prompt; test files near the place's files come first."""
        candidate, tree = self.base.lineage.candidate, self.base.tree
        near = {
            path: max(len(commonpath([path, other])) for other in place.paths)
            for path in get_language(candidate.language).find_test_files(tree)
        }
        test_files = sorted(near, key=lambda path: (-near[path], path))
        return ProjectView(
            repo=candidate.repo,
            plan=self.base.lineage.require_environment().plan,
            sources=self.base.sources,
            test_files=test_files,
            example=(test_files[0], tree.read(test_files[0])) if test_files else ("", ""),
        )

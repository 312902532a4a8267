"""Instruction tasks: the bug fix or feature of a change, with instructions from several sources.

Everything that decides on the files is the original's. Each instruction has a check that decides on the conversation
(`evaluation.instructions`); `derivers.instructions.gates` shows of each that it can be followed and broken.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from enum import StrEnum

from backends.git import GitError, list_patch_paths, list_patch_renames
from backends.index import ScratchIndex
from backends.overlay import open_task_tree
from backends.services import Services
from core.settings.tasks import CONSTRAINTS, SOURCES, TURNS, DeriveSettings
from derivers.base import KindRejection
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
from derivers.instructions.facts import collect_facts, describe_test_command, make_random
from derivers.instructions.gates import ScriptSetting, VoteCollector, make_script, select_constraints
from derivers.instructions.script import SCAFFOLDS, Script, render_script
from derivers.variants.original import derive_original
from evaluation.instructions.changes import ChangedFile
from evaluation.instructions.submission import write_submission
from languages.registry import LANGUAGES
from taskdb.records import Kind, Task
from taskdb.records.instructions import (
    JUDGED,
    STATING_SOURCES,
    BoundConstraint,
    CarelessScript,
    InstructionOracle,
    InstructionSource,
    SkillText,
    ToolText,
)
from taskdb.records.lineage import Lineage

MAX_FILE_BYTES = 1_000_000
"""Size of a changed file above which no script shows the work."""
CONFLICT_SHARE = 0.25
"""Share of tasks in which two instructions exclude each other, and one takes precedence."""
TURN_REQUESTS = (
    "Run the tests once more and report the result.",
    "Describe in two sentences what you changed.",
    "Check the difference once more and report what it does.",
)
"""Requests of the user's further turns."""
SKILL_DESCRIPTION = "How changes of this repository are made and finished; to be read before a file is changed."
SKILL_FILLER = "Keep the change small, and explain it when you report."


class Reason(StrEnum):
    """Why a change gives no instruction task."""

    TOO_FEW_CONSTRAINTS = "too-few-constraints"
    """Fewer constraints than wanted pass the gates together; the detail counts the refusals of each gate."""
    NO_TEXT = "no-text"
    """The gold patch changes a file that is no text, or a very large one, so that no script can show it."""
    NO_TREE = "no-tree"
    """The base tree cannot be read."""


def derive_instructions(
    lineage: Lineage,
    services: Services,
    make_collector: Callable[[Services], VoteCollector | None] = lambda _services: None,
) -> list[Task] | KindRejection:
    """Return the instruction tasks of a change. Nothing is executed.

    Args:
        lineage: the change.
        services: clones, artifacts and settings.
        make_collector: function that returns the collector of a model's votes on judged items, or None.

    Raises:
        InputError: a constraint of the user's folder is none.
        Transient: the disk is full.
    """
    original = derive_original(lineage, services)
    if isinstance(original, KindRejection):
        return original
    settings = services.settings.derive
    collect_votes = make_collector(services)
    known = {
        name: constraint
        for name, constraint in load_constraints(settings.constraint_folder).items()
        if constraint.check != JUDGED or collect_votes is not None
    }
    try:
        work = read_work(original, services)
    except GitError as error:
        return KindRejection(Reason.NO_TREE, str(error))
    if isinstance(work, KindRejection):
        return work
    tasks, refusals = [], Counter[str]()
    for number in range(1, settings.instructions_per_task + 1):
        builder = InstructionTaskBuilder(
            original=original,
            work=work,
            known=known,
            services=services,
            number=number,
            options=make_options(settings),
            collect_votes=collect_votes,
        )
        task = builder.build()
        if task is None:
            refusals += builder.refused
        else:
            tasks.append(task)
    if tasks:
        return tasks
    counts = ", ".join(f"{gate} {count}" for gate, count in refusals.most_common())
    return KindRejection(Reason.TOO_FEW_CONSTRAINTS, f"refused: {counts or 'none, too few fit'}")


def make_options(settings: DeriveSettings) -> DrawOptions:
    """Return the numbers of constraints, sources and turns that a task may have."""
    return DrawOptions(
        constraints=CONSTRAINTS.parse(settings.constraints),
        sources=SOURCES.parse(settings.sources),
        turns=TURNS.parse(settings.turns),
    )


@dataclass(frozen=True, kw_only=True)
class GoldWork:
    """Work of the gold patch: the changes of files, and the files that were there before."""

    changes: Sequence[ChangedFile]
    base_files: frozenset[str]


def read_work(task: Task, services: Services) -> GoldWork | KindRejection:
    """Return the changes of a task's gold patch, or the rejection where no script can show them."""
    patch = services.artifacts.get(task.gold_patch)
    paths = sorted({*list_patch_paths(patch), *list_patch_renames(patch).values()})
    with open_task_tree(task, services) as (repository, commit), ScratchIndex(repository, commit) as index:
        before = {path: index.read_file(path) for path in paths}
        base_files = frozenset(entry.path for entry in index.repository.ls_tree(commit))
        index.apply(patch)
        changes = [ChangedFile(path, before[path], index.read_file(path)) for path in paths]
    for change in changes:
        for content in (change.before, change.after):
            if content is not None and (len(content) > MAX_FILE_BYTES or not _is_text(content)):
                return KindRejection(Reason.NO_TEXT, change.path)
    return GoldWork(changes=[change for change in changes if change.before != change.after], base_files=base_files)


def _is_text(content: bytes) -> bool:
    try:
        return "\0" not in content.decode()
    except UnicodeDecodeError:
        return False


@dataclass(kw_only=True)
class InstructionTaskBuilder:
    """Builds one instruction task of an original. `number`: of the task, from 1."""

    original: Task
    work: GoldWork
    known: Mapping[str, KnownConstraint]
    services: Services
    number: int
    options: DrawOptions
    collect_votes: VoteCollector | None = None
    """Lets a model vote on judged items; None without a model."""
    refused: Counter[str] = field(default_factory=Counter)
    """Gate -> constraints that it refused."""

    def __post_init__(self) -> None:
        # Everything is drawn from this source, in this order: another order would be another task.
        self._rng = make_random(self.original, self.number)
        self._n_turns = self._rng.randint(*self.options.turns)
        self._sources = draw_sources(self._rng, self.options, self._n_turns)
        self._language = LANGUAGES.get(self.original.language)
        self.facts = TaskFacts(
            language=self.original.language,
            facts=collect_facts(self.original, self.work.changes, self._rng),
            base_files=self.work.base_files,
            function_example=self._language.habits.function_example if self._language else "",
        )
        self.setting = ScriptSetting(
            make_draft=self._make_draft,
            workdir=self.original.require_plan().workdir,
            suffixes=self._language.suffixes if self._language else (),
            collect_votes=self.collect_votes,
        )

    def _make_draft(self) -> ScriptDraft:
        """Return a draft of the gold patch's work."""
        changes = {change.path: change for change in self.work.changes}
        command = describe_test_command(self.original)
        return ScriptDraft(changes=changes, test_command=command, n_turns=self._n_turns)

    def build(self) -> Task | None:
        """Return the task; None where too few constraints, or sources, pass the gates."""
        known = list(self.known.values())
        result = select_constraints(
            iterate_candidates(known, self.facts, self._sources, self._n_turns, self._rng),
            self.setting,
            self._rng.randint(*self.options.constraints),
            statement=self.original.problem_statement,
            tools=[self.facts.facts["tool"]],
        )
        self.refused = result.refused
        used = {item.bound.source for item in result.kept}
        if len(result.kept) < self.options.constraints[0] or len(used) < self.options.sources[0]:
            return None
        return self.make_task(result.kept, self._draw_conflict(result.kept))

    def _draw_conflict(self, kept: Sequence[DrawnConstraint]) -> BoundConstraint | None:
        """Return an instruction that one of the task's excludes and takes precedence over; None for most tasks."""
        can_state = any(item.bound.source in STATING_SOURCES for item in kept)
        if self._rng.random() >= CONFLICT_SHARE or not can_state:
            return None
        # The winner stands in a higher source, so that the stated order decides.
        names = {item.bound.name for item in kept}
        open_constraints = [constraint for constraint in self.known.values() if constraint.name not in names]
        for winner in kept:
            for constraint in open_constraints:
                is_conflict = constraint.conflicts_with(winner.known)
                if is_conflict and (bound := self._bind_below(constraint, winner.bound.source)) is not None:
                    return bound.model_copy(update={"overridden_by": winner.bound.name})
        return None

    def _bind_below(self, constraint: KnownConstraint, source: InstructionSource) -> BoundConstraint | None:
        """Return a constraint bound to a source of the task that has less precedence than another; None for none."""
        order = list(InstructionSource)
        lower = [other for other in self._sources if order.index(other) > order.index(source)]
        possible = [other for other in lower if other in constraint.sources]
        if not possible or constraint.from_turn > 1 or not fits_task(constraint, self.facts, possible, self._n_turns):
            return None
        return bind_constraint(constraint, possible[0], self.facts, self._n_turns, self._rng).bound

    def make_task(self, kept: Sequence[DrawnConstraint], overridden: BoundConstraint | None = None) -> Task:
        """Return the task with constraints that have passed the gates.

        Args:
            kept: the constraints.
            overridden: a further one that one of these takes precedence over; None for none.
        """
        constraints = [item.bound for item in kept] + ([overridden] if overridden else [])
        order = list(InstructionSource)
        constraints.sort(key=lambda constraint: (order.index(constraint.source), constraint.turn, constraint.name))
        oracle = InstructionOracle(
            constraints=tuple(constraints),
            turns=tuple(self._rng.sample(TURN_REQUESTS, self._n_turns - 1)),
            precedence=tuple(order) if overridden else (),
            skills=_make_skills(constraints, self.facts),
            tools=_make_tools(kept, constraints, self.facts),
            dutiful=self._store_script(make_script(self.setting, kept)),
            careless=tuple(
                CarelessScript(
                    constraint=item.bound.name,
                    submission=self._store_script(make_script(self.setting, kept, careless=item)),
                )
                for item in kept
            ),
            gates=dict(sorted(self.refused.items())),
        )
        fields = {
            "kind": Kind.INSTRUCTIONS,
            "name": f"{self.original.name}.{Kind.INSTRUCTIONS}-{self.number}",
            "problem_statement": _add_instructions(self.original.problem_statement, constraints),
            "oracle": oracle,
            "variant_of": self.original.name,
            "published": None,
        }
        return self.original.model_copy(update=fields)

    def _store_script(self, script: Script) -> str:
        """Store the submission of a script, and return its hash."""
        with (
            open_task_tree(self.original, self.services) as (repository, commit),
            ScratchIndex(repository, commit) as index,
        ):
            for change in script.changes:
                if change.after is None:
                    index.remove_files([change.path])
                elif change.before != change.after:
                    index.write_file(change.path, change.after)
            patch = index.diff()
        answers = render_script(script, SCAFFOLDS[0], self.setting.workdir)
        return self.services.artifacts.put(write_submission(patch, answers))


def _make_skills(constraints: Sequence[BoundConstraint], facts: TaskFacts) -> tuple[SkillText, ...]:
    """Return the skill of a task that has instructions in one, or about one."""
    texts = [constraint.text for constraint in constraints if constraint.source is InstructionSource.SKILL]
    is_named = any(constraint.check == "skill-read" for constraint in constraints)
    if not texts and not is_named:
        return ()
    text = "\n".join(f"- {line}" for line in texts or [SKILL_FILLER])
    return (SkillText(name=facts.facts["skill"], description=SKILL_DESCRIPTION, text=text),)


def _make_tools(
    kept: Sequence[DrawnConstraint], constraints: Sequence[BoundConstraint], facts: TaskFacts
) -> tuple[ToolText, ...]:
    """Return the tool of a task that has instructions in its description, or about it."""
    known = next((item.known.tool for item in kept if item.known.tool is not None), None)
    texts = [constraint.text for constraint in constraints if constraint.source is InstructionSource.TOOL]
    if known is None:
        return ()
    description = " ".join([known.description, *texts])
    name = facts.facts["tool"]
    return (ToolText(name=name, description=description, parameters=known.parameters, answer=known.answer),)


def _add_instructions(statement: str, constraints: Sequence[BoundConstraint]) -> str:
    """Return a statement with the instructions that the user's first message has."""
    texts = [
        constraint.text
        for constraint in constraints
        if constraint.source is InstructionSource.TURN and constraint.turn == 1
    ]
    if not texts:
        return statement
    return statement.rstrip() + "\n\n" + "\n".join(f"- {text}" for text in texts) + "\n"

"""Environment of subjects with a shell: a container of the subject's image, and grading in fresh ones."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, ExitStack
from dataclasses import dataclass
from pathlib import Path
from typing import ClassVar

from backends.sandbox.base import ContainerSession
from backends.services import Services
from core.errors import InputError
from evaluation.instructions.submission import BrokenInstruction
from samplers.programs.store import ProgramStore
from samplers.rollouts.container import AddedText, RolloutContainer, open_rollout_container
from samplers.rollouts.environment import SIMULATED, EnvironmentOpener, SimulatedEnvironment
from samplers.rollouts.episode import EpisodeTraces, RolloutOpening
from samplers.rollouts.observer import StateObserver
from samplers.scaffolds.base import AgentLimits, AgentSession, SampledScaffold, Scaffold
from samplers.scaffolds.delivery import add_system
from samplers.subjects.subject import Subject
from taskdb.records import Score


@dataclass(frozen=True, kw_only=True)
class SubjectOracle:
    """Oracle of a subject, handed in by the application: samplers know no verifiers."""

    grade: Callable[[bytes], Score]
    make_gold: Callable[[], bytes]
    list_broken: Callable[[bytes], Sequence[BrokenInstruction]] = lambda _submission: ()
    """Returns the instructions that a submission broke."""


@dataclass(kw_only=True)
class ContainerEpisode:
    """An open container with an agent. `opened`: resources that are closed with it."""

    session: AgentSession
    oracle: SubjectOracle
    observer: StateObserver
    simulated: SimulatedEnvironment | None
    traces: EpisodeTraces
    opened: ExitStack
    submission: bytes = b""

    @contextlib.contextmanager
    def watch(self) -> Iterator[None]:
        """Observe the agent's tree, and count the programs that were simulated."""
        with self.observer:
            try:
                yield
            finally:
                self.traces.simulated_calls = self.simulated.count_calls() if self.simulated else 0


@dataclass(frozen=True, kw_only=True)
class ContainerEnvironment:
    """Opens the containers of rollouts (`samplers.rollouts.episode.SampledEnvironment`). Threads may share it."""

    services: Services
    programs: ProgramStore | None
    """None where the sandbox has no volumes for them."""
    agent_socket: Path | None
    """The gateway's socket for containers; None where no scaffold uses a model."""
    limits: AgentLimits
    find_oracle: Callable[[Subject], SubjectOracle]
    open_simulated: EnvironmentOpener | None = None
    """Opens the object that stands for the environment of a simulated task; None where no such task is sampled."""
    refusal: ClassVar[str] = "no-image"
    scores_open_episodes: ClassVar[bool] = False

    def begin_traces(self, scaffold: SampledScaffold) -> EpisodeTraces:
        """Return nothing."""
        del scaffold
        return EpisodeTraces()

    def open(self, request: RolloutOpening, name: str) -> ContainerEpisode:
        """Open the container of a rollout.

        Raises:
            Transient: the engine failed, or the container does not start.
            InputError: there is no such image, or the base tree of a simulated task cannot be read.
        """
        del name
        subject, oracle = request.subject, self.find_oracle(request.subject)
        with contextlib.ExitStack() as opening:
            simulated = opening.enter_context(self._open_simulated(subject))
            container = opening.enter_context(self._open_container(request, simulated))
            request.traces.seconds["start"] = container.start_seconds
            shell = simulated.attach(container.shell) if simulated else container.shell
            observer = StateObserver(container, request.read_usage, request.traces.states)
            return ContainerEpisode(
                session=self._make_session(request, container, shell, observer, oracle),
                oracle=oracle,
                observer=observer,
                simulated=simulated,
                traces=request.traces,
                opened=opening.pop_all(),
            )

    def evaluate(self, episode: ContainerEpisode) -> Score:
        """Return the score of the submission, graded in fresh containers."""
        return episode.oracle.grade(episode.submission)

    def close(self, episode: ContainerEpisode) -> None:
        """Remove the container."""
        episode.opened.close()

    def _open_container(
        self, request: RolloutOpening, simulated: SimulatedEnvironment | None
    ) -> AbstractContextManager[RolloutContainer]:
        subject, programs = request.subject, self.programs
        socket = self.agent_socket if request.scaffold.uses_model and programs else None
        return open_rollout_container(
            simulated.image if simulated else subject.image or self._require_programs(subject).get_image(),
            subject,
            self.services,
            seconds=self.limits.seconds,
            programs=programs.ensure(request.scaffold.program) if programs else (),
            gateway_folder=socket.parent if socket else None,
            environment=simulated,
            added=_find_added_text(request),
            memory=_build_memory(request),
        )

    @contextlib.contextmanager
    def _open_simulated(self, subject: Subject) -> Iterator[SimulatedEnvironment | None]:
        """Open the object that stands for the environment of a simulated task; None for other tasks."""
        if subject.environment != SIMULATED or self.open_simulated is None:
            yield None
            return
        with self.open_simulated(subject.id) as simulated:
            yield simulated

    def _require_programs(self, subject: Subject) -> ProgramStore:
        if self.programs is None:
            raise InputError(f"{subject.name} needs a small image", advice="--sandbox docker")
        return self.programs

    def _make_session(
        self,
        request: RolloutOpening,
        container: RolloutContainer,
        shell: ContainerSession,
        observer: StateObserver,
        oracle: SubjectOracle,
    ) -> AgentSession:
        return AgentSession(
            subject=request.subject,
            shell=shell,
            gateway=request.endpoint,
            model=request.plan.model,
            sampling=request.plan.sampling,
            limits=self.limits,
            guidance=add_system(request.subject.guidance, request.plan.system),
            add_repository_text=container.add_repository_text,
            make_gold=oracle.make_gold,
            collect_submission=container.collect_submission,
            observe_state=observer.observe_before_request,
            list_broken=oracle.list_broken,
            may_continue=request.may_continue,
        )


def _find_added_text(request: RolloutOpening) -> AddedText | None:
    """Return the text of a rollout that its scaffold adds to a file of the repository; None for none."""
    text, scaffold = request.subject.guidance.repository, request.scaffold
    path = scaffold.repository_file if isinstance(scaffold, Scaffold) else ""
    return AddedText(path=path, text=text) if text and path else None


def _build_memory(request: RolloutOpening) -> dict[str, bytes]:
    """Return the file that a rollout's scaffold keeps for its user, unless it writes it by itself."""
    text, scaffold = request.subject.guidance.memory, request.scaffold
    path = scaffold.memory_file if isinstance(scaffold, Scaffold) else ""
    return {path: text.encode()} if text and path else {}

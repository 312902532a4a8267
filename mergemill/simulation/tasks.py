"""Simulated tasks as environments: for agents of `mergemill sample`, and as episodes of the `swe` pack.

The base tree is that of the store or a clone, the simulator is the model at --llm, and its answers are kept in the
store: `simulated-programs/` has the ledger of all commands that were ever answered.
"""

from __future__ import annotations

import contextlib
import functools
import hashlib
import shutil
import tempfile
import threading
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, replace
from pathlib import Path

from backends.git import GitRepository, list_patch_paths
from backends.llm.ledger import CallLedger
from backends.overlay import open_task_tree
from backends.sandbox.base import ContainerSession
from backends.sandbox.container_names import make_folder_prefix
from backends.sandbox.execution import ExecResult
from backends.sandbox.locks import hold_machine_lock
from backends.sandbox.registry import find_host_image
from backends.services import Services
from builders.source_tree import IncompleteCloneError, write_history_tar
from core.errors import InputError, MergemillError, UsageError
from core.settings.models import OFF, LlmSettings
from evaluation.solution_lines import SolutionLines, make_solution_lines
from samplers.rollouts.environment import SIMULATED, SimulatedEnvironment, SimulatorFailedError
from simulators.swe.episode import SweEpisode
from simulators.swe.execution import ExecutionSimulator, SweTask
from simulators.swe.workspace import GIT_ENV, WORKDIR, SimulatedPrograms, TreeOpener, Workspace, WorkspaceHost
from taskdb.queries import tasks as queries
from taskdb.records import Task
from taskdb.store import Store

LEDGER_FOLDER = "simulated-programs"
"""Folder of the store with the answers of the simulator."""
OUTPUT_BYTES = 2 * 1024 * 1024
EPISODE_SECONDS = 24 * 3600.0
"""Life of the container of an episode."""
WAITS = "another run answers for simulated programs in this store; this one goes on when it ends"


class SimulatedTasks:
    """Opens simulated tasks. Threads may share it; to be closed by `open_simulated_tasks`.

    Args:
        services: clones, artifacts, sandbox.
        simulator: simulator that answers for programs.
        get_image: function that returns the image of the containers.
        folder: folder for temporary files.
        find_log: function that returns the output of a real run of a repository's tests, or an empty text.
    """

    def __init__(
        self,
        services: Services,
        simulator: ExecutionSimulator,
        get_image: Callable[[], str],
        folder: Path,
        find_log: Callable[[str], str],
    ) -> None:
        self.simulator = simulator
        self._services = services
        self._get_image = get_image
        self._of_host = find_host_image(services.settings.sandbox.kind) is not None
        self._find_log = find_log
        self._folder = folder
        self._lock = threading.Lock()
        self._prepared: dict[str, PreparedTask] = {}

    @contextlib.contextmanager
    def open_environment(self, task: Task) -> Iterator[SimulatedEnvironment]:
        """Open the services that the container of an agent needs for a task.

        Raises:
            InputError: its base tree cannot be read.
        """
        prepared = self.prepare(task)
        answer = functools.partial(self.simulator.answer, prepared.task)
        with SimulatedPrograms(answer, of_host=self._of_host) as programs:
            sessions: list[AgentWorkspace] = []

            def attach(shell: ContainerSession) -> ContainerSession:
                sessions.append(AgentWorkspace(programs.attach(shell)))
                return sessions[0]

            yield SimulatedEnvironment(
                image=self._get_image(),
                tree=prepared.open_tree,
                attach=attach,
                count_calls=lambda: sum(session.workspace.n_simulated for session in sessions),
                env=GIT_ENV,
                mounts=programs.mounts,
            )

    def open_episode(self, task: Task) -> SweEpisode:
        """Return an episode of the `swe` pack on a task, which `reset` opens.

        Raises:
            InputError: the task is not simulated, or its base tree cannot be read.
        """
        if task.environment != SIMULATED:
            raise InputError(f"{task.name} is no simulated task", advice="--environment simulated selects these")
        limits = replace(self._services.test_limits(), seconds=EPISODE_SECONDS, output_bytes=OUTPUT_BYTES)
        host = WorkspaceHost(
            sandbox=self._services.sandbox, image=self._get_image(), limits=limits, of_host=self._of_host
        )
        prepared = self.prepare(task)
        return SweEpisode(prepared.task, task.problem_statement, host, prepared.open_tree, self.simulator)

    def prepare(self, task: Task) -> PreparedTask:
        """Return the facts that the simulator is given of a task, and its tree; made once.

        Raises:
            InputError: the base tree cannot be read.
        """
        # Held while a task is prepared, so that threads with the same task prepare it once.
        with self._lock:
            if task.id not in self._prepared:
                self._prepared[task.id] = self._prepare(task)
            return self._prepared[task.id]

    def _prepare(self, task: Task) -> PreparedTask:
        get = self._services.artifacts.get
        gold, tests = get(task.gold_patch), get(task.test_patch)
        target = self._folder / f"{hashlib.sha256(task.id.encode()).hexdigest()}.tar"
        with open_task_tree(task, self._services) as (history, commit):
            solution_lines = find_solution_lines(task, (gold, tests), history, commit)
            try:
                with target.open("wb") as file:
                    write_history_tar(history, commit, file, at=WORKDIR)
            except IncompleteCloneError as error:
                raise InputError(f"the base tree of {task.name} cannot be read: {error}") from error
        swe_task = SweTask(
            id=task.id,
            name=task.name,
            repo=task.repo,
            language=task.language,
            solution_lines=solution_lines,
            gold_patch=gold.decode(errors="replace"),
            test_patch=tests.decode(errors="replace"),
            gold_files=tuple(list_patch_paths(gold)),
            real_log=self._find_log(task.repo),
        )
        return PreparedTask(task=swe_task, tree=target)


@dataclass(frozen=True, kw_only=True)
class PreparedTask:
    """A task for the simulator, and the tar of its repository."""

    task: SweTask
    tree: Path

    @property
    def open_tree(self) -> TreeOpener:
        """Opens the tar."""
        return lambda: self.tree.open("rb")


class AgentWorkspace:
    """Session of an agent in which programs are simulated (`backends.sandbox.base.ContainerSession`)."""

    def __init__(self, workspace: Workspace) -> None:
        self.workspace = workspace

    def run(self, command: str, *, seconds: float) -> ExecResult:
        """Run a line of Bash.

        Raises:
            SimulatorFailedError: the simulator's endpoint failed while it ran.
        """
        result = self.workspace.shell.run(command, seconds=seconds)
        if (failure := self.workspace.failure) is not None:
            raise SimulatorFailedError(f"the simulator failed: {failure}", advice=failure.advice)
        return result

    def read_file(self, path: str) -> bytes | None:
        """Return the content of a file, or None."""
        return self.workspace.read_file(path)

    def write_files(self, files: Mapping[str, bytes], *, mode: int = 0o644) -> None:
        """Write files."""
        self.workspace.write_files(files, mode=mode)


def find_solution_lines(task: Task, patches: tuple[bytes, bytes], history: GitRepository, commit: str) -> SolutionLines:
    """Return the solution lines of a task: lines of its patches and names of its tests that its base tree lacks."""
    # Regular files alone: links and submodules hold no lines.
    entries = [entry for entry in history.ls_tree(commit) if entry.mode.startswith("100")]
    solution_lines = make_solution_lines(patches, history.read_blobs([entry.oid for entry in entries]))
    files = {test.partition("::")[0] for test in list_tests(task)}
    known = list(history.read_blobs([entry.oid for entry in entries if entry.path in files]))
    # Without the parameters of a test, which its source does not spell.
    names = {test.rpartition("::")[2].partition("[")[0] for test in list_tests(task)}
    hidden = {name for name in names if name and not any(name.encode() in content for content in known)}
    return replace(solution_lines, names=frozenset(hidden))


def list_tests(task: Task) -> list[str]:
    """Return the ids of a task's tests."""
    return [*(test for test, _ in task.FAIL_TO_PASS), *task.PASS_TO_PASS]


@contextlib.contextmanager
def open_simulated_tasks(
    services: Services,
    store: Store,
    get_image: Callable[[], str],
    print_message: Callable[[str], None],
    *,
    slot: str = "",
) -> Iterator[SimulatedTasks]:
    """Open the object that opens simulated tasks; one process at a time for each store.

    Args:
        services: services with the model that simulates.
        store: searched for logs of real runs.
        get_image: function that returns the image of containers, where the sandbox is not of this machine's programs.
        print_message: function that shows a line for people.
        slot: slot of a worker process of a cluster, whose ledger is in a folder of its own.

    Raises:
        UsageError: no model is set.
        InputError, Transient: the ledger cannot be written.
    """
    check_simulator(services.settings.llm)
    # For the type checker alone, as `check_simulator` raises an error where no model is set.
    assert services.model is not None  # noqa: S101
    folder = services.settings.storage.store_dir / (LEDGER_FOLDER + slot)
    host_image = find_host_image(services.settings.sandbox.kind)
    scratch = Path(tempfile.mkdtemp(prefix=make_folder_prefix("simulated")))
    try:
        with (
            hold_machine_lock("simulated", str(folder.resolve()), on_wait=lambda: print_message(WAITS)),
            CallLedger(folder) as ledger,
        ):
            simulator = ExecutionSimulator(services.model, ledger, answer_tokens=services.settings.llm.answer_tokens)
            yield SimulatedTasks(
                services,
                simulator,
                get_image if host_image is None else lambda: host_image,
                scratch,
                functools.partial(find_real_log, store, services),
            )
    finally:
        shutil.rmtree(scratch, ignore_errors=True)


def check_simulator(llm: LlmSettings) -> None:
    """Check that a model is set which answers for programs.

    Raises:
        UsageError: none is.
    """
    if llm.url == OFF:
        advice = "set --llm URL and --simulator-model NAME"
        raise UsageError("simulated tasks need a model that answers for programs", advice=advice)


def find_real_log(store: Store, services: Services, repo: str) -> str:
    """Return the log of the newest verified gold run of a repository; empty where there is none, or it is missing."""
    log = queries.find_gold_log(store, repo)
    if log is None:
        return ""
    try:
        return services.artifacts.get(log).decode(errors="replace")
    except MergemillError:
        return ""

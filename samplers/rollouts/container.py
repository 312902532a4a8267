"""The container of a rollout: the subject's image without network, the programs, and a way to the gateway alone."""

from __future__ import annotations

import contextlib
import shlex
import time
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from pathlib import Path

from backends.sandbox.base import ContainerSession
from backends.sandbox.mounts import Mount
from backends.services import Services
from core.errors import Transient
from evaluation.instructions.repository_text import render_addition, render_cut, render_text
from guest.agents import PROGRAM_FOLDER
from samplers.programs.program import PYTHON
from samplers.rollouts.environment import SimulatedEnvironment
from samplers.subjects.subject import Subject

PRIVATE = "/run/mergemill"
GATEWAY_FOLDER = f"{PRIVATE}/gateway"
"""Folder of the gateway's socket, in the container."""
GATEWAY_PORT = 8411
GATEWAY_URL = f"http://127.0.0.1:{GATEWAY_PORT}"
FORWARD_FILE = f"{PRIVATE}/forward.py"
BASE_GIT = f"{PRIVATE}/base.git"
"""Copy of the repository as the agent was given it: whatever it does to its own, differences are of this container."""
SUBMISSION_FILE = f"{PRIVATE}/submission.patch"
ADDED_TEXT = f"{PRIVATE}/repository"
"""Folder with the text that was appended to a file of the repository."""
START_SECONDS = 120.0
COLLECT_SECONDS = 300.0
GRACE_SECONDS = 900.0
"""Life of a container beyond the agent's time: start, collecting, and ending programs."""
OUTPUT_BYTES = 2 * 1024 * 1024
_GIT = (
    "export GIT_DIR={git} GIT_WORK_TREE={workdir} GIT_INDEX_FILE={index} GIT_CONFIG_NOSYSTEM=1 HOME={private}; "
    "rm -f {index}; git read-tree HEAD && git -c core.fsmonitor=false -c advice.addEmbeddedRepo=false add -A -- . && "
    "{cut} && "
)
_REVIEW_STEPS = (
    "git init -q . && git add -A && git -c user.name=task -c user.email=task@localhost commit -qm 'Base commit'"
)


class LostContainerError(Exception):
    """The container was ended by a limit: the state that it held is gone."""


@dataclass(frozen=True, kw_only=True)
class AddedText:
    """A text that is appended to a file of the repository. `path`: of the file, in the working directory."""

    path: str
    text: str


@dataclass(frozen=True, kw_only=True)
class RolloutContainer:
    """A started container, and the data that is read from it."""

    shell: ContainerSession
    """As this process uses it.

    The container that the agent is given may be another container (`SimulatedEnvironment.attach`).
    """
    subject: Subject
    start_seconds: float
    added: AddedText | None = None
    """Text that was appended as the container started; None for none."""
    added_content: str = ""
    """Content of its file then."""

    def add_repository_text(self, path: str, text: str) -> str:
        """Append a text to a file of the repository, made where it is missing, of which no difference has anything.

        One that was appended as the container started is not appended again. Returns what the file has then.

        Raises:
            Transient: the engine failed, or the file cannot be written.
        """
        if self.added == AddedText(path=path, text=text):
            return self.added_content
        self.shell.write_files({f"{ADDED_TEXT}/text": render_text(text)})
        result = self.shell.run(render_addition(self.subject.workdir, path, ADDED_TEXT), seconds=START_SECONDS)
        if result.exit_code:
            raise Transient(f"{path} cannot be written: {' '.join(result.output.split())[-300:]}")
        return result.output

    def collect_submission(self) -> bytes:
        """Return the agent's difference to the base tree as a patch, or the content of its answer file.

        Raises:
            LostContainerError: the container is gone, or has no repository any more.
            Transient: the engine failed.
        """
        if self.subject.answer is not None:
            return self.shell.read_file(self.subject.answer) or b""
        diff = f"git diff --cached --binary --full-index --no-ext-diff --no-textconv HEAD > {SUBMISSION_FILE}"
        result = self.shell.run(self._render_git("collect", diff), seconds=COLLECT_SECONDS)
        patch = self.shell.read_file(SUBMISSION_FILE) if not result.exit_code else None
        if patch is None:
            raise LostContainerError(" ".join(result.output.split())[-200:] or "the container is gone")
        return patch

    def hash_tree(self) -> str | None:
        """Return the git tree of the agent's files; None where it cannot be computed."""
        if self.subject.answer is not None:
            return None
        result = self.shell.run(self._render_git("state", "git write-tree"), seconds=COLLECT_SECONDS)
        return result.output.split()[-1] if not result.exit_code and result.output.split() else None

    def _render_git(self, purpose: str, command: str) -> str:
        workdir = shlex.quote(self.subject.workdir)
        index, cut = f"{PRIVATE}/{purpose}.index", render_cut(ADDED_TEXT)
        setup = _GIT.format(git=BASE_GIT, workdir=workdir, index=index, private=PRIVATE, cut=cut)
        return f"cd {workdir} && {{ {setup}{command}; }}"


@contextlib.contextmanager
def open_rollout_container(
    image: str,
    subject: Subject,
    services: Services,
    *,
    seconds: float,
    programs: tuple[Mount, ...],
    gateway_folder: Path | None,
    environment: SimulatedEnvironment | None = None,
    added: AddedText | None = None,
    memory: Mapping[str, bytes] | None = None,
) -> Iterator[RolloutContainer]:
    """Open the container of a rollout, ready for the agent.

    Args:
        image: image of the subject, or a small system for a subject without an image.
        subject: subject whose files are written first.
        services: sandbox and limits.
        seconds: time of the agent.
        programs: volumes of the portable Python and of the scaffold's program.
        gateway_folder: folder of the gateway's socket on this machine; None where nothing inside uses a model.
        environment: environment of a task that has no image.
        added: text for a file of the repository, appended by the command that starts the container; None for none.
        memory: absolute path -> content of the files that the scaffold keeps for its user; None for none.

    Raises:
        Transient: the engine failed, or the container does not start.
        InputError: there is no such image, or the tree of the subject cannot be read.
    """
    limits = replace(services.test_limits(), seconds=seconds + GRACE_SECONDS, output_bytes=OUTPUT_BYTES)
    mounts = [*programs]
    if gateway_folder is not None:
        mounts.append(Mount(source=str(gateway_folder.resolve()), target=GATEWAY_FOLDER))
    files = {FORWARD_FILE: (PROGRAM_FOLDER / "forward.py").read_bytes(), **subject.files, **(memory or {})}
    # With the other files, as each archive that a running container is sent costs a request of the engine.
    if added is not None:
        files[f"{ADDED_TEXT}/text"] = render_text(added.text)
    started = time.perf_counter()
    with services.sandbox.open_session(
        image,
        limits=limits,
        tree=environment.tree if environment else subject.tree,
        files=files,
        env=environment.env if environment else None,
        workdir=subject.workdir,
        network=False,
        mounts=[*mounts, *(environment.mounts if environment else ())],
    ) as shell:
        script = _build_start_script(
            subject, added, forwards=gateway_folder is not None, checks_out=environment is not None
        )
        result = shell.run(script, seconds=START_SECONDS)
        if result.exit_code:
            detail = " ".join(result.output.split())[-300:]
            raise Transient(f"the container of the agent does not start: {detail or result.killed_by}")
        yield RolloutContainer(
            shell=shell,
            subject=subject,
            start_seconds=time.perf_counter() - started,
            added=added,
            added_content=result.output,
        )


def _build_start_script(subject: Subject, added: AddedText | None, *, forwards: bool, checks_out: bool) -> str:
    """Return the Bash that copies the repository, whose files are made first, and opens the way to the gateway."""
    workdir = shlex.quote(subject.workdir)
    steps = ["set -e", f"cd {workdir}"]
    if subject.files:
        steps.append(_REVIEW_STEPS)
    if checks_out:
        steps.append("git checkout -q -f main")
    steps.append(f"cp -a .git {BASE_GIT}")
    if added is not None:  # each further command would take as long as a tenth of the start
        steps.append(f"(\n{render_addition(subject.workdir, added.path, ADDED_TEXT)})")
    if forwards:
        steps += [
            f"setsid {PYTHON} {FORWARD_FILE} {GATEWAY_PORT} {GATEWAY_FOLDER}/gateway.sock >/dev/null 2>&1 </dev/null &",
            f"opens() {{ (exec 3<>/dev/tcp/127.0.0.1/{GATEWAY_PORT}) 2>/dev/null; }}",
            "for _ in $(seq 200); do opens && exit 0; sleep 0.05; done",
            "echo 'the way to the gateway does not open'; exit 1",
        ]
    return "\n".join(steps)

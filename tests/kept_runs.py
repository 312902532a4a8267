"""Results of containers that commands get from an earlier command of the same test run.

Many tests process the changes of one small repository with the same settings, and each would run the same scripts on
the same patches in containers of the same images. A command whose variables are `tests.cli.WITH_KEPT_RUNS` keeps the
results of its containers in a folder that all processes of a test run share, and takes those of the same work from
there: its first container for some work gets the first result that was kept, its second the second. What runs in
containers, and how they start, end and are lost, is tested by commands without these variables, and by the tests of
`backends` and `verifiers`.
"""

from __future__ import annotations

import contextlib
import hashlib
import os
import pickle
import re
import tempfile
import threading
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path

from backends.sandbox.base import ContainerPool
from backends.sandbox.docker import DockerSandbox
from backends.sandbox.execution import ExecResult, ResourceLimits

FOLDER = "TESTS_KEPT_RUNS"
"""Variable of the environment with the folder that all processes of a test run share."""
_DRAWN_NAME = re.compile(r"/mergemill-([0-9a-f]{16})")
_TIME_LIMITS = ("/seconds", "/settings")
"""Ends of the paths of files that begin with a time limit, which depends on how long an earlier container took."""
_FIRST_WORD = re.compile(rb"^\S+")

open_pool = DockerSandbox.open_pool


@dataclass
class KeptRuns:
    """Results in a folder, in files named by the work whose results they are."""

    folder: Path
    counts: Counter[str] = field(default_factory=Counter)
    """Work -> how many containers of this process have done it."""
    lock: threading.Lock = field(default_factory=threading.Lock)

    def name_next(self, work: str) -> Path:
        """Return the file for the next result of some work."""
        with self.lock:
            self.counts[work] += 1
            return self.folder / f"{work}-{self.counts[work]}"

    def keep(self, file: Path, result: ExecResult) -> None:
        """Write a result, unless another process has done so; none of a container that exceeded a limit."""
        if not file.exists() and not result.killed_by:
            with tempfile.NamedTemporaryFile(dir=self.folder, delete=False) as new:
                new.write(pickle.dumps(result))
            Path(new.name).rename(file)


class DrawnNames:
    """Drawn names of folders in a command, in the order in which they occur; its files and output have them, too."""

    def __init__(self, command: Sequence[str]) -> None:
        self.names = list(dict.fromkeys(_DRAWN_NAME.findall("\0".join(command))))

    def hide(self, text: str) -> str:
        """Return a text with numbers for the names."""
        for number, name in enumerate(self.names):
            text = text.replace(name, f"<{number}>")
        return text

    def show(self, text: str) -> str:
        """Return a text with the names for their numbers."""
        for number, name in enumerate(self.names):
            text = text.replace(f"<{number}>", name)
        return text


class KeptRunsPool:
    """A pool that opens another one when it needs a container."""

    def __init__(self, sandbox: DockerSandbox, image: str, limits: ResourceLimits, kept: KeptRuns) -> None:
        self._sandbox = sandbox
        self._image = image
        self._limits = limits
        self._kept = kept
        self._opened = contextlib.ExitStack()
        self._pool: ContainerPool | None = None

    def run(
        self,
        command: Sequence[str],
        *,
        files: Mapping[str, bytes] | None = None,
        collect: Sequence[str] = (),
        env: Mapping[str, str] | None = None,
        seconds: float | None = None,
        last: bool = False,
    ) -> ExecResult:
        """Return the result of an earlier container, or run the command in one."""
        drawn = DrawnNames(command)
        file = self._kept.name_next(self._name_work(drawn, command, files or {}, collect, env or {}))
        if file.exists():
            self._sandbox.engine.leases.acquire(self._image)
            self._sandbox.engine.record_use(self._image)
            kept: ExecResult = pickle.loads(file.read_bytes())  # noqa: S301 - written by a process of the tests
            files = {drawn.show(path): content for path, content in kept.files.items()}
            return replace(kept, files=files, output=drawn.show(kept.output))
        if self._pool is None:
            self._pool = self._opened.enter_context(open_pool(self._sandbox, self._image, limits=self._limits))
        result = self._pool.run(command, files=files, collect=collect, env=env, seconds=seconds, last=last)
        hidden = {drawn.hide(path): content for path, content in result.files.items()}
        self._kept.keep(file, replace(result, files=hidden, output=drawn.hide(result.output)))
        return result

    def _name_work(
        self,
        drawn: DrawnNames,
        command: Sequence[str],
        files: Mapping[str, bytes],
        collect: Sequence[str],
        env: Mapping[str, str],
    ) -> str:
        """Return a hash of what decides the result of a container; the time limit of a repeated run does not."""
        contents = {
            drawn.hide(path): _FIRST_WORD.sub(b"", content) if path.endswith(_TIME_LIMITS) else content
            for path, content in files.items()
        }
        where = (os.environ.get("DOCKER_HOST"), self._image, self._limits)
        words = [drawn.hide(word) for word in (*command, *collect)]
        return hashlib.sha256(repr((where, words, sorted(contents.items()), sorted(env.items()))).encode()).hexdigest()

    def close(self) -> None:
        """Close the pool that was opened."""
        self._opened.close()


def keep_runs() -> None:
    """Let this process take the results of its containers from the folder, and keep those that are not there."""
    kept = KeptRuns(Path(os.environ[FOLDER]))

    @contextlib.contextmanager
    def open_kept_pool(self: DockerSandbox, image: str, *, limits: ResourceLimits) -> Iterator[KeptRunsPool]:
        with contextlib.closing(KeptRunsPool(self, image, limits, kept)) as pool:
            yield pool

    DockerSandbox.open_pool = open_kept_pool  # type: ignore[method-assign, assignment]

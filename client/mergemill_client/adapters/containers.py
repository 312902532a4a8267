"""Container in which an agent works on a task: without network, by the `docker` command of this machine."""

from __future__ import annotations

import io
import os
import subprocess
import tarfile
import uuid
from pathlib import PurePosixPath

MAX_OUTPUT = 16_000
"""Characters of a command's output that an agent is shown."""
COLLECT_SECONDS = 120
ENGINE = "MERGEMILL_DOCKER"
"""Variable with the docker command, such as `podman`."""


class ContainerError(RuntimeError):
    """The engine failed: the rollout has no result."""


class TaskContainer:
    """Started container of a task's image. Commands run as the image's ordinary user `mergemill` in its repository."""

    def __init__(self, image: str, workdir: str, *, memory_mb: int = 4096, pids: int = 512) -> None:
        self.name = f"mergemill-agent-{uuid.uuid4().hex[:12]}"
        self.workdir = workdir
        # As in a run of the tests, /dev/shm is half of the memory; the engine's default of 64 MB is too small for some.
        memory = ["--memory", f"{memory_mb}m", "--shm-size", f"{memory_mb // 2}m"]
        limits = ["--network", "none", *memory, "--pids-limit", str(pids)]
        self._call(
            "run", "--detach", "--init", "--name", self.name, *limits, "--entrypoint", "sleep", image, "infinity"
        )

    def run(self, command: str, *, seconds: float = 300.0) -> str:
        """Return the output of a command, cut in the middle where it is long, and its exit code where it is not 0."""
        words = ("exec", "--user", "mergemill", "--workdir", self.workdir, self.name)
        limit = ("timeout", "-k", "5", str(seconds), "bash", "-c", command)
        done = self._execute(*words, *limit, seconds=seconds + 60)
        output = (done.stdout + done.stderr).decode(errors="replace")
        if len(output) > MAX_OUTPUT:
            output = f"{output[: MAX_OUTPUT // 2]}\n...\n{output[-MAX_OUTPUT // 2 :]}"
        return output if done.returncode == 0 else f"{output}\n(exit code {done.returncode})"

    def collect(self, command: str, path: str) -> bytes:
        """Run the command that leaves the agent's work at a path, and return it.

        Raises:
            ContainerError: it cannot be collected.
        """
        line = f"mkdir -p {PurePosixPath(path).parent}; {command}"
        self._call("exec", "--user", "0", self.name, "bash", "-c", line, seconds=COLLECT_SECONDS)
        packed = self._call("cp", f"{self.name}:{path}", "-")
        with tarfile.open(fileobj=io.BytesIO(packed)) as archive:
            member = archive.next()
            file = archive.extractfile(member) if member is not None and member.isreg() else None
            if file is None:
                raise ContainerError(f"{path} is not a regular file")
            return file.read()

    def close(self) -> None:
        """Remove the container."""
        self._call("rm", "--force", "--volumes", self.name)

    def _call(self, *words: str, seconds: float = 600.0) -> bytes:
        done = self._execute(*words, seconds=seconds)
        if done.returncode != 0:
            raise ContainerError(f"docker {words[0]}: {done.stderr.decode(errors='replace').strip()[-500:]}")
        return done.stdout

    @staticmethod
    def _execute(*words: str, seconds: float) -> subprocess.CompletedProcess[bytes]:
        try:
            command = [os.environ.get(ENGINE, "docker"), *words]
            return subprocess.run(command, capture_output=True, timeout=seconds, check=False)
        except (OSError, subprocess.TimeoutExpired) as error:
            raise ContainerError(f"docker {words[0]}: {error}") from error

"""Harbor environment on a plain Docker engine: no compose, no buildx and no bind mounts, so the engine may be remote.

Every Harbor bundle holds a copy of this file, so that neither compose nor mergemill is needed where Harbor runs::

    PYTHONPATH=BUNDLE harbor run -p BUNDLE -a oracle -e harbor_engine:PlainEngine

With mergemill installed beside Harbor `-e exporters.harbor_engine:PlainEngine` is the same. Only this file imports
Harbor (0.24, 0.25), and nothing of mergemill imports this file. It uses the engine through the `docker` command.
"""

from __future__ import annotations

import asyncio
import os
import re
import shlex
from pathlib import Path, PurePosixPath
from typing import Any

from harbor.environments.base import BaseEnvironment, ExecResult
from harbor.environments.capabilities import EnvironmentCapabilities, EnvironmentResourceCapabilities
from harbor.environments.definition import require_agent_environment_definition, should_use_prebuilt_docker_image

BUILD_ARGUMENTS = "PLAIN_ENGINE_BUILD_ARGS"
"""Environment variable with build arguments for images that are built here, such as `BASE=my-mirror/python:3.12`."""
_PIDS = "4096"
_TIMED_OUT = 124
"""Exit code of coreutils' `timeout`."""


class EngineError(RuntimeError):
    """A docker command failed; the message is that of docker."""


async def run_docker(*arguments: str, env: dict[str, str] | None = None, check: bool = True) -> ExecResult:
    """Run a docker command and wait for its end.

    Raises:
        EngineError: the command failed and `check` is set.
    """
    process = await asyncio.create_subprocess_exec(
        "docker",
        *arguments,
        env={**os.environ, **(env or {})},
        stdin=asyncio.subprocess.DEVNULL,
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.PIPE,
    )
    try:
        out, err = await process.communicate()
    except asyncio.CancelledError:
        process.kill()
        await process.wait()
        raise
    result = ExecResult(
        stdout=out.decode(errors="replace"), stderr=err.decode(errors="replace"), return_code=process.returncode or 0
    )
    if check and result.return_code != 0:
        raise EngineError(f"docker {arguments[0]}: {(result.stderr or '').strip()}")
    return result


class PlainEngine(BaseEnvironment):  # type: ignore[misc]  # Harbor is not installed where this is checked
    """A container of the task's image, kept alive by `sleep`, reached by `docker exec` and `docker cp`."""

    @staticmethod
    def type() -> str:
        """Return Harbor's name of the kind of environment."""
        return "plain-engine"

    @property
    def capabilities(self) -> EnvironmentCapabilities:
        """Capabilities: the network can be disabled; nothing is mounted, files are copied."""
        return EnvironmentCapabilities(disable_internet=True)

    @classmethod
    def resource_capabilities(cls) -> EnvironmentResourceCapabilities:
        """Return the supported limits: CPU and memory."""
        return EnvironmentResourceCapabilities(cpu_limit=True, memory_limit=True)

    @property
    def container(self) -> str:
        """Name of the container."""
        return "plain-engine-" + re.sub(r"[^A-Za-z0-9_.-]", "-", self.session_id).lower()

    def _validate_definition(self) -> None:
        require_agent_environment_definition(self.environment_dir, docker_image=self.task_env_config.docker_image)

    async def _image(self, *, force_build: bool) -> str:
        """Return the image: the task's own if the engine has it or can pull it, else one built from the Dockerfile."""
        image = self.task_env_config.docker_image
        if should_use_prebuilt_docker_image(self.environment_dir, docker_image=image, force_build=force_build):
            image_id = await run_docker("image", "inspect", "--format", "{{.Id}}", str(image), check=False)
            if (
                image_id.return_code == 0
                or (await run_docker("pull", "--quiet", str(image), check=False)).return_code == 0
            ):
                return str(image)
            if not (self.environment_dir / "Dockerfile").is_file():
                raise EngineError(f"the engine has no image {image} and cannot pull it")
        tag = f"plain-engine:{self.environment_id[:24]}"
        words = shlex.split(os.environ.get(BUILD_ARGUMENTS, ""))
        arguments = [part for word in words for part in ("--build-arg", word)]
        build = ["build", "--quiet", *arguments, "--tag", tag, str(self.environment_dir)]
        await run_docker(*build, env={"DOCKER_BUILDKIT": "0"})
        return tag

    async def start(self, force_build: bool) -> None:
        """Start a fresh container with Harbor's log folders in it."""
        image = await self._image(force_build=force_build)
        await run_docker("rm", "--force", "--volumes", self.container, check=False)
        limits = ["--pids-limit", _PIDS]
        if cpus := self._effective_cpus:
            limits += ["--cpus", str(cpus)]
        if memory := self._effective_memory_mb:
            limits += ["--memory", f"{memory}m", "--memory-swap", f"{memory}m", "--shm-size", f"{memory // 2}m"]
        network = "none" if self._network_disabled else "bridge"
        await run_docker(
            "run",
            "--detach",
            "--init",
            "--name",
            self.container,
            "--network",
            network,
            *limits,
            "--entrypoint",
            "sleep",
            image,
            "infinity",
        )
        await self.ensure_dirs(self._mount_targets(writable_only=True))
        await self._upload_environment_dir_after_start()

    async def stop(self, delete: bool) -> None:
        """Stop the container; `delete` removes it."""
        if delete:
            await run_docker("rm", "--force", "--volumes", self.container, check=False)
        else:
            await run_docker("stop", "--time", "5", self.container, check=False)

    async def exec(
        self,
        command: str,
        cwd: str | None = None,
        env: dict[str, str] | None = None,
        timeout_sec: int | None = None,
        user: str | int | None = None,
    ) -> ExecResult:
        """Run a shell command in the container. A command that exceeds `timeout_sec` is killed and exits with 124."""
        merged = self._merge_env(env) or {}
        options = [part for name in merged for part in ("--env", name)]  # values are passed by environment, not in argv
        if (run_as := self._resolve_user(user)) is not None:
            options += ["--user", str(run_as)]
        if folder := cwd or self.task_env_config.workdir:
            options += ["--workdir", folder]
        limit = ["timeout", "--kill-after=5", str(timeout_sec)] if timeout_sec else []
        result = await run_docker(
            "exec", *options, self.container, *limit, "bash", "-c", command, env=merged, check=False
        )
        if limit and result.return_code == _TIMED_OUT:
            result.stderr = f"{result.stderr or ''}\ncommand timed out after {timeout_sec} seconds"
        return result

    async def upload_file(self, source_path: Path | str, target_path: str) -> None:
        """Copy a file into the container, owned by root."""
        await self._make_folder(PurePosixPath(target_path).parent.as_posix())
        await run_docker("cp", str(source_path), f"{self.container}:{target_path}")

    async def upload_dir(self, source_dir: Path | str, target_dir: str) -> None:
        """Copy a folder's content into the container, owned by root."""
        await self._make_folder(target_dir)
        await run_docker("cp", f"{source_dir}/.", f"{self.container}:{target_dir}")

    async def download_file(self, source_path: str, target_path: Path | str) -> None:
        """Copy a file out of the container."""
        Path(target_path).parent.mkdir(parents=True, exist_ok=True)
        await run_docker("cp", f"{self.container}:{source_path}", str(target_path))

    async def download_dir(self, source_dir: str, target_dir: Path | str) -> None:
        """Copy a folder's content out of the container."""
        Path(target_dir).mkdir(parents=True, exist_ok=True)
        await run_docker("cp", f"{self.container}:{source_dir}/.", str(target_dir))

    async def _make_folder(self, path: str) -> None:
        await run_docker("exec", "--user", "root", self.container, "mkdir", "-p", path)

    def __repr__(self) -> str:
        known: dict[str, Any] = {"container": self.container}
        return f"PlainEngine({known})"

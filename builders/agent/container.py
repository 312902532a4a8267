"""The container that a model inspects: started from the last image of the failed attempt, with the tree and the log."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import AbstractContextManager, ExitStack
from dataclasses import dataclass, replace
from functools import partial

from backends.sandbox.base import ContainerSession
from builders import bases, layers, source_tree
from builders.host_settings import collect_host_settings
from builders.repair.policy import RepairCase
from taskdb.records import BuildPlan

LOG_FILE = "/run/mergemill/attempt.log"
OUTPUT_BYTES = 256 * 1024
"""Limit of one command's output; the model receives less."""


@dataclass(frozen=True, kw_only=True)
class InspectionImage:
    """An image to inspect, with one line about the state of the build, and whether it contains the tree."""

    image: str
    description: str
    has_tree: bool


class InspectionContainer:
    """One container session at a time, replaced for each attempt; the container starts at the first command.

    Args:
        case: the candidate.
        seconds: function that returns the remaining time.
    """

    def __init__(self, case: RepairCase, seconds: Callable[[], float]) -> None:
        self._case = case
        self._seconds = seconds
        self._stack = ExitStack()
        self._session: ContainerSession | None = None

    def start(self, plan: BuildPlan, log: str) -> str:
        """Replace the session by one for this attempt; return the description of its image."""
        self.close()
        image = _find_last_image(plan, self._case)
        self._session = self._stack.enter_context(self._open_session(plan, image, log))
        return image.description

    def get_session(self) -> ContainerSession:
        """Return the current session.

        Raises:
            RuntimeError: `start` was not called.
        """
        if self._session is None:
            raise RuntimeError("call start first")
        return self._session

    def close(self) -> None:
        """Remove the container."""
        self._stack.close()
        self._stack, self._session = ExitStack(), None

    def _open_session(
        self, plan: BuildPlan, image: InspectionImage, log: str
    ) -> AbstractContextManager[ContainerSession]:
        services, candidate = self._case.services, self._case.candidate
        files, env = collect_host_settings(services.settings.host)
        env |= {"PATH": bases.build_base_env(plan.language)["PATH"], **dict(plan.env)}
        limits = replace(services.build_limits(), seconds=max(self._seconds(), 1.0), output_bytes=OUTPUT_BYTES)
        repository = self._case.tree.repository
        tree = partial(source_tree.open_tree_tar, repository, candidate.base_commit, at=plan.workdir)
        return services.sandbox.open_session(
            image.image,
            limits=limits,
            tree=None if image.has_tree else tree,
            files=files | {LOG_FILE: log.encode(errors="replace")},
            env=env,
            workdir=plan.workdir,
        )


def _find_last_image(plan: BuildPlan, case: RepairCase) -> InspectionImage:
    """Return the last image that exists for a plan: source layer, dependency layer or base."""
    images, candidate = case.services.images, case.candidate
    source = layers.compute_source_image_name(plan, case.tree.repository, candidate.base_commit, candidate.repo)
    if images.inspect(source):
        description = "the image in which the tests ran; the project is installed"
        return InspectionImage(image=source, has_tree=True, description=description)
    if images.inspect(plan.dependency_image):
        description = (
            "the dependencies are installed and the project's files are present, but its own steps did not run"
        )
        return InspectionImage(image=plan.dependency_image, has_tree=False, description=description)
    base = bases.ensure_base(plan.language, plan.language_version, case.services)
    description = "the bare base with the project's files; no dependency step ran"
    return InspectionImage(image=base.name, has_tree=False, description=description)

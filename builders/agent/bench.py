"""The container in which a model looks around: as far as the failed attempt came, with the tree and its log."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import AbstractContextManager, ExitStack
from dataclasses import dataclass, replace
from functools import partial

from backends.sandbox.base import Shell
from builders import bases, layers, seed
from builders.borrowed import borrowed
from builders.repair.policy import Case
from taskdb.records import BuildPlan

LOG_FILE = "/run/mergemill/attempt.log"
OUTPUT_BYTES = 256 * 1024
"""Of one command, read and kept; the model is shown less."""


@dataclass(frozen=True, kw_only=True)
class Place:
    """An image to look around in. `what` says in a line how far it came; `whole`: whether the tree is in it."""

    image: str
    what: str
    whole: bool


class Bench:
    """One container at a time; a new attempt brings a new one, which starts at the first command.

    Args:
        case: the candidate.
        seconds: what is left of its time.
    """

    def __init__(self, case: Case, seconds: Callable[[], float]) -> None:
        self._case = case
        self._seconds = seconds
        self._open = ExitStack()
        self._shell: Shell | None = None

    def set_up(self, plan: BuildPlan, log: str) -> str:
        """Take the container of the last attempt away and have one for this one; what it is, in a line."""
        self.close()
        place = _place(plan, self._case)
        self._shell = self._open.enter_context(self._made(plan, place, log))
        return place.what

    def shell(self) -> Shell:
        """That of the container there is now."""
        if self._shell is None:
            raise RuntimeError("set_up comes first")
        return self._shell

    def close(self) -> None:
        """Take the container away."""
        self._open.close()
        self._open, self._shell = ExitStack(), None

    def _made(self, plan: BuildPlan, place: Place, log: str) -> AbstractContextManager[Shell]:
        services = self._case.services
        files, env = borrowed(services.settings)
        env |= {"PATH": bases.environment(plan.language)["PATH"], **dict(plan.env)}
        limits = replace(services.build_limits(), seconds=max(self._seconds(), 1.0), output_bytes=OUTPUT_BYTES)
        tree = partial(seed.tar_stream, self._case.tree.repository, self._case.candidate.base_commit, at=plan.workdir)
        return services.sandbox.shell(
            place.image, limits=limits, tree=None if place.whole else tree,
            files=files | {LOG_FILE: log.encode(errors="replace")}, env=env, workdir=plan.workdir,
        )  # fmt: skip


def _place(plan: BuildPlan, case: Case) -> Place:
    """The last image that was made of a plan."""
    sandbox, candidate = case.services.sandbox, case.candidate
    whole = layers.source_name(plan, case.tree.repository, candidate.base_commit, candidate.repo)
    if sandbox.image(whole):
        return Place(image=whole, whole=True, what="the image in which the tests ran; the project is installed")
    if sandbox.image(plan.dependency_image):
        what = "the dependencies are installed, the project's files lie there, its own steps were not run"
        return Place(image=plan.dependency_image, whole=False, what=what)
    base = bases.ensure_base(plan.language, plan.language_version, case.services)
    what = "the bare base; the project's files lie there, no dependency step was run"
    return Place(image=base.name, whole=False, what=what)

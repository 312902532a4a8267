"""Images of trees that are no commit of the history: a base commit with a patch on top, for tasks that begin there."""

from __future__ import annotations

from dataclasses import dataclass

from backends.overlay import patched
from backends.sandbox.base import ImageInfo
from backends.services import Services
from builders import layers
from taskdb.records import BuildPlan, Candidate


@dataclass(frozen=True)
class PatchedBoxes:
    """`backends.services.Boxes`, made of the builders' own layers."""

    services: Services

    def source(self, plan: BuildPlan, candidate: Candidate, setup_patch: bytes) -> ImageInfo | None:
        """The image with the tree of the candidate's base commit and the patch; None when its install fails.

        Raises:
            Transient: engine or network failed.
            GitError: the patch does not apply.
        """
        history = self.services.clones.open(candidate.source, candidate.repo)
        if layers.dependencies(plan, history, self.services).image is None:
            return None
        with patched(history, candidate.base_commit, setup_patch) as (overlay, commit):
            return layers.source(plan, overlay, commit, candidate.repo, self.services).image

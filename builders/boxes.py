"""Images of trees that are no commit of the history: a base commit with a patch on top, for tasks that begin there."""

from __future__ import annotations

from backends.overlay import patched
from backends.sandbox.base import ImageInfo
from backends.services import Services
from builders import layers
from taskdb.records import BuildPlan, Candidate


def patched_box(plan: BuildPlan, candidate: Candidate, setup_patch: bytes, services: Services) -> ImageInfo | None:
    """The image with the tree of the candidate's base commit and the patch; None when its install fails.

    Raises:
        Transient: engine or network failed.
        GitError: the patch does not apply.
    """
    history = services.clones.open(candidate.source, candidate.repo)
    if layers.dependencies(plan, history, services).image is None:
        return None
    with patched(history, candidate.base_commit, setup_patch) as (overlay, commit):
        return layers.source(plan, overlay, commit, candidate.repo, services).image

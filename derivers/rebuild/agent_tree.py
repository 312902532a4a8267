"""Removed lines that the agent's tree has all the same: they give nothing away, unless a file has most of them."""

from __future__ import annotations

from dataclasses import dataclass

from backends.git import GitRepository
from backends.overlay import open_patched_commit
from derivers.injected.patches import InjectionPatches
from evaluation.solution_lines import MIN_LINE, extract_added_lines

MIN_COPIED_LINES = 3
"""Distinctive removed lines from which a file can be a copy; fewer may be coincidence."""
MIN_COPIED_SHARE = 0.8
"""Share of the distinctive removed lines that a copy has, such as a bundle or a version for another platform."""


@dataclass(frozen=True, kw_only=True)
class RemainingLines:
    """The removed lines that remain elsewhere in the agent's tree."""

    known: frozenset[str]
    """Lines of the gold patch that a file has, without white space at their ends."""
    copy: str
    """Path of a file that has most of the removed code; empty for none."""


def find_remaining_lines(repository: GitRepository, commit: str, patches: InjectionPatches) -> RemainingLines:
    """Return the removed lines that the agent's tree has.

    Args:
        repository: repository that contains the base commit.
        commit: the base commit.
        patches: patches of a removal.
    """
    removed = frozenset(_split_lines(extract_added_lines(patches.gold_patch)))
    distinctive = frozenset(line for line in removed if len(line) >= MIN_LINE)
    known: set[bytes] = set()
    copy = ""
    with open_patched_commit(repository, commit, patches.setup_patch) as (overlay, patched):
        entries = [entry for entry in overlay.ls_tree(patched) if entry.mode.startswith("100")]
        contents = overlay.read_blobs([entry.oid for entry in entries])
        for entry, content in zip(entries, contents, strict=True):
            shared = removed.intersection(_split_lines(content))
            known |= shared
            n_shared = len(shared & distinctive)
            if n_shared >= max(MIN_COPIED_LINES, MIN_COPIED_SHARE * len(distinctive)):
                copy = copy or entry.path
    return RemainingLines(known=frozenset(line.decode(errors="replace") for line in known), copy=copy)


def _split_lines(content: bytes) -> list[bytes]:
    return [line.strip() for line in content.split(b"\n")]

"""Changes whose two commits lie in a clone: how the rules come to their patches, licence, files and attributes."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial

from backends.git import Repository
from backends.tree import Tree
from miner.attributes import Attributes
from miner.changes import Change, FileChange, Reason
from miner.licenses import Licenses
from miner.patches import split_commit
from miner.scratch import Scratch, scratch
from taskdb.records import PullRequest


@dataclass(frozen=True)
class CloneReader:
    """Reads one clone, with a scratch beside it; each licence and attribute file is read once."""

    repository: Repository
    sheet: Scratch
    licenses: Licenses
    attributes: Attributes

    def change(
        self, request: PullRequest, files: Sequence[FileChange], settled: tuple[Reason, str] | None = None
    ) -> Change:
        """The change between `base_commit` and `merge_commit`, which touches `files`."""
        base, merge = request.base_commit, request.merge_commit
        return Change(
            pull_request=request, files=tuple(files), settled=settled,
            make_split=partial(split_commit, self.sheet, base, merge),
            find_license=partial(self.licenses.of, base),
            read_blobs=self.repository.blobs, find_marked=partial(self.attributes.marked, base),
            list_tree=lambda: Tree(self.repository, base).entries,
        )  # fmt: skip


@contextmanager
def reading(repository: Repository) -> Iterator[CloneReader]:
    """A reader of the clone; what it needs beside it is gone afterwards."""
    with scratch(repository) as sheet:
        yield CloneReader(repository, sheet, Licenses(repository), Attributes(repository, sheet))

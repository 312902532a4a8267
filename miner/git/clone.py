"""Changes of two commits in a clone, with patches, licence, file contents and attributes on demand."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial

from backends.git import GitRepository
from backends.scratch import ScratchRepository, open_scratch
from backends.tree import CommitTree
from miner.attributes import GitAttributes
from miner.changes import Change, FileChange, Reason
from miner.licenses import LicenseFinder
from miner.patches import split_commit
from taskdb.records import PullRequest


@dataclass(frozen=True)
class CloneReader:
    """Reader of one clone with a scratch repository; each licence and attribute file is read once."""

    repository: GitRepository
    scratch: ScratchRepository
    licenses: LicenseFinder
    attributes: GitAttributes

    def build_change(
        self, request: PullRequest, files: Sequence[FileChange], source_rejection: tuple[Reason, str] | None = None
    ) -> Change:
        """Build the change from `base_commit` to `merge_commit`, which touches `files`."""
        base, merge = request.base_commit, request.merge_commit
        return Change(
            pull_request=request,
            files=tuple(files),
            source_rejection=source_rejection,
            make_split=partial(split_commit, self.scratch, base, merge),
            find_license=partial(self.licenses.find_license, base),
            read_blobs=self.repository.read_blobs,
            find_attributes=partial(self.attributes.find_marked, base),
            list_tree=lambda: CommitTree(self.repository, base).entries,
        )


@contextmanager
def open_reader(repository: GitRepository) -> Iterator[CloneReader]:
    """Open a reader of the clone; its scratch repository is removed on exit."""
    with open_scratch(repository) as scratch:
        yield CloneReader(repository, scratch, LicenseFinder(repository), GitAttributes(repository, scratch))

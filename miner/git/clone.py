"""Changes of two commits in a clone, with patches, licence, file contents and attributes on demand."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass

from backends.git import GitRepository
from backends.scratch import ScratchRepository, open_scratch
from backends.tree import CommitTree
from miner.attributes import GitAttributes
from miner.changes import Change, ChangeSource, FileChange, PatchSplit, Reason
from miner.licenses import LicenseFinder
from miner.patches import split_commit
from taskdb.records import PullRequest


@dataclass(frozen=True)
class CloneSource(ChangeSource):
    """Source of the change from a base commit to a merge commit of a clone."""

    reader: CloneReader
    base: str
    merge: str

    def make_split(self) -> PatchSplit:
        """See ChangeSource."""
        return split_commit(self.reader.scratch, self.base, self.merge)

    def find_license(self) -> str:
        """See ChangeSource."""
        return self.reader.licenses.find_license(self.base)

    def read_blobs(self, oids: Sequence[str]) -> Iterable[bytes]:
        """See ChangeSource."""
        return self.reader.repository.read_blobs(oids)

    def find_marked_paths(self, paths: Sequence[str]) -> Collection[str]:
        """See ChangeSource."""
        return self.reader.attributes.find_marked(self.base, paths)

    def list_tree(self) -> Iterable[str]:
        """See ChangeSource."""
        return CommitTree(self.reader.repository, self.base).entries


@dataclass(frozen=True)
class CloneReader:
    """Reader of a clone with a scratch repository; each licence and attribute file is read once."""

    repository: GitRepository
    scratch: ScratchRepository
    licenses: LicenseFinder
    attributes: GitAttributes

    def build_change(
        self, request: PullRequest, files: Sequence[FileChange], source_rejection: tuple[Reason, str] | None = None
    ) -> Change:
        """Build the change from `base_commit` to `merge_commit`, which touches `files`."""
        return Change(
            pull_request=request,
            files=tuple(files),
            source=CloneSource(self, request.base_commit, request.merge_commit),
            source_rejection=source_rejection,
        )


@contextmanager
def open_reader(repository: GitRepository) -> Iterator[CloneReader]:
    """Open a reader of the clone; its scratch repository is removed on exit."""
    with open_scratch(repository) as scratch:
        yield CloneReader(repository, scratch, LicenseFinder(repository), GitAttributes(repository, scratch))

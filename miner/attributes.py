"""What `.gitattributes` of a tree says of paths: vendored and generated files, as GitHub's linguist reads them."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import PurePosixPath

from backends.git import Repository
from miner.scratch import Scratch

_MARKS = ("linguist-vendored", "linguist-generated")
_YES = (b"set", b"true")


class Attributes:
    """Asks git itself, through an index of a scratch that holds nothing but the attribute files of a commit."""

    def __init__(self, repository: Repository, scratch: Scratch) -> None:
        self.repository = repository
        self.scratch = scratch

    def marked(self, commit: str, paths: Sequence[str]) -> frozenset[str]:
        """Those of `paths` (surrogate escapes) that are marked as vendored or generated at `commit`."""
        folders = {str(folder) for path in paths for folder in PurePosixPath(path).parents}
        names = sorted(str(PurePosixPath(folder, ".gitattributes")) for folder in folders)
        rows = self.repository.git("ls-tree", "-z", "--full-tree", commit, "--", *names)
        if not rows:
            return frozenset()
        said = self.scratch.attributes(rows.replace(b" blob ", b" "), _MARKS, paths)
        fields = iter(said.split(b"\0")[:-1])
        answers = zip(fields, fields, fields, strict=True)  # path, attribute, value
        yes = {path.decode(errors="surrogateescape") for path, _, value in answers if value in _YES}
        return frozenset(yes)

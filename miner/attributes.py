"""Vendored and generated files by `.gitattributes` of a tree, as GitHub's linguist reads them."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import PurePosixPath

from backends.git import GitRepository
from backends.scratch import ScratchRepository

_ATTRIBUTE_NAMES = ("linguist-vendored", "linguist-generated")
_TRUE_VALUES = (b"set", b"true")


class GitAttributes:
    """Attribute look-up by git itself, on an index that holds only the attribute files of a commit."""

    def __init__(self, repository: GitRepository, scratch: ScratchRepository) -> None:
        self.repository = repository
        self.scratch = scratch

    def find_marked(self, commit: str, paths: Sequence[str]) -> frozenset[str]:
        """Return those `paths` (surrogate escapes) that are marked as vendored or generated at `commit`."""
        folders = {str(folder) for path in paths for folder in PurePosixPath(path).parents}
        names = sorted(str(PurePosixPath(folder, ".gitattributes")) for folder in folders)
        rows = self.repository.run_git("ls-tree", "-z", "--full-tree", commit, "--", *names)
        if not rows:
            return frozenset()
        output = self.scratch.check_attributes(rows.replace(b" blob ", b" "), _ATTRIBUTE_NAMES, paths)
        fields = iter(output.split(b"\0")[:-1])
        answers = zip(fields, fields, fields, strict=True)  # path, attribute, value
        yes = {path.decode(errors="surrogateescape") for path, _, value in answers if value in _TRUE_VALUES}
        return frozenset(yes)

"""Folders of a repository's journal and clone, and the names that lead to them.

::

    STORE/clones/github/R_kgDOAbc/journal.sqlite     answers of the API
                                  repo.git           the clone
    STORE/clones/github/names/pallets__click         a link to that folder, a link for each known name

A folder is named by GitHub's id of the repository: a renamed repository keeps its folder, and its records keep the name
under which it was first mined.
"""

from __future__ import annotations

import hashlib
import os
import re
import tempfile
from dataclasses import dataclass
from pathlib import Path

from backends.clones import build_forge_link
from core.errors import make_write_error
from miner.github.journal import CrawlJournal

_SAFE_ID = re.compile(r"^[\w-]{1,64}$")


@dataclass(frozen=True)
class RepositoryFolders:
    """Folders of all GitHub repositories in a store (`settings.storage.store_dir / "clones"`)."""

    clones: Path

    def find_by_name(self, name: str) -> Path | None:
        """Return the folder of `owner/name` if it has been crawled under this name."""
        link = build_forge_link(self.clones, name)
        return link.resolve() if link.exists() else None

    def find_first_name(self, name: str) -> str:
        """Return the name under which `owner/name` was first mined; the same name if it never was."""
        folder = self.find_by_name(name)
        if folder is None:
            return name
        with CrawlJournal.open(folder) as journal:
            return str(journal.get_state("names", [name])[0])

    def folder_of(self, node_id: str) -> Path:
        """Return the folder of a repository by GitHub's id."""
        plain = node_id if _SAFE_ID.match(node_id) else hashlib.sha256(node_id.encode()).hexdigest()[:24]
        return build_forge_link(self.clones, "any").parent.parent / plain

    def link_name(self, name: str, folder: Path) -> None:
        """Link `owner/name` to a folder.

        Raises:
            Transient: the store is not writable.
        """
        link = build_forge_link(self.clones, name)
        target = os.path.relpath(folder, link.parent)
        try:
            link.parent.mkdir(parents=True, exist_ok=True)
            if link.is_symlink() and str(link.readlink()) == target:
                return
            with tempfile.TemporaryDirectory(prefix=".new-", dir=link.parent) as aside:
                new = Path(aside) / "link"
                new.symlink_to(target)
                new.replace(link)
        except OSError as error:
            raise make_write_error(f"cannot write {link}", error) from error

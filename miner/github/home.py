"""Where a repository's journal and clone lie, and by which names they are found again.

::

    STORE/clones/github/R_kgDOAbc/journal.sqlite     what GitHub said
                                  repo.git           the clone
    STORE/clones/github/names/pallets__click         a link to that folder, one for each name it is known by

A folder is GitHub's own id of the repository: one that is renamed stays where it is, and its records keep the name
under which it was first mined.
"""

from __future__ import annotations

import hashlib
import os
import re
import tempfile
from dataclasses import dataclass
from pathlib import Path

from backends.clones import forge_link
from mergemill.errors import Transient
from taskdb.journal import Journal

_PLAIN = re.compile(r"^[\w-]{1,64}$")


@dataclass(frozen=True)
class Home:
    """The folder of all repositories of GitHub in a store (`settings.store_dir / "clones"`)."""

    clones: Path

    def known(self, name: str) -> Path | None:
        """The folder of `owner/name` when it has been crawled under this name."""
        link = forge_link(self.clones, name)
        return link.resolve() if link.exists() else None

    def first_name(self, name: str) -> str:
        """The name under which `owner/name` was first mined; the same name when it never was."""
        folder = self.known(name)
        if folder is None:
            return name
        with Journal.open(folder) as journal:
            return str(journal.get("names", [name])[0])

    def of(self, node_id: str) -> Path:
        """The folder of a repository by GitHub's id."""
        plain = node_id if _PLAIN.match(node_id) else hashlib.sha256(node_id.encode()).hexdigest()[:24]
        return forge_link(self.clones, "any").parent.parent / plain

    def remember(self, name: str, folder: Path) -> None:
        """Let `owner/name` lead to a folder from now on.

        Raises:
            Transient: the store cannot be written.
        """
        link = forge_link(self.clones, name)
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
            raise Transient(f"cannot write {link}: {error.strerror}") from error

"""Files of the tree that declare a type, for reports that name types and no files."""

from __future__ import annotations

import re

MAX_SOURCES = 20_000


class DeclaredTypes:
    """Map from the names of types to the files that declare them."""

    def __init__(self, tree, suffix, declaration):
        """Prepare the map; it is made at its first use.

        Args:
            tree: the project's files.
            suffix: of source files.
            declaration: pattern whose first group is the name of a type, in which dots separate nested types.
        """
        self.tree = tree
        self.suffix = suffix
        self.declaration = declaration
        self._files = None
        self._found = {}

    def list_sources(self):
        """Return the paths of the source files."""
        return [path for path in self.tree.files if path.endswith(self.suffix)][:MAX_SOURCES]

    def find(self, type_name, member, folder, wanted=""):
        """Return the file that declares a type and a member of it; empty if none declares the type.

        Of several files those are preferred that have the member, then those with the text `wanted`, then those in a
        folder of that path or name, then those in a folder of tests.
        """
        key = (type_name, member, folder, wanted)
        if key not in self._found:
            paths = self._list_declaring(type_name)
            ranked = sorted((self._rank(path, member, folder, wanted), path) for path in paths)
            self._found[key] = ranked[0][1] if ranked else ""
        return self._found[key]

    def _rank(self, path, member, folder, wanted):
        text = self.tree.read_text(path)
        has_member = re.search(r"\b%s\b`?\s*[(<]" % re.escape(member), text) if member else True
        inside = "/%s/" % folder.strip("/").lower() in "/" + path.lower()
        return (not has_member, wanted not in text, not inside, "test" not in path.lower(), len(path))

    def _list_declaring(self, type_name):
        if self._files is None:
            self._files = {}
            for path in self.list_sources():
                names = {
                    part
                    for match in self.declaration.finditer(self.tree.read_text(path))
                    for part in match[1].split(".")
                }
                for name in names:
                    self._files.setdefault(name, []).append(path)
        return self._files.get(type_name, [])

"""Go modules of a tree: names, versions, folders, and the module that a change belongs to."""

from __future__ import annotations

import posixpath
import re
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass

from languages.facts import SourcedValue, find_line
from languages.go.sources import is_ignored, parse_imports
from languages.source_tree import SourceTree


@dataclass(frozen=True, kw_only=True)
class GoModule:
    """A Go module. `has_file` is False for a tree that predates go.mod."""

    name: str
    """Import path."""
    folder: str = ""
    go_version: str = ""
    """Minimum Go version declared in go.mod, such as `1.21.3`."""
    toolchain: str = ""
    vendored: bool = False
    has_file: bool = True

    @property
    def go_mod_path(self) -> str:
        """Path of the module's go.mod."""
        return posixpath.join(self.folder, "go.mod")


def read_modules(tree: SourceTree) -> list[GoModule]:
    """Return all modules that have a go.mod, ordered by folder."""
    paths = [path for path in tree.glob("*go.mod") if path.rpartition("/")[2] == "go.mod" and not is_ignored(path)]
    texts = tree.read_many(paths)
    modules = []
    for path in paths:
        folder = path.rpartition("/")[0]
        name = re.search(r'^\s*module\s+"?([^\s"]+)', texts[path], re.MULTILINE)
        modules.append(
            GoModule(
                name=name[1] if name else "",
                folder=folder,
                go_version=read_directive(texts[path], "go"),
                toolchain=read_directive(texts[path], "toolchain").removeprefix("go"),
                vendored=tree.is_file(posixpath.join(folder, "vendor/modules.txt")),
            )
        )
    return modules


def read_directive(text: str, word: str) -> str:
    """Return the argument of a directive in a go.mod or go.work; empty if it is missing."""
    match = re.search(rf"^{word}\s+(\S+)", text, re.MULTILINE)
    return match[1] if match else ""


def locate_directive(tree: SourceTree, module: GoModule, word: str) -> SourcedValue:
    """Return a directive of the module's go.mod with its line."""
    text = tree.read(module.go_mod_path)
    match = re.search(rf"^{word}\s+\S+", text, re.MULTILINE)
    line = find_line(text, match[0], match.start()) if match else 0
    return SourcedValue(text=match[0] if match else "", path=module.go_mod_path, line=line)


def find_innermost(folders: Sequence[str], path: str) -> str | None:
    """Return the deepest folder that contains `path`; None if no folder does."""
    containing = [folder for folder in folders if not folder or path.startswith(f"{folder}/")]
    return max(containing, key=len, default=None)


def select_module(modules: Sequence[GoModule], changed_paths: Sequence[str], tests: Sequence[str]) -> GoModule:
    """Return the module with most files of the change, else the root module, else the module with the most tests."""
    folders = [module.folder for module in modules]
    for files in ([path for path in changed_paths if path.endswith(".go")], () if "" in folders else tests):
        counts = Counter(folder for path in files if (folder := find_innermost(folders, path)) is not None)
        if counts:
            selected = min(counts, key=lambda folder: (-counts[folder], folder))
            return next(module for module in modules if module.folder == selected)
    return next((module for module in modules if not module.folder), modules[0])


def infer_module_name(tree: SourceTree, files: Sequence[str]) -> str:
    """Return the import path of a tree without go.mod, inferred from its imports; empty if unknown.

    An import belongs to the tree if the part after its first three components is a folder of the tree.
    """
    prefixes: Counter[str] = Counter()
    for path, text in tree.read_many(list(files)).items():
        if own := re.search(r'^package \w+ // import "([^"]+)"', text, re.MULTILINE):
            prefixes[own[1].removesuffix("/" + posixpath.dirname(path)) if "/" in path else own[1]] += 1000
        for imported in parse_imports(path, text):
            parts = imported.text.split("/")
            if "." in parts[0] and len(parts) > 3 and "/".join(parts[3:]) in tree.folders:
                prefixes["/".join(parts[:3])] += 1
    return min(prefixes, key=lambda name: (-prefixes[name], name), default="")

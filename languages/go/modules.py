"""The modules of a tree: their names, versions and folders, and which one a change is about."""

from __future__ import annotations

import posixpath
import re
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass

from languages.facts import Wanted, line_of
from languages.go.sources import imports, is_ignored
from languages.tree import Tree


@dataclass(frozen=True, kw_only=True)
class Module:
    """A module. `has_file` is False for a tree of the days before modules."""

    name: str
    """Import path."""
    folder: str = ""
    go: str = ""
    """What its go.mod asks for at least, such as `1.21.3`."""
    toolchain: str = ""
    vendored: bool = False
    has_file: bool = True

    @property
    def file(self) -> str:
        """Path of its go.mod."""
        return posixpath.join(self.folder, "go.mod")


def read_modules(tree: Tree) -> list[Module]:
    """All modules that have a go.mod, by folder."""
    paths = [path for path in tree.glob("*go.mod") if path.rpartition("/")[2] == "go.mod" and not is_ignored(path)]
    texts = tree.read_many(paths)
    found = []
    for path in paths:
        folder = path.rpartition("/")[0]
        name = re.search(r'^\s*module\s+"?([^\s"]+)', texts[path], re.MULTILINE)
        found.append(
            Module(
                name=name[1] if name else "", folder=folder, go=directive(texts[path], "go"),
                toolchain=directive(texts[path], "toolchain").removeprefix("go"),
                vendored=tree.is_file(posixpath.join(folder, "vendor/modules.txt")),
            )
        )  # fmt: skip
    return found


def directive(text: str, word: str) -> str:
    """The word after a directive of a go.mod or go.work, empty when it is not there."""
    match = re.search(rf"^{word}\s+(\S+)", text, re.MULTILINE)
    return match[1] if match else ""


def directive_place(tree: Tree, module: Module, word: str) -> Wanted:
    """Where the directive stands."""
    text = tree.read(module.file)
    match = re.search(rf"^{word}\s+\S+", text, re.MULTILINE)
    line = line_of(text, match[0], match.start()) if match else 0
    return Wanted(text=match[0] if match else "", path=module.file, line=line)


def innermost(folders: Sequence[str], path: str) -> str | None:
    """The deepest of the folders that holds `path`; None when none does."""
    holding = [folder for folder in folders if not folder or path.startswith(f"{folder}/")]
    return max(holding, key=len, default=None)


def of_change(modules: Sequence[Module], touched: Sequence[str], tests: Sequence[str]) -> Module:
    """The module that most of the change's files lie in, else the root's, else the one with the most tests."""
    folders = [module.folder for module in modules]
    for files in ([path for path in touched if path.endswith(".go")], () if "" in folders else tests):
        counted = Counter(folder for path in files if (folder := innermost(folders, path)) is not None)
        if counted:
            chosen = min(counted, key=lambda folder: (-counted[folder], folder))
            return next(module for module in modules if module.folder == chosen)
    return next((module for module in modules if not module.folder), modules[0])


def old_name(tree: Tree, files: Sequence[str]) -> str:
    """Import path of a tree without go.mod: what its files call each other by, else empty.

    A path is the tree's own when what follows some head of it is a folder of the tree.
    """
    heads: Counter[str] = Counter()
    for path, text in tree.read_many(list(files)).items():
        if own := re.search(r'^package \w+ // import "([^"]+)"', text, re.MULTILINE):
            heads[own[1].removesuffix("/" + posixpath.dirname(path)) if "/" in path else own[1]] += 1000
        for wanted in imports(path, text):
            parts = wanted.text.split("/")
            if "." in parts[0] and len(parts) > 3 and "/".join(parts[3:]) in tree.folders:
                heads["/".join(parts[:3])] += 1
    return min(heads, key=lambda name: (-heads[name], name), default="")

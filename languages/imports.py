"""Files of a tree that a source file imports, by the names in its import statements and the paths of the tree.

Nothing is installed or executed, so a name is resolved by its parts: relative to the file's folder where it is written
so, else to the file whose path ends with most of them. Names of other packages match no file.
"""

from __future__ import annotations

import posixpath
import re
from collections.abc import Iterable, Iterator
from itertools import takewhile
from pathlib import PurePosixPath
from typing import NamedTuple

from languages.registry import detect_file_language, find_language, language_family

_QUOTED = (
    r"^\s*(?:import|export)\b[^'\";]{0,2000}?\bfrom\s*['\"]([^'\"\n]+)['\"]",
    r"^\s*import\s+(?:[\w.]+\s+)?['\"]([^'\"\n]+)['\"]",
    r"\b(?:require|require_once|include|include_once|import|load|source|dofile)\s*\(?\s*['\"]([^'\"\n]+)['\"]",
    r"^\s*#\s*(?:include|import)\s*[\"<]([^\">\n]+)[\">]",
)
_RELATIVE = r"\brequire_relative\s*\(?\s*['\"]([^'\"\n]+)['\"]"
_BLOCK = r"^import\s*\(([^)]*)\)"
"""Several quoted names."""
_FROM = r"^\s*from\s+(\.*[\w.]*)\s+import\s+(?:\(([^)]*)\)|([^\n#;]+))"
_DOTTED = (
    r"^\s*(?:pub(?:\([\w\s:]*\))?\s+)?(?:global\s+)?(?:@testable\s+)?"
    r"(?:import|using|use|alias|require|open|mod|extern\s+crate)\s+"
    r"(?:(?:static|qualified|type|function|const|safe|class|struct|func)\s+)*"
    r"([A-Za-z_\\][\w.:\\]*)(?:\s*\{([^}]*)\})?"
)
"""A name by dots, colons or backslashes, and the members that follow in braces."""
_SEPARATOR = re.compile(r"::|[.\\]")
_OWN_PACKAGE = frozenset({"crate", "self", "super", "@", "~", ""})
"""First parts that stand for the own package."""
_FOLDER_FILES = frozenset({"__init__", "index", "mod", "init", "lib"})
"""Names of files that stand for their folder."""
_ROOTS = frozenset({"", "src", "lib", "app", "include", "python", "source", "sources"})
"""Folders from which names begin that have a single part."""


class ImportedName(NamedTuple):
    """Name in an import statement: its parts, and how many folders above the file's own it begins (None: anywhere).

    `has_suffix`: whether it is written as the name of a file.
    """

    parts: tuple[str, ...]
    up: int | None = None
    has_suffix: bool = False


def list_imported_names(text: str) -> list[ImportedName]:
    """Return the names that a file imports, in the syntax of any language, each once."""
    return list(dict.fromkeys(name for name in _iterate_names(text) if name.parts))


def _iterate_names(text: str) -> Iterator[ImportedName]:
    for pattern in _QUOTED:
        yield from (_split_quoted(match[1]) for match in re.finditer(pattern, text, re.MULTILINE))
    for match in re.finditer(_RELATIVE, text):
        yield _split_quoted(f"./{match[1]}")
    for match in re.finditer(_BLOCK, text, re.MULTILINE):
        yield from map(_split_quoted, re.findall(r'"([^"\n]+)"', match[1]))
    for match in re.finditer(_FROM, text, re.MULTILINE):
        yield from _split_from(match[1], match[2] or match[3])
    for match in re.finditer(_DOTTED, text, re.MULTILINE):
        prefix = tuple(part for part in _SEPARATOR.split(match[1]) if part not in _OWN_PACKAGE)
        yield ImportedName(prefix)
        for member in (match[2] or "").split(","):
            last = _SEPARATOR.split(member.split(" as ")[0].strip())
            yield ImportedName((*prefix, *(part for part in last if part not in _OWN_PACKAGE)))


def _split_quoted(name: str) -> ImportedName:
    """Return the name of a path, or of a module by dots."""
    has_suffix = bool(detect_file_language(name))
    if "/" not in name and not has_suffix:
        return ImportedName(tuple(part for part in _SEPARATOR.split(name) if part))
    stem = name[: -len(PurePosixPath(name).suffix)] if has_suffix else name
    parts = stem.split("/")
    up = parts.count("..") if parts[0] in (".", "..") else None
    named = (part for part in parts if part not in (".", "..") and part not in _OWN_PACKAGE)
    return ImportedName(tuple(named), up, has_suffix)


def _split_from(module: str, members: str) -> Iterator[ImportedName]:
    """Yield the names of a statement `from MODULE import MEMBERS`."""
    dots = len(module) - len(module.lstrip("."))
    prefix, up = tuple(part for part in module.split(".") if part), dots - 1 if dots else None
    yield ImportedName(prefix, up)
    for member in members.split(","):
        if (name := member.split("#")[0].split(" as ")[0].strip()).isidentifier():
            yield ImportedName((*prefix, name), up)


class ImportIndex:
    """Source files of a tree, by the parts of their paths.

    Args:
        paths: paths of the files; those of no supported language are found by no name.
    """

    def __init__(self, paths: Iterable[str]) -> None:
        self._by_last: dict[str, list[tuple[tuple[str, ...], str]]] = {}
        for path in paths:
            if find_language(path) is None:
                continue
            for parts in _list_keys(path):
                self._by_last.setdefault(parts[-1], []).append((parts, path))

    def find_imported(self, path: str, text: str) -> list[str]:
        """Return the files that a file imports, without itself, in the order of its names.

        Args:
            path: path of the file, from which relative names begin.
            text: content of the file.
        """
        language = language_family(detect_file_language(path))
        imported: dict[str, None] = {}
        for name in list_imported_names(text):
            files = [file for file in self._resolve(path, name) if detect_file_language(file) in language]
            imported |= dict.fromkeys(file for file in files if file != path)
        for file in list(imported):
            partners = self._find_partners(file)
            imported |= dict.fromkeys(other for other in partners if detect_file_language(other) in language)
        return [file for file in imported if file != path]

    def _find_partners(self, path: str) -> list[str]:
        """Return the files of the same name with another suffix: a header declares what another file defines."""
        stem, suffix = PurePosixPath(path).stem, PurePosixPath(path).suffix
        named = (PurePosixPath(file) for _, file in self._by_last.get(_normalize(stem), ()))
        return [str(file) for file in named if file.stem == stem and file.suffix != suffix]

    def _resolve(self, path: str, name: ImportedName) -> list[str]:
        """Return the files of a name, or of the longest beginning of it: its end may be a definition in a module."""
        for length in range(len(name.parts), 0, -1):
            parts = tuple(map(_normalize, name.parts[:length]))
            if name.up is not None:
                files = self._find_relative(path, parts, name.up)
            else:
                files = self._find_anywhere(path, parts, has_suffix=name.has_suffix)
            if files:
                return files
        return []

    def _find_relative(self, path: str, parts: tuple[str, ...], up: int) -> list[str]:
        folders = posixpath.dirname(path).split("/") if "/" in path else []
        if up > len(folders):
            return []
        wanted = (*map(_normalize, folders[: len(folders) - up]), *parts)
        return [file for key, file in self._by_last.get(parts[-1], ()) if key == wanted]

    def _find_anywhere(self, path: str, parts: tuple[str, ...], *, has_suffix: bool) -> list[str]:
        """Return the files that share most parts with a name at the end; of several places, those of the nearest."""
        best, score = list[str](), (0, 0)
        for key, file in self._by_last.get(parts[-1], ()):
            place = file if len(key) > file.count("/") else posixpath.dirname(file)
            n = len(list(takewhile(lambda pair: pair[0] == pair[1], zip(reversed(key), reversed(parts), strict=False))))
            is_whole = n == len(parts) and (n > 1 or has_suffix or _is_near(path, place))
            if is_whole or n > 1 or (n == len(key) and _names_folders(file)):
                reached = (n, count_shared_folders(path, file))
                best = [*best, file] if reached == score else [file] if reached > score else best
                score = max(score, reached)
        return best


def list_importer_words(path: str) -> set[str]:
    """Return the words of which a file that imports `path` contains one, whatever its case.

    The name of the file, or of its folder where the file stands for it.
    """
    parts = [part for key in _list_names(path) if (part := key[-1:])]
    words = {word for (name,) in parts for word in (name, name.replace("_", ""), name.replace("-", ""))}
    return {word for word in words if word}


def count_shared_folders(path: str, other: str) -> int:
    """Return the number of folders that the paths of two files share."""
    folders = (posixpath.dirname(path).split("/"), posixpath.dirname(other).split("/"))
    return len(list(takewhile(lambda pair: pair[0] == pair[1], zip(*folders, strict=False))))


def _list_keys(path: str) -> list[tuple[str, ...]]:
    """Return the normalized names under which a file is found."""
    return [tuple(map(_normalize, name)) for name in _list_names(path)]


def _list_names(path: str) -> list[tuple[str, ...]]:
    """Return the parts of a path without its suffix, and those of its folder where names of imports are folders."""
    *folders, name = path.split("/")
    names = [(*folders, PurePosixPath(name).stem)]
    if folders and (names[0][-1] in _FOLDER_FILES or _names_folders(path)):
        names.append(tuple(folders))
    return names


def _normalize(part: str) -> str:
    """Return a part as it is compared: `OrderItems` is the module of `order_items`."""
    return part.lower().replace("_", "").replace("-", "")


def _is_near(path: str, place: str) -> bool:
    """Return whether a name of a single part may be that of a file or folder: near `path`, or at a root."""
    folder, own = posixpath.dirname(place), posixpath.dirname(path)
    return folder in _ROOTS or f"{own}/".startswith(f"{folder}/") or folder == path.rpartition(".")[0]


def _names_folders(path: str) -> bool:
    language = find_language(path)
    return language is not None and language.imports_folders

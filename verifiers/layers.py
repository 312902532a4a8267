"""Index of an image's layers: hashes of text lines, git directories, installed packages.

Layers are shared by many images, so the index of a layer is cached by diff id for the life of the process.
"""

from __future__ import annotations

import gzip
import io
import re
import tarfile
import zipfile
import zlib
from array import array
from collections import OrderedDict
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from typing import IO

from evaluation.solution_lines import hash_lines

MAX_FILE = 64 * 1024 * 1024
_CACHED_LAYERS = 8
_GIT_OBJECT = re.compile(r"^(.*?)/?(?:objects/(?:[0-9a-f]{2}/[0-9a-f]{38}|pack/[^/]+))$")
_GIT_FILE = re.compile(r"(^|/)(\.git|[^/]+\.git)/")
_PACKAGE_METADATA = re.compile(r"(?:^|/)(?:site|dist)-packages/([^/]+?)-([^/-]+)\.(?:dist-info|egg-info)(?:/|$)")
_BINARY_FILE = re.compile(r"\.(so|a|o|pyc|png|jpe?g|gif|ttf|woff2?|mo|exe|dll|deb|whl\.metadata)(\.\d+)*$")


@dataclass(frozen=True, kw_only=True)
class LayerIndex:
    """Index of a layer."""

    diff_id: str
    files: tuple[tuple[str, array[int]], ...]
    """(path, hashes of its lines); members of archives as `archive!member`."""
    git_files: tuple[tuple[str, bytes], ...]
    """(path, content) of all files in git directories."""
    packages: frozenset[tuple[str, str]]
    """(normalized name, version) of installed Python packages."""


def normalize_package_name(name: str) -> str:
    """Return a package name in the normal form of package indexes."""
    return re.sub(r"[-_.]+", "-", name).lower()


@dataclass
class LayerReader:
    """Indexes layers and caches the most recently used layers."""

    cache: OrderedDict[str, LayerIndex] = field(default_factory=OrderedDict)

    def read(self, diff_id: str, tar: IO[bytes]) -> LayerIndex:
        """Return the index of the layer with that diff id; `tar` is read only if it is not cached."""
        if diff_id not in self.cache:
            self.cache[diff_id] = _index_layer(diff_id, tar)
        self.cache.move_to_end(diff_id)
        while len(self.cache) > _CACHED_LAYERS:
            self.cache.popitem(last=False)
        return self.cache[diff_id]


def _index_layer(diff_id: str, tar: IO[bytes]) -> LayerIndex:
    files: list[tuple[str, array[int]]] = []
    git: list[tuple[str, bytes]] = []
    installed: set[tuple[str, str]] = set()
    with tarfile.open(fileobj=tar, mode="r|") as opened:
        for member in opened:
            path = member.name.removeprefix("./").removeprefix("/")
            if match := _PACKAGE_METADATA.search(path):
                installed.add((normalize_package_name(match[1]), match[2]))
            content = opened.extractfile(member) if member.isreg() and member.size <= MAX_FILE else None
            if content is None or _BINARY_FILE.search(path):
                continue
            if _GIT_FILE.search(path) or _GIT_OBJECT.search(path):
                git.append((path, content.read()))
            else:
                files += [(name, hash_lines(text)) for name, text in _extract_texts(path, content.read())]
    return LayerIndex(diff_id=diff_id, files=tuple(files), git_files=tuple(git), packages=frozenset(installed))


def _extract_texts(path: str, content: bytes) -> Iterator[tuple[str, bytes]]:
    """Yield (path, content) for a text file, or for the files in an archive."""
    try:
        if content.startswith(b"PK\x03\x04"):
            with zipfile.ZipFile(io.BytesIO(content)) as packed:
                small = [info for info in packed.infolist() if info.file_size <= MAX_FILE]
                yield from ((f"{path}!{info.filename}", packed.read(info)) for info in small)
            return
        if content.startswith(b"\x1f\x8b"):
            content = gzip.GzipFile(fileobj=io.BytesIO(content)).read(MAX_FILE)
            path += "!"
        if path.endswith((".tar", ".tar!", ".tar.gz!", ".tgz!")):
            with tarfile.open(fileobj=io.BytesIO(content)) as inner:
                for member in inner:
                    text = inner.extractfile(member) if member.isreg() and member.size <= MAX_FILE else None
                    if text is not None:
                        yield f"{path}{member.name}", text.read()
            return
    except (OSError, EOFError, zlib.error, zipfile.BadZipFile, tarfile.TarError, RuntimeError, NotImplementedError):
        pass  # no valid archive: read as plain content
    if b"\0" not in content[:1024]:
        yield path, content


def group_git_directories(files: Iterable[tuple[str, bytes]]) -> dict[str, dict[str, bytes]]:
    """Group files by git directory: root -> {path below it: content}. A root contains `objects`."""
    all_files = list(files)
    roots = {match[1] for path, _ in all_files if (match := _GIT_OBJECT.search(path))}
    roots |= {path[: path.index("/.git/") + 5] for path, _ in all_files if "/.git/" in path}
    return {
        root: {path[len(root) :].lstrip("/"): content for path, content in all_files if path.startswith(f"{root}/")}
        for root in sorted(roots)
    }

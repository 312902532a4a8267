"""What lies in an image's layers, made comparable: lines of texts, git directories, installed packages.

Layers are shared by many images, so what is read of one is kept by its diff id for the life of the process.
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

MIN_LINE = 12
"""Bytes a line must have to be told from others."""
MAX_FILE = 64 * 1024 * 1024
_KEPT_LAYERS = 8
_GIT_OBJECT = re.compile(r"^(.*?)/?(?:objects/(?:[0-9a-f]{2}/[0-9a-f]{38}|pack/[^/]+))$")
_GIT_FILE = re.compile(r"(^|/)(\.git|[^/]+\.git)/")
_INSTALLED = re.compile(r"(?:^|/)(?:site|dist)-packages/([^/]+?)-([^/-]+)\.(?:dist-info|egg-info)(?:/|$)")
_NOT_TEXT = re.compile(r"\.(so|a|o|pyc|png|jpe?g|gif|ttf|woff2?|mo|exe|dll|deb|whl\.metadata)(\.\d+)*$")


@dataclass(frozen=True, kw_only=True)
class Layer:
    """One layer, read."""

    diff_id: str
    files: tuple[tuple[str, array[int]], ...]
    """(path, hashes of its lines); members of archives as `archive!member`."""
    git: tuple[tuple[str, bytes], ...]
    """(path, content) of everything in git directories."""
    installed: frozenset[tuple[str, str]]
    """(name, version) of installed Python packages, names normalised."""


def hashes(text: bytes) -> array[int]:
    """Hashes of the lines of a text that are long enough; the mark of an added line in a patch is left off."""
    lines = {line.strip() for line in text.split(b"\n")}
    lines |= {line[1:].strip() for line in lines if line.startswith(b"+")}
    return array("q", [hash(line) for line in lines if len(line) >= MIN_LINE])


def normalised(name: str) -> str:
    """A package's name as indexes compare it."""
    return re.sub(r"[-_.]+", "-", name).lower()


@dataclass
class LayerReader:
    """Reads layers, remembering the last ones."""

    known: OrderedDict[str, Layer] = field(default_factory=OrderedDict)

    def read(self, diff_id: str, tar: IO[bytes]) -> Layer:
        """The layer of that diff id; `tar` is left alone when it is known."""
        if diff_id not in self.known:
            self.known[diff_id] = _read(diff_id, tar)
        self.known.move_to_end(diff_id)
        while len(self.known) > _KEPT_LAYERS:
            self.known.popitem(last=False)
        return self.known[diff_id]


def _read(diff_id: str, tar: IO[bytes]) -> Layer:
    files: list[tuple[str, array[int]]] = []
    git: list[tuple[str, bytes]] = []
    installed: set[tuple[str, str]] = set()
    with tarfile.open(fileobj=tar, mode="r|") as opened:
        for member in opened:
            path = member.name.removeprefix("./").removeprefix("/")
            if found := _INSTALLED.search(path):
                installed.add((normalised(found[1]), found[2]))
            content = opened.extractfile(member) if member.isreg() and member.size <= MAX_FILE else None
            if content is None or _NOT_TEXT.search(path):
                continue
            if _GIT_FILE.search(path) or _GIT_OBJECT.search(path):
                git.append((path, content.read()))
            else:
                files += [(name, hashes(text)) for name, text in _texts(path, content.read())]
    return Layer(diff_id=diff_id, files=tuple(files), git=tuple(git), installed=frozenset(installed))


def _texts(path: str, content: bytes) -> Iterator[tuple[str, bytes]]:
    """The texts in a file: itself, or what it packs."""
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
        pass  # not what it looks like: read as it is
    if b"\0" not in content[:1024]:
        yield path, content


def git_directories(files: Iterable[tuple[str, bytes]]) -> dict[str, dict[str, bytes]]:
    """Git directories among files: root -> {path in it: content}. A root is where `objects` lies."""
    all_files = list(files)
    roots = {found[1] for path, _ in all_files if (found := _GIT_OBJECT.search(path))}
    roots |= {path[: path.index("/.git/") + 5] for path, _ in all_files if "/.git/" in path}
    return {
        root: {path[len(root) :].lstrip("/"): content for path, content in all_files if path.startswith(f"{root}/")}
        for root in sorted(roots)
    }

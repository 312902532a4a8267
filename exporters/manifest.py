"""Manifest of a bundle: its tasks, their origin, and the sha256 of every file.

It is written last, so that the sha256 of `manifest.json` identifies the complete content of the bundle.
"""

from __future__ import annotations

import hashlib
import json
import os
import re
import stat
import tempfile
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, Self

from core.errors import InputError
from core.version import read_version
from exporters.item import ExportItem

MANIFEST_NAME = "manifest.json"
MANIFEST_KIND = "mergemill-bundle"
"""Value of `kind` in a manifest of mergemill."""
MAX_MANIFEST_BYTES = 2 << 30
"""Size of a manifest that is read."""
_SCHEMA = 1
_HASH = re.compile(r"[0-9a-f]{64}")


def list_files(folder: Path) -> Iterator[Path]:
    """Yield all files and links below a folder except the manifest, relative and sorted by their paths as text."""
    return (Path(path) for path in _walk(folder, "") if path != MANIFEST_NAME)


def _walk(folder: Path, below: str) -> Iterator[str]:
    """Yield the paths of files and links in the folder `below`, which ends in `/` or is empty, sorted."""
    with os.scandir(folder / below) as entries:
        # Folders are sorted with their slash, so that the result is the order of whole paths as text.
        names = sorted(f"{entry.name}/" if entry.is_dir(follow_symlinks=False) else entry.name for entry in entries)
    for name in names:
        if name.endswith("/"):
            yield from _walk(folder, below + name)
        else:
            yield below + name


def hash_file(path: Path) -> str:
    """Return the sha256 (hex) of a file, which is read in blocks."""
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


class FileHasher:
    """Hashes of files; a file with several names is read once."""

    def __init__(self) -> None:
        self._known: dict[tuple[int, int], str] = {}
        """Device and number of a file with several names -> its sha256."""

    def hash(self, path: Path) -> str:
        """Return the sha256 (hex) of a file, which must not change any more."""
        status = path.lstat()
        # Only files with several names are remembered, so memory does not grow with the number of files.
        if status.st_nlink == 1:
            return hash_file(path)
        key = (status.st_dev, status.st_ino)
        if key not in self._known:
            self._known[key] = hash_file(path)
        return self._known[key]


class ManifestWriter:
    """Context manager that collects the facts that the manifest of a bundle has of each task, and writes it at the end.

    The descriptions are in a temporary file, so memory does not grow with the number of tasks.
    """

    def __init__(self, format_name: str, folder: Path) -> None:
        self._format, self._folder = format_name, folder
        self._hasher = FileHasher()

    def __enter__(self) -> Self:
        self._rows = tempfile.TemporaryFile("w+", encoding="ascii", dir=self._folder)
        return self

    def __exit__(self, *_: object) -> None:
        self._rows.close()

    def describe(self, items: Iterable[ExportItem]) -> Iterator[ExportItem]:
        """Yield the items in the bundle's order; each is described when the next is taken, with its notes."""
        for item in items:
            yield item
            self._rows.write(json.dumps(_describe_task(item), sort_keys=True) + "\n")

    def finish(self) -> str:
        """Write the manifest of the files that the folder has now; return its sha256."""
        digest = hashlib.sha256()
        path = self._folder / MANIFEST_NAME
        with path.open("wb") as file:
            for line in self._render():
                content = line.encode()
                digest.update(content)
                file.write(content)
        path.chmod(0o644)
        return digest.hexdigest()

    def _render(self) -> Iterator[str]:
        """Yield the lines of the manifest: an object with sorted keys, and a line for each file and task."""
        yield '{\n "files": {'
        files = ((path, self._hasher.hash(self._folder / path)) for path in list_files(self._folder))
        yield from _join_lines(f"{json.dumps(path.as_posix())}: {json.dumps(digest)}" for path, digest in files)
        rest = {"format": self._format, "kind": MANIFEST_KIND, "mergemill": read_version(), "schema": _SCHEMA}
        yield "},\n" + "".join(f" {json.dumps(name)}: {json.dumps(value)},\n" for name, value in rest.items())
        yield ' "tasks": ['
        self._rows.seek(0)
        yield from _join_lines(line.rstrip("\n") for line in self._rows)
        yield "]\n}\n"


def _join_lines(values: Iterable[str]) -> Iterator[str]:
    """Yield values of a JSON list or object, a line each, and the line end behind the last."""
    end = ""
    for value in values:
        yield f"{end}\n  {value}"
        end = ","
    yield "\n " if end else ""


def _describe_task(item: ExportItem) -> dict[str, Any]:
    task = item.task
    return {
        "name": task.name,
        "id": task.id,
        "source": task.source,
        "license": task.license,
        "image": task.image,
        "image_digest": task.image_digest,
        "registry": item.registry_image,
        "certificate": item.certificate.id if item.certificate else None,
        "gold_patch": task.gold_patch,
        "test_patch": task.test_patch,
        "blind_controls": task.blind_controls,
        "setup_patch": task.setup_patch,
        "eval_script": task.eval_script,
        "notes": item.notes,
        "row": {name: value for name, value in item.facts.items() if name != "added_at"},
    }


def read_manifest(folder: Path) -> dict[str, Any] | None:
    """Return the manifest of the bundle in `folder`; None when there is no bundle of mergemill.

    Raises:
        InputError: it names a file outside the folder, is malformed, or may not be read.
    """
    path = folder / MANIFEST_NAME
    try:
        # A link could lead outside the bundle, and opening a pipe would block.
        if not stat.S_ISREG(path.lstat().st_mode) or path.stat().st_size > MAX_MANIFEST_BYTES:
            return None
        data: dict[str, Any] = json.loads(path.read_bytes())
    except PermissionError as error:
        raise InputError(f"cannot read {path}: {error.strerror}") from error
    except (OSError, ValueError, RecursionError):
        return None
    is_bundle = isinstance(data, dict) and data.get("kind") == MANIFEST_KIND
    is_complete = is_bundle and isinstance(data.get("files"), dict) and isinstance(data.get("tasks"), list)
    if not is_complete:
        return None
    if problem := next(_find_problems(data["files"], data["tasks"]), None):
        raise InputError(f"{path} is malformed: {problem}")
    return data


def is_safe_path(path: str) -> bool:
    """Return whether a path is relative, has only named parts, and has no control characters."""
    # A line end in a path would forge a line in the lists of problems.
    has_control = any(ord(character) < 32 or ord(character) == 127 for character in path)
    return not has_control and not {"", ".", ".."} & set(path.split("/"))


def is_usable_name(name: str) -> bool:
    """Return whether a task's name or id can stand in a manifest: it is not empty and has no control characters."""
    return bool(name) and is_safe_path(f"x{name}".replace("/", "-"))


def _find_problems(files: Mapping[str, Any], tasks: Sequence[Any]) -> Iterator[str]:
    for path, digest in files.items():
        if not is_safe_path(path):
            yield f"the path {path[:200]!r} is not one inside the bundle"
        if not isinstance(digest, str) or not _HASH.fullmatch(digest):
            yield f"{path[:200]!r} has no sha256"
    seen: set[str] = set()
    for number, row in enumerate(tasks, 1):
        words = [str(row.get(key) or "") for key in ("name", "id")] if isinstance(row, dict) else [""]
        if not all(words):
            yield f"task {number} has no name or no id"
            continue
        for word in words:
            if word in seen or not is_usable_name(word):
                yield f"task {number} has a name or id that is not usable or not unique: {word[:200]!r}"
            seen.add(word)


def find_irregular_files(folder: Path) -> list[str]:
    """Return the links, devices, pipes and sockets below a folder, relative and sorted; nothing is opened."""
    paths = [path.as_posix() for path in list_files(folder)]
    return [path for path in paths if not stat.S_ISREG((folder / path).lstat().st_mode)]


def check_manifest(out: Path) -> list[str]:
    """Return the problems of the bundle in `out`, a line each: missing, changed and foreign files. Empty if none."""
    manifest = read_manifest(out)
    if manifest is None:
        return [f"{out} holds no {MANIFEST_NAME} of mergemill"]
    listed: dict[str, str] = manifest["files"]
    irregular = find_irregular_files(out)
    present = {path.as_posix() for path in list_files(out)} - set(irregular)
    missing = [f"missing: {path}" for path in sorted(listed.keys() - present)]
    changed = [f"changed: {path}" for path in sorted(listed.keys() & present) if hash_file(out / path) != listed[path]]
    links = [f"not a regular file: {path!r}" for path in irregular]
    return links + missing + changed + [f"not part of the bundle: {path}" for path in sorted(present - listed.keys())]

"""How a bundle comes to lie in its place: written beside it, then moved there whole, or not at all."""

from __future__ import annotations

import hashlib
import shutil
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Protocol

from exporters import manifest
from exporters.item import Item
from mergemill.errors import InputError, Transient

if TYPE_CHECKING:
    from backends.services import Services


Notes = Mapping[str, Sequence[str]]


class Writer(Protocol):
    """A format: writes all items into an empty folder; task name -> what it had to leave out or change."""

    def __call__(self, items: Sequence[Item], folder: Path, services: Services) -> Notes:
        """Write the files of the bundle, the manifest aside."""
        ...


def put(path: Path, content: bytes | str, *, executable: bool = False) -> None:
    """Write a file of a bundle, its folders with it; its mode does not depend on the user's umask."""
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(content if isinstance(content, bytes) else content.encode(errors="surrogateescape"))
    path.chmod(0o755 if executable else 0o644)


def write_bundle(format_name: str, writer: Writer, items: Sequence[Item], out: Path, services: Services) -> str:
    """Write a bundle to `out`; the sha256 of its manifest. A bundle that is there already and the same stays untouched.

    Raises:
        InputError: `out` holds something that is not a bundle of ours; two tasks would share a folder.
        Transient: the disk is full or not writable.
    """
    folders = [item.folder for item in items]
    if len(set(folders)) < len(folders):
        raise InputError(
            f"two tasks would share a folder: {', '.join(sorted(f for f in folders if folders.count(f) > 1))}"
        )
    out = out.resolve()
    if out.name == "":
        raise InputError(f"{out} cannot hold a bundle", advice="name a folder of its own")
    _check_place(out)
    half = out.with_name(f".{out.name}.half")
    try:
        shutil.rmtree(half, ignore_errors=True)
        half.mkdir(parents=True)
        try:
            notes = writer(items, half, services)
            content = manifest.describe(format_name, items, notes, half)
            put(half / manifest.NAME, content)
            _move(half, out, content)
        finally:
            shutil.rmtree(half, ignore_errors=True)
    except OSError as error:
        raise Transient(
            f"cannot write {out}: {error.strerror}", advice="free some space or choose another folder"
        ) from error
    return hashlib.sha256(content).hexdigest()


def _check_place(out: Path) -> None:
    if not out.exists():
        return
    if not out.is_dir():
        raise InputError(f"{out} is not a folder", advice="choose another --out")
    if any(out.iterdir()) and manifest.read(out) is None:
        raise InputError(f"{out} is not empty and not a bundle of mergemill's", advice="choose another --out")


def _move(half: Path, out: Path, content: bytes) -> None:
    """Put the finished bundle in its place, unless the same one is there and whole."""
    old = out.with_name(f".{out.name}.old")
    shutil.rmtree(old, ignore_errors=True)
    if out.exists():
        problems = manifest.check(out) if manifest.read(out) else []
        foreign = [line.partition(": ")[2] for line in problems if line.startswith("not of the bundle")]
        same = (out / manifest.NAME).is_file() and (out / manifest.NAME).read_bytes() == content
        if same and len(problems) == len(foreign):
            return
        if foreign:  # results that somebody left there: not ours to delete
            raise InputError(
                f"{out} also holds {foreign[0]}, which is not of the bundle", advice="move it, or choose another --out"
            )
        out.rename(old)
    half.rename(out)
    shutil.rmtree(old, ignore_errors=True)

"""Archive of an image of a bundle's layout, for an engine to load.

A layout from elsewhere may name any image. Therefore the archive is made here, of the single image that a task names,
and only if its configuration or manifest has the digest that was certified.
"""

from __future__ import annotations

import json
import re
import tarfile
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from core.errors import InputError
from exporters.image_layout import LAYOUT_FOLDER

_BLOB = re.compile(r"blobs/sha256/[0-9a-f]{64}")
_BLOCK = 1 << 20


def check_layout(folder: Path, files: Mapping[str, str]) -> Iterator[str]:
    """Yield the problems of the images of a bundle: blobs whose content has another hash than their names, and links.

    An engine takes a configuration's own hash for the image's id, so a blob under another name would be another image.

    Args:
        folder: folder of the bundle.
        files: path -> sha256 of its files.
    """
    for path, digest in files.items():
        name = path.removeprefix(f"{LAYOUT_FOLDER}/")
        if name != path and _BLOB.fullmatch(name) and not name.endswith(digest):
            yield f"{path} has another hash than its name"
        if (folder / path).is_symlink():
            yield f"{path} is a link"


def open_image_archive(folder: Path, image: str, digest: str) -> Iterator[bytes] | None:
    """Return the archive of an image in chunks; None when the bundle does not hold the image.

    Args:
        folder: folder of a bundle whose files match its manifest.
        image: name of the image.
        digest: `sha256:...` of the certified image.

    Raises:
        InputError: the layout is malformed, or the image in it is another.
    """
    layout = folder / LAYOUT_FOLDER
    if not (layout / "manifest.json").is_file():
        return None
    try:
        entries = json.loads((layout / "manifest.json").read_bytes())
        entry = next((entry for entry in entries if entry["RepoTags"] == [image]), None)
        digests = _list_digests(layout, image, entry) if entry else set()
        paths = [entry["Config"], *entry["Layers"]] if entry else []
        sound = all(_BLOB.fullmatch(path) and (layout / path).is_file() for path in paths)
    except (OSError, ValueError, KeyError, TypeError, AttributeError, RecursionError) as error:
        raise InputError(f"{layout} is no layout of images") from error
    if entry is None:
        return None
    if not sound or digest not in digests:
        raise InputError(f"{layout} has another image {image} than the certified one")
    return _stream_archive(layout, {"Config": entry["Config"], "RepoTags": [image], "Layers": entry["Layers"]})


def _list_digests(layout: Path, image: str, entry: dict[str, Any]) -> set[str]:
    """Return the digests of an image's configuration and manifest; engines use the one or the other as its id."""
    index = json.loads((layout / "index.json").read_bytes())
    names = (
        (manifest["digest"], manifest["annotations"]["org.opencontainers.image.ref.name"])
        for manifest in index["manifests"]
    )
    config = entry["Config"].removeprefix("blobs/sha256/")
    return {f"sha256:{config}", *(digest for digest, name in names if name == image)}


def _stream_archive(layout: Path, entry: dict[str, Any]) -> Iterator[bytes]:
    content = json.dumps([entry]).encode()
    yield _make_header("manifest.json", len(content))
    yield content + bytes(-len(content) % tarfile.BLOCKSIZE)
    for path in dict.fromkeys([entry["Config"], *entry["Layers"]]):
        size = (layout / path).stat().st_size
        yield _make_header(path, size)
        with (layout / path).open("rb") as file:
            while block := file.read(_BLOCK):
                yield block
        yield bytes(-size % tarfile.BLOCKSIZE)
    yield bytes(2 * tarfile.BLOCKSIZE)


def _make_header(name: str, size: int) -> bytes:
    info = tarfile.TarInfo(name)
    info.size = size
    return info.tobuf(tarfile.GNU_FORMAT)

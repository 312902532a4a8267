"""OCI layout of the images of a bundle: every layer once, readable by `docker load`, skopeo and podman.

The engine's archive is unpacked as it is read, file by file to its sha256, so a layer that several images share is kept
once. `manifest.json` beside the layout's own files makes the folder an archive for `docker load`, too.
"""

from __future__ import annotations

import hashlib
import json
import posixpath
import tarfile
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import IO, TYPE_CHECKING, Any, cast

from backends.sandbox.archive import ChunkReader
from core.errors import InputError, Transient
from exporters.bundle_writer import BundleWriter, write_file
from exporters.item import ExportItem

if TYPE_CHECKING:
    from backends.sandbox.images import ImageStore
    from backends.services import Services

LAYOUT_FOLDER = "images"
"""Folder of the layout in a bundle."""
_BLOCK = 1 << 20
_MANIFEST_TYPE = "application/vnd.oci.image.manifest.v1+json"
_CONFIG_TYPE = "application/vnd.oci.image.config.v1+json"
_LAYER_TYPE = "application/vnd.oci.image.layer.v1.tar"


def add_images(writer: BundleWriter) -> BundleWriter:
    """Return a writer that also writes the images of the tasks into the folder LAYOUT_FOLDER of the bundle."""

    def write(items: Iterable[ExportItem], folder: Path, services: Services) -> None:
        images: dict[str, str] = {}

        def collect() -> Iterator[ExportItem]:
            for item in items:
                if item.task.image:
                    images[item.task.image] = (item.certificate or item.task).image_digest
                yield item

        writer(collect(), folder, services)
        if images:
            write_image_layout(images, folder / LAYOUT_FOLDER, services.images)

    return write


def write_image_layout(images: Mapping[str, str], folder: Path, image_store: ImageStore) -> None:
    """Write the images of an engine as an OCI layout.

    Args:
        images: name -> digest of the certified image.
        folder: a new folder.
        image_store: the engine's images.

    Raises:
        InputError: an image is missing, or is not the certified image.
        Transient: the engine failed.
    """
    for name, digest in images.items():
        _check_image(name, digest, image_store)
    with image_store.open_archive(sorted(images)) as chunks:
        digests = _unpack_blobs(cast("IO[bytes]", ChunkReader(chunks)), folder)
    saved = json.loads(_find_blob(folder, digests["manifest.json"]).read_bytes())
    entries = sorted((_describe_image(entry, digests, folder) for entry in saved), key=lambda entry: entry["name"])
    if missing := sorted(images.keys() - {entry["name"] for entry in entries}):
        raise Transient(f"the engine did not save {missing[0]}", advice="export again")
    _write_indices(entries, folder)
    _remove_other_blobs(entries, folder)


def _check_image(name: str, digest: str, image_store: ImageStore) -> None:
    info = image_store.inspect(name)
    if info is None:
        raise InputError(f"{name} is not here", advice="`mergemill images pull`, or export where it was built")
    if info.digest != digest:
        advice = f"certified was {digest}; `mergemill certify` certifies the image that is here"
        raise InputError(f"{name} was rebuilt here and is not the certified image", advice=advice)


def _unpack_blobs(archive: IO[bytes], folder: Path) -> dict[str, str]:
    """Write the files of a saved archive under their sha256; return path -> sha256, links included."""
    digests: dict[str, str] = {}
    links: dict[str, str] = {}
    with tarfile.open(fileobj=archive, mode="r|") as tar:
        for member in tar:
            content = tar.extractfile(member) if member.isreg() else None
            if content:
                digests[posixpath.normpath(member.name)] = _store_blob(content, folder)
            elif member.issym():  # old engines write a link for a layer that is in the archive already
                target = posixpath.join(posixpath.dirname(member.name), member.linkname)
                links[posixpath.normpath(member.name)] = posixpath.normpath(target)
    return digests | {path: digests[target] for path, target in links.items() if target in digests}


def _store_blob(content: IO[bytes], folder: Path) -> str:
    incoming = folder / "incoming"
    incoming.parent.mkdir(parents=True, exist_ok=True)
    hasher = hashlib.sha256()
    with incoming.open("wb") as file:
        while block := content.read(_BLOCK):
            hasher.update(block)
            file.write(block)
    digest = hasher.hexdigest()
    _find_blob(folder, digest).parent.mkdir(parents=True, exist_ok=True)
    incoming.chmod(0o644)
    incoming.rename(_find_blob(folder, digest))
    return digest


def _find_blob(folder: Path, digest: str) -> Path:
    return folder / "blobs" / "sha256" / digest


def _describe_image(entry: Mapping[str, Any], digests: Mapping[str, str], folder: Path) -> dict[str, Any]:
    """Return name, configuration, layers and manifest (descriptors) of an image; write its manifest.

    Raises:
        Transient: a layer is not the layer that the configuration names.
    """
    config = digests[posixpath.normpath(entry["Config"])]
    layers = [digests[posixpath.normpath(name)] for name in entry["Layers"]]
    diff_ids = json.loads(_find_blob(folder, config).read_bytes())["rootfs"]["diff_ids"]
    descriptors = []
    for layer, diff_id in zip(layers, diff_ids, strict=True):
        with _find_blob(folder, layer).open("rb") as file:
            is_packed = file.read(2) == b"\x1f\x8b"
        if not is_packed and diff_id != f"sha256:{layer}":
            raise Transient(f"the engine saved a damaged layer of {entry['RepoTags'][0]}", advice="export again")
        descriptors.append(_describe_blob(_LAYER_TYPE + ("+gzip" if is_packed else ""), layer, folder))
    manifest = {
        "schemaVersion": 2,
        "mediaType": _MANIFEST_TYPE,
        "config": _describe_blob(_CONFIG_TYPE, config, folder),
        "layers": descriptors,
    }
    content = _encode(manifest)
    digest = hashlib.sha256(content).hexdigest()
    write_file(_find_blob(folder, digest), content)
    descriptor = _describe_blob(_MANIFEST_TYPE, digest, folder)
    return {"name": entry["RepoTags"][0], "config": config, "layers": layers, "manifest": descriptor}


def _describe_blob(media_type: str, digest: str, folder: Path) -> dict[str, Any]:
    size = _find_blob(folder, digest).stat().st_size
    return {"mediaType": media_type, "digest": f"sha256:{digest}", "size": size}


def _write_indices(entries: Sequence[Mapping[str, Any]], folder: Path) -> None:
    """Write the files that name the images, for readers of OCI layouts and for `docker load`."""
    manifests = [
        {
            **entry["manifest"],
            "annotations": {
                "io.containerd.image.name": f"docker.io/{entry['name']}",
                "org.opencontainers.image.ref.name": entry["name"],
            },
        }
        for entry in entries
    ]
    index = {"schemaVersion": 2, "mediaType": "application/vnd.oci.image.index.v1+json", "manifests": manifests}
    write_file(folder / "index.json", _encode(index))
    write_file(folder / "oci-layout", _encode({"imageLayoutVersion": "1.0.0"}))
    saved = [
        {
            "Config": f"blobs/sha256/{entry['config']}",
            "RepoTags": [entry["name"]],
            "Layers": [f"blobs/sha256/{layer}" for layer in entry["layers"]],
        }
        for entry in entries
    ]
    write_file(folder / "manifest.json", _encode(saved))


def _remove_other_blobs(entries: Sequence[Mapping[str, Any]], folder: Path) -> None:
    """Remove files of the archive that are not part of the layout."""
    needed = {entry["config"] for entry in entries} | {layer for entry in entries for layer in entry["layers"]}
    needed |= {entry["manifest"]["digest"].partition(":")[2] for entry in entries}
    for blob in (folder / "blobs" / "sha256").iterdir():
        if blob.name not in needed:
            blob.unlink()


def _encode(data: Any) -> bytes:
    return (json.dumps(data, indent=1, sort_keys=True) + "\n").encode()

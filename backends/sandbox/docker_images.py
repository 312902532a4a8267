"""Image store of a Docker engine."""

from __future__ import annotations

import contextlib
import http
import itertools
import json
import logging
import tempfile
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager
from typing import IO

import requests

from backends.sandbox import archive
from backends.sandbox.engine import DockerEngine, translate_errors
from backends.sandbox.execution import ExecResult, ResourceLimits
from backends.sandbox.image_registry import TRANSFER_TIMEOUT, ImageRegistryClient, split_image_name
from backends.sandbox.images import EngineInfo, ImageInfo, StoredImage
from backends.sandbox.inventory import estimate_image_bytes, list_stored_images
from backends.sandbox.locks import hold_machine_lock
from core.errors import InputError

log = logging.getLogger(__name__)


class DockerImageStore:
    """Images of a Docker engine; the methods are described in `backends.sandbox.images.ImageStore`."""

    def __init__(self, engine: DockerEngine) -> None:
        self._engine = engine
        self._registry = ImageRegistryClient(engine.get_client, engine.stopping)

    def build(
        self,
        base: str,
        command: Sequence[str],
        name: str,
        *,
        limits: ResourceLimits,
        tree: IO[bytes] | None = None,
        files: Mapping[str, bytes] | None = None,
        env: Mapping[str, str] | None = None,
        keep_env: Mapping[str, str] | None = None,
        workdir: str | None = None,
        network: bool = True,
        labels: Mapping[str, str] | None = None,
    ) -> tuple[ExecResult, ImageInfo | None]:
        """Run `command` in a container of `base` and commit it as image `name`.

        Neither command nor environment are part of the container's configuration, because the engine copies that into
        the image: both are in a script under /run/mergemill that removes itself and `files` when the command ends.
        """
        content = {**(files or {}), archive.COMMAND_FILE: archive.build_script(command, env or {}, files or ())}
        script = ["/bin/sh", archive.COMMAND_FILE]
        with translate_errors(), self._engine.open_container(base, script, limits, network=network) as container:
            head = archive.build_tar(content, is_continued=tree is not None)
            container.put_archive(head if tree is None else itertools.chain([head], archive.read_chunks(tree)))
            result = container.execute(())
            if result.exit_code or result.killed_by:
                return result, None
            self._engine.leases.acquire(name)
            config = {
                "Entrypoint": [],
                "Cmd": ["/bin/bash"],
                "User": "root",
                "WorkingDir": workdir or "",
                "Env": [f"{key}={value}" for key, value in (keep_env or {}).items()],
                "Labels": dict(labels or {}),
            }
            self._engine.get_client(TRANSFER_TIMEOUT).commit(container.id, *split_image_name(name), conf=config)
            return result, self.inspect(name)

    def inspect(self, name: str) -> ImageInfo | None:
        """Return the image of that name or digest, or None."""
        self._engine.leases.acquire(name)
        with translate_errors():
            client = self._engine.get_client()
            try:
                image = client.inspect_image(name)
                sizes = [step["Size"] for step in client.history(image["Id"])]
            except requests.HTTPError as error:
                if not _has_status(error, http.HTTPStatus.NOT_FOUND):
                    raise
                self._engine.leases.release(name)
                return None
        return ImageInfo(
            name=name,
            digest=image["Id"],
            layer_bytes=next((size for size in sizes if size), 0),
            labels=image["Config"].get("Labels") or {},
            layers=tuple(image["RootFS"].get("Layers") or ()),
        )

    def find_by_label(self, label: str) -> list[ImageInfo]:
        """Return all named images that carry the label (`key` or `key=value`)."""
        with translate_errors():
            images = self._engine.get_client().images(filters={"label": [label]})
        names = sorted(tag for entry in images for tag in entry["RepoTags"] or () if tag != "<none>:<none>")
        return [info for info in map(self.inspect, names) if info]

    def list_images(self, prefix: str) -> list[StoredImage]:
        """Return all images whose names start with `prefix`, with their layers."""
        with translate_errors():
            return list_stored_images(self._engine.get_client(), prefix)

    def estimate_size(self, prefix: str) -> int:
        """Return about how many bytes the images with that prefix take."""
        with translate_errors():
            return estimate_image_bytes(self._engine.get_client(), prefix)

    def get_engine_info(self) -> EngineInfo:
        """Return version, storage driver and folder of the engine."""
        return self._engine.get_info()

    def hold(self) -> AbstractContextManager[None]:
        """Protect the images that this thread finds, builds or uses within the block from `prune`."""
        return self._engine.leases.hold_leases()

    def lock(self, name: str) -> AbstractContextManager[None]:
        """Hold a name exclusively among all processes of this machine that use this engine."""
        return hold_machine_lock(self._engine.id, name)

    def prune(self, name: str) -> bool:
        """Remove the image unless it is held or a container uses it; return whether it is gone."""
        with self._engine.leases.try_exclusive(name) as is_free:
            if is_free:
                self.remove(name)
            return is_free and self.inspect(name) is None

    def remove(self, name: str) -> None:
        """Remove the image if it exists and no container uses it."""
        with translate_errors():
            try:
                self._engine.get_client(TRANSFER_TIMEOUT).remove_image(name)
            except requests.HTTPError as error:
                if _has_status(error, http.HTTPStatus.CONFLICT):
                    log.info("image %s is in use and is kept", name)
                elif not _has_status(error, http.HTTPStatus.NOT_FOUND):
                    raise

    def pull(self, name: str, *, seconds: float) -> bool:
        """Pull an image by tag; return whether the registry answered within `seconds` and the image is here."""
        return self._registry.pull(name, seconds=seconds) and self.inspect(name) is not None

    def push(self, name: str, target: str) -> str:
        """Push an image and return its manifest's digest."""
        with translate_errors(), self.lock(f"push-{name}"), self.hold():
            self._engine.leases.acquire(name)
            return self._registry.push(name, target)

    def pull_by_digest(self, reference: str, name: str) -> ImageInfo | None:
        """Pull an image by digest. Of several threads and processes that need it, a single one pulls."""
        self._engine.leases.acquire(name)
        with translate_errors(), self.lock(f"fetch-{name}"):
            if image_info := self.inspect(name):
                return image_info
            self._engine.record_use(name)
            return self.inspect(name) if self._registry.pull_by_digest(reference, name) else None

    def has_remote(self, reference: str) -> bool:
        """Return whether the registry has the manifest that `reference` names by digest."""
        with translate_errors():
            return self._registry.has_manifest(reference)

    def import_rootfs(self, tar: IO[bytes], name: str, *, env: Mapping[str, str], labels: Mapping[str, str]) -> None:
        """Create an image of a layer from an uncompressed tar of a root file system."""
        repository, tag = split_image_name(name)
        changes = ['CMD ["/bin/bash"]']
        changes += [f"ENV {key}={json.dumps(value)}" for key, value in env.items()]
        changes += [f"LABEL {key}={json.dumps(value)}" for key, value in labels.items()]
        with translate_errors():
            response = self._engine.get_client(TRANSFER_TIMEOUT).import_image_from_data(
                archive.read_chunks(tar), repository=repository, tag=tag, changes=changes
            )
            last = json.loads(response.splitlines()[-1]) if response else {}
            if "error" in last:
                raise requests.RequestException(last["error"])

    @contextlib.contextmanager
    def open_archive(self, names: Sequence[str]) -> Iterator[Iterator[bytes]]:
        """Open the archive that `docker save NAME...` writes, in chunks."""
        with translate_errors():
            if missing := [name for name in names if self.inspect(name) is None]:
                raise InputError(f"no such image: {missing[0]}")
            client = self._engine.get_client(TRANSFER_TIMEOUT)
            url = f"{client.base_url}/v{client.api_version}/images/get"  # the SDK saves one image at a time
            with client.get(url, params={"names": list(names)}, stream=True, timeout=TRANSFER_TIMEOUT) as response:
                response.raise_for_status()
                yield response.iter_content(1 << 20)

    def load_archive(self, chunks: Iterable[bytes]) -> None:
        """Add the images of an archive in the format of `docker save` to the engine."""
        with translate_errors():
            client = self._engine.get_client(TRANSFER_TIMEOUT)
            for line in client.load_image(chunks, quiet=True):
                if problem := line.get("error"):
                    raise InputError(f"the engine cannot load an image: {str(problem)[:200]!r}")

    @contextlib.contextmanager
    def open_layers(self, name: str) -> Iterator[Iterator[tuple[str, IO[bytes]]]]:
        """Open the layers of an image, base first: (diff id, uncompressed tar stream).

        The engine exports layers in an order of its own and their list last, so the image is spooled to a temporary
        file.
        """
        with tempfile.TemporaryFile() as spool:
            with translate_errors():
                if self.inspect(name) is None:
                    raise InputError(f"no such image: {name}")
                for chunk in self._engine.get_client(TRANSFER_TIMEOUT).get_image(name):
                    spool.write(chunk)
            spool.seek(0)
            yield archive.read_saved_layers(spool)


def _has_status(error: requests.HTTPError, status: http.HTTPStatus) -> bool:
    return error.response is not None and error.response.status_code == status

"""A real registry (Debian's docker-registry) on a free port of localhost, with images small enough for it."""

from __future__ import annotations

import base64
import io
import json
import os
import shutil
import socket
import subprocess
import tarfile
import time
import uuid
from collections.abc import Mapping
from dataclasses import dataclass, field
from ipaddress import ip_network
from pathlib import Path
from typing import Any

import docker
import pytest
import requests
import yaml

from backends.sandbox.docker import DockerSandbox

ADVICE = "docker-registry is not installed: apt-get install -y docker-registry"
PASSWORDS = "ada:$2y$05$6skEiQ4TYxX0Rqv3Y7jDp.FGoRAqHD1AC0LryeGxO.4wAAktSuQr6\n"
"""htpasswd, bcrypt: user ada with the password `secret`."""


@dataclass
class LocalRegistry:
    """A registry process; `home` is a DOCKER_CONFIG folder with its credentials."""

    folder: Path
    locked: bool = False
    address: str = "localhost"
    """Of this machine; engines take others than `localhost` only as insecure registries."""
    port: int = 0
    process: subprocess.Popen[bytes] | None = field(default=None, repr=False)

    @property
    def host(self) -> str:
        return f"{self.address}:{self.port}"

    @property
    def home(self) -> Path:
        home = self.folder / "docker"
        home.mkdir(exist_ok=True)
        word = base64.b64encode(b"ada:secret").decode()
        (home / "config.json").write_text(json.dumps({"auths": {self.host: {"auth": word}}}))
        return home

    def start(self) -> None:
        """Start it, on the same port as before."""
        program = shutil.which("docker-registry", path=f"{os.environ['PATH']}:/usr/bin")
        if not program:
            (pytest.fail if os.environ.get("CI") else pytest.skip)(ADVICE)
        self.folder.mkdir(parents=True, exist_ok=True)
        self.port = self.port or _find_free_port()
        own = "127.0.0.1" if self.address == "localhost" else self.address
        (self.folder / "passwords").write_text(PASSWORDS)
        config: dict[str, Any] = {
            "version": "0.1",
            "log": {"level": "error"},
            "http": {"addr": f"{own}:{self.port}"},
            "storage": {"filesystem": {"rootdirectory": str(self.folder / "data")}, "delete": {"enabled": True}},
        }
        if self.locked:
            config["auth"] = {"htpasswd": {"realm": "test", "path": str(self.folder / "passwords")}}
        (self.folder / "config.yml").write_text(yaml.safe_dump(config))
        with (self.folder / "log").open("ab") as log:
            self.process = subprocess.Popen(
                [str(program), "serve", str(self.folder / "config.yml")], stdout=log, stderr=log
            )
        for _ in range(100):
            with socket.socket() as client:
                if client.connect_ex((own, self.port)) == 0:
                    return
            time.sleep(0.05)
        raise AssertionError((self.folder / "log").read_text())

    def stop(self) -> None:
        if self.process is not None:
            self.process.kill()
            self.process.wait()
            self.process = None

    def blob_path(self, digest: str) -> Path:
        """Return the file in which the registry stores a manifest or layer."""
        hashed = digest.removeprefix("sha256:")
        return self.folder / f"data/docker/registry/v2/blobs/sha256/{hashed[:2]}/{hashed}/data"

    def fetch_manifest(self, reference: str) -> dict[str, Any]:
        """Return the manifest of `HOST/PREFIX/env@sha256:...`, requested over HTTP."""
        repository, _, digest = reference.partition("/")[2].partition("@")
        accept = {"Accept": "application/vnd.docker.distribution.manifest.v2+json"}
        url = f"http://127.0.0.1:{self.port}/v2/{repository}/manifests/{digest}"
        answer = requests.get(url, headers=accept, timeout=10)
        answer.raise_for_status()
        return dict(answer.json())

    def delete_manifest(self, reference: str) -> None:
        """Delete a manifest."""
        repository, _, digest = reference.partition("/")[2].partition("@")
        url = f"http://127.0.0.1:{self.port}/v2/{repository}/manifests/{digest}"
        requests.delete(url, timeout=10).raise_for_status()


def find_bridge_address() -> str:
    """Return this machine's address in the network of the engine's containers, which isolated engines see, too."""
    network = docker.from_env(version="auto").networks.get("bridge")
    config = network.attrs["IPAM"]["Config"][0]
    # An engine that has just made the bridge does not name its address: it is the first of the network.
    return config.get("Gateway") or str(ip_network(config["Subnet"])[1])


def make_tiny_image(
    sandbox: DockerSandbox, name: str | None = None, *, under: str | None = None, size: int = 8000
) -> str:
    """Build a unique image with one file of `size` bytes on top of the image `under`; return its name."""
    name = name or f"mergemill-test/tiny:{uuid.uuid4().hex[:16]}"
    files = make_rootfs({f"file-{uuid.uuid4().hex}": uuid.uuid4().bytes * (size // 16)})
    if under is None:
        sandbox.images.import_rootfs(files, name, env={}, labels={})
        return name
    client = sandbox.engine.get_client()
    container = client.create_container(under, ["/none"])["Id"]
    try:
        client.put_archive(container, "/", files)
        client.commit(container, *name.rsplit(":", 1))
    finally:
        client.remove_container(container)
    return name


def make_rootfs(files: Mapping[str, bytes]) -> io.BytesIO:
    """Return a root file system with these files."""
    out = io.BytesIO()
    with tarfile.open(fileobj=out, mode="w") as tar:
        for path, content in files.items():
            entry = tarfile.TarInfo(path)
            entry.size, entry.mode = len(content), 0o755
            tar.addfile(entry, io.BytesIO(content))
    out.seek(0)
    return out


def _find_free_port() -> int:
    with socket.socket() as server:
        server.bind(("127.0.0.1", 0))
        return int(server.getsockname()[1])

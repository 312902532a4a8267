"""The base image of Python without what pure Python projects do not need, for tests that copy or read all of it."""

from __future__ import annotations

import json
import time
import uuid
from collections.abc import Iterator
from contextlib import contextmanager

import docker

from backends.sandbox.images import ImageStore
from backends.services import Services
from benchmarks.isolated_engine import BASES, IsolatedEngine
from builders.bases import ensure_base

REMOVE_SECONDS = 10.0
STRIP = """
cd /usr && rm -rf include lib/gcc lib/apt lib/x86_64-linux-gnu/{perl,gprofng,ldscripts,*.a,libgprofng*,lib*san.so*} \
    share/{perl,perl5,doc,man,info,locale,zoneinfo/right,zoneinfo/posix} bin/{x86_64-linux-gnu-*,perl*,scalar,openssl} \
    lib/python3.*/{idlelib,lib2to3,pydoc_data,test} /var/{lib/apt,cache}/*
"""


@contextmanager
def open_small_base(services: Services) -> Iterator[tuple[str, str]]:
    """Make a small copy of the base of Python 3.11; return its tag, and the name that engines are to know it by."""
    name, client = ensure_base("python", "3.11", services).name, docker.from_env(version="auto").api
    config = client.inspect_image(name)["Config"]
    changes = [f"ENV {key}={json.dumps(value)}" for key, _, value in (word.partition("=") for word in config["Env"])]
    changes += [f"LABEL {key}={json.dumps(value)}" for key, value in config["Labels"].items()]
    changes += [f"CMD {json.dumps(config['Cmd'])}"]
    tag = f"small-{uuid.uuid4().hex[:16]}"
    container = client.create_container(name, ["/bin/bash", "-c", STRIP], network_disabled=True)["Id"]
    try:
        client.start(container)
        assert client.wait(container)["StatusCode"] == 0, client.logs(container)
        client.import_image_from_data(client.export(container), repository=BASES, tag=tag, changes=changes)
    finally:
        client.remove_container(container, force=True)
    try:
        yield tag, name
    finally:
        remove_base(f"{BASES}:{tag}", services.images)


def name_base(engine: IsolatedEngine, tag: str, name: str) -> None:
    """Give the small base of an engine the name of the base."""
    client = docker.DockerClient(base_url=engine.host, version="auto")
    client.images.get(f"{BASES}:{tag}").tag(name)
    client.images.remove(f"{BASES}:{tag}")
    client.close()


def remove_base(name: str, images: ImageStore) -> None:
    """Remove an image once no container uses it: that whose network another engine used may take a moment to go."""
    end = time.monotonic() + REMOVE_SECONDS
    while images.inspect(name) is not None and time.monotonic() < end:
        images.remove(name)
        time.sleep(0.1)

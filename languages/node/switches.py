"""The named ways in which a draft for Node is rendered."""

from __future__ import annotations

BUILD = "build"
IGNORE_SCRIPTS = "ignore-scripts"
FORGIVING = "forgiving"
NEWER_GYP = "newer-gyp"

SWITCHES = {
    BUILD: "what CI builds before the tests is built with the tree",
    IGNORE_SCRIPTS: "packages' install scripts are not run: what they would fetch or compile is missing",
    NEWER_GYP: "addons are compiled by node-gyp 8, for Pythons that npm 6 knows nothing of",
    FORGIVING: "peer dependencies need not fit, and the lock file may be older than package.json",
}

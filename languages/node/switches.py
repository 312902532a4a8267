"""Switches of Node drafts."""

from __future__ import annotations

BUILD = "build"
IGNORE_SCRIPTS = "ignore-scripts"
RELAXED_PEERS = "forgiving"
NEWER_GYP = "newer-gyp"

SWITCHES = {
    BUILD: "what CI builds before the tests is built with the tree",
    IGNORE_SCRIPTS: "install scripts of packages are not run: what they would download or compile is missing",
    NEWER_GYP: "addons are compiled by node-gyp 8, because npm 6 does not support newer Python versions",
    RELAXED_PEERS: "unmet peer dependencies and a lock file older than package.json are accepted",
}

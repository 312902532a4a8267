"""The named ways in which a Python draft is rendered."""

from __future__ import annotations

PACKAGED = "packaged"
INSTALL_DEPENDENCIES = "install-dependencies"

SWITCHES = {
    PACKAGED: "the tree is installed, editable; else it is the import path",
    INSTALL_DEPENDENCIES: "installing the tree may bring further packages, which only running its metadata tells",
}

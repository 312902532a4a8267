"""Switches of Python drafts."""

from __future__ import annotations

INSTALL_PROJECT = "packaged"
INSTALL_DEPENDENCIES = "install-dependencies"

SWITCHES = {
    INSTALL_PROJECT: "the tree is installed, editable; else it is the import path",
    INSTALL_DEPENDENCIES: "installing the tree may add packages that only its computed metadata requires",
}

"""Switches of Python drafts."""

from __future__ import annotations

INSTALL_PROJECT = "packaged"
INSTALL_DEPENDENCIES = "install-dependencies"
IGNORE_UV_SETTINGS = "ignore-uv-settings"

SWITCHES = {
    INSTALL_PROJECT: "the tree is installed, editable; else it is the import path",
    INSTALL_DEPENDENCIES: "installing the tree may add packages that only its computed metadata requires",
    IGNORE_UV_SETTINGS: "the project's settings of uv are not read: they hide packages by their age, or exempt some",
}

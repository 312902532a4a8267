"""Debian packages that CI installs in addition to the language's own packages."""

from __future__ import annotations

import re

from languages.facts import SourcedValue
from languages.source_tree import SourceTree
from languages.workflows import read_jobs

_EXCLUDED_PACKAGES = re.compile(
    r"texlive|^language-pack|^redis|^libgmp3-dev$|^php\d|^php-|^ruby\d|^elixir$|^(esl-)?erlang"
)
"""Matches packages that bases already have, and packages of gigabytes for a few tests that skip themselves without
them."""


def find_system_packages(tree: SourceTree) -> dict[str, SourcedValue]:
    """Return name -> source of the Debian packages that CI jobs with tests install, sorted by name."""
    packages: dict[str, SourcedValue] = {}
    for job in read_jobs(tree):
        for package in () if job.is_auxiliary else job.list_system_packages():
            if not _EXCLUDED_PACKAGES.search(package.text):
                packages.setdefault(package.text, package)
    return dict(sorted(packages.items()))

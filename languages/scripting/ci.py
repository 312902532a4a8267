"""What CI installs beside the language's own packages."""

from __future__ import annotations

import re

from languages.facts import Wanted
from languages.tree import Tree
from languages.workflows import jobs

_NOT_TAKEN = re.compile(r"texlive|^language-pack|^redis|^libgmp3-dev$|^php\d|^php-|^ruby\d|^elixir$|^(esl-)?erlang")
"""What CI installs and a base has, or what takes gigabytes for a few tests that skip themselves without it."""


def system_packages(tree: Tree) -> dict[str, Wanted]:
    """Name -> place of the Debian packages that the CI jobs about tests install, by name."""
    found: dict[str, Wanted] = {}
    for job in jobs(tree):
        for wanted in () if job.is_beside else job.system_packages():
            if not _NOT_TAKEN.search(wanted.text):
                found.setdefault(wanted.text, wanted)
    return dict(sorted(found.items()))

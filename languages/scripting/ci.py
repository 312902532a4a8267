"""What CI installs and starts beside the language's own packages."""

from __future__ import annotations

import re

from languages.draft import Draft
from languages.facts import Wanted
from languages.services import of_image, with_service
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


def with_services(draft: Draft, tree: Tree) -> Draft:
    """The draft with the servers that the CI jobs about tests start, as far as they can be started here."""
    for job in jobs(tree):
        for service in () if job.is_beside else job.services:
            if name := of_image(service.text):
                draft = with_service(draft, Wanted(text=name, path=service.path, line=service.line))
    return draft

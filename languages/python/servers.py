"""Servers that CI starts beside the tests, and the variables by which the tests find them."""

from __future__ import annotations

import re
from dataclasses import replace

from languages.draft import Draft
from languages.python.ci import NOT_TESTS
from languages.python.commands import TEST_RUNNERS
from languages.services import of_image, with_service
from languages.tree import Tree
from languages.workflows import Job, jobs

_VARIABLE = re.compile(r"(^|_)(DATABASE|POSTGRES|POSTGRESQL|PG\w+|DB|REDIS|BROKER|CACHE)(_|$)|^PG[A-Z]+$|DATABASE_URL$")
_HOSTS = re.compile(r"(?<=@|/)(postgres|postgresql|db|redis|cache|database)(?=[:/]|$)|^(postgres|postgresql|redis)$")


def with_servers(made: Draft, tree: Tree) -> Draft:
    """The draft with the servers that jobs with tests start; they are all on this machine here."""
    for job in jobs(tree):
        if not _runs_tests(job):
            continue
        for image in job.services:
            if name := of_image(image.text):
                made = with_service(made, replace(image, text=name))
                made = replace(made, env=(*made.env, *_variables(made, job)))
    return made


def _runs_tests(job: Job) -> bool:
    said = "\n".join(line.text for line in job.lines)
    return bool(TEST_RUNNERS.search(said)) and not NOT_TESTS.search(job.name)


def _variables(made: Draft, job: Job) -> tuple[tuple[str, str], ...]:
    """Those of CI that speak of a server, with this machine as host."""
    have = {name for name, _ in made.env}
    return tuple(
        (name, value if name.endswith(("USER", "PASSWORD", "NAME", "DB")) else _HOSTS.sub("localhost", value))
        for name, value in job.env
        if name not in have and _VARIABLE.search(name) and "$" not in value
    )

"""Servers that CI starts for the tests, and the variables that configure their address."""

from __future__ import annotations

import re
from dataclasses import replace

from languages.draft import PlanDraft
from languages.python.ci import NOT_TESTS
from languages.python.commands import TEST_RUNNERS
from languages.services import add_service, parse_service_image
from languages.source_tree import SourceTree
from languages.workflows import Job, read_jobs

_VARIABLE = re.compile(
    r"(^|_)(DATABASE|POSTGRES|POSTGRESQL|PG\w+|DB|REDIS|BROKER|CACHE|HTTPBIN)(_|$)|^PG[A-Z]+$|DATABASE_URL$"
)
_HOSTS = re.compile(
    r"(?<=@|/)(postgres|postgresql|db|redis|cache|database|httpbin)(?=[:/]|$)|^(postgres|postgresql|redis)$"
)


def add_servers(draft: PlanDraft, tree: SourceTree) -> PlanDraft:
    """Return the draft with the servers of CI jobs that run tests; in the container all of them run on localhost."""
    for job in read_jobs(tree):
        if not _runs_tests(job):
            continue
        for image in job.services:
            if name := parse_service_image(image.text):
                draft = add_service(draft, replace(image, text=name))
                draft = replace(draft, env=(*draft.env, *_read_variables(draft, job)))
    return draft


def _runs_tests(job: Job) -> bool:
    script = "\n".join(line.text for line in job.lines)
    return bool(TEST_RUNNERS.search(script)) and not NOT_TESTS.search(job.name)


def _read_variables(draft: PlanDraft, job: Job) -> tuple[tuple[str, str], ...]:
    """Return the CI variables that refer to a server, with localhost as host."""
    existing = {name for name, _ in draft.env}
    return tuple(
        (name, value if name.endswith(("USER", "PASSWORD", "NAME", "DB")) else _HOSTS.sub("localhost", value))
        for name, value in job.env
        if name not in existing and _VARIABLE.search(name) and "$" not in value
    )

"""The grading server of an adapter, and threads that wait for its scores."""

from __future__ import annotations

import asyncio
import os
from concurrent.futures import ThreadPoolExecutor
from functools import cache, partial
from typing import Any, Callable

from mergemill_client.environment import TaskEnvironment
from mergemill_client.errors import ClientError
from mergemill_client.scores import GRADED

URL, TOKEN, SHAPE = "MERGEMILL_GRADER_URL", "MERGEMILL_GRADER_TOKEN", "MERGEMILL_REWARD"
MAX_WAITING = 256
"""Submissions that one process waits for at a time."""


def connect(url: str | None = None, token: str | None = None, shape: str | None = None) -> TaskEnvironment:
    """Return the environment of a server; what is not given comes from the variables URL, TOKEN and SHAPE.

    Raises:
        ClientError: no server is named.
    """
    address = url or os.environ.get(URL)
    if not address:
        raise ClientError(f"no grading server is named: set {URL}, or the url of the adapter")
    return _connect(address, token or os.environ.get(TOKEN), shape or os.environ.get(SHAPE) or GRADED)


@cache
def _connect(url: str, token: str | None, shape: str) -> TaskEnvironment:
    return TaskEnvironment(url, token, shape=shape)


@cache
def _open_pool() -> ThreadPoolExecutor:
    return ThreadPoolExecutor(MAX_WAITING, thread_name_prefix="grade")


async def wait_for(function: Callable[..., Any], *arguments: Any) -> Any:
    """Return the result of a function that waits for a server, without holding up the event loop."""
    return await asyncio.get_running_loop().run_in_executor(_open_pool(), partial(function, *arguments))


def build_row_facts(prompt: dict[str, Any]) -> dict[str, Any]:
    """Return the columns by which a row of a data set finds its task again."""
    names = ("task", "kind", "image", "workdir", "submission_path", "collect_command")
    return {name: prompt[name] or "" for name in names}

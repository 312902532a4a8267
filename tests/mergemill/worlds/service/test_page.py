"""The programs of the page about serving, run against a service."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from tests.world_service import RunningService

pytestmark = pytest.mark.docker
PAGE = Path(__file__).parents[4] / "docs/guide/worlds/worlds.md"


def run_block(word: str, service: RunningService) -> dict[str, object]:
    blocks = re.findall(r"```python\n(.*?)```", PAGE.read_text(), re.DOTALL)
    (block,) = [block for block in blocks if word in block]
    names: dict[str, object] = {}
    exec(block.replace("http://127.0.0.1:8600", service.url), names)  # noqa: S102 - the page is ours
    return names


def test_the_program_of_the_client(service: RunningService) -> None:
    names = run_block("RemoteWorldEnvironment", service)
    assert (names["reward"], names["terminated"], names["truncated"]) == (0.0, True, False)


def test_the_program_of_mcp(service: RunningService) -> None:
    names = run_block("from mcp import", service)
    assert (names["n_tools"], names["reward"]) == (16, 0.0)

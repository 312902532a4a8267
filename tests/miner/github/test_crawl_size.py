"""A large repository takes time but hardly any memory."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from tests.github import GitHub
from tests.github.generate import make_world

ROOT = Path(__file__).parents[3]


def read(folder: Path, pull_requests: int) -> tuple[int, int]:
    """Return how many pull requests were read, and the peak memory in MB."""
    with GitHub(make_world(folder / "world", seed=13, pull_requests=pull_requests)) as hub:
        done = subprocess.run(
            [sys.executable, "-m", "tests.miner.github.read_in_subprocess", hub.url, str(folder / "store")],
            cwd=ROOT,
            check=True,
            capture_output=True,
            text=True,
        )
    count, memory = done.stdout.split()
    return int(count), int(memory)


@pytest.mark.slow
def test_ten_thousand_pull_requests_take_hardly_more_memory_than_a_thousand(tmp_path: Path) -> None:
    _, little = read(tmp_path / "small", 1000)
    count, much = read(tmp_path / "large", 10_000)
    assert count > 7500
    assert much - little < 40, f"{little} MB for a thousand, {much} MB for ten thousand"

"""The crates' index as it was on a day, told over HTTP to cargo in a box."""

from __future__ import annotations

import json
import subprocess
import sys
import time
from collections.abc import Iterator, Mapping
from importlib import resources
from pathlib import Path

import httpx
import pytest

DAY = "2021-05-01"
OF_VERSIONS: Mapping[str, tuple[str, bool]] = {
    "0.7.0": ("2019-01-01", True), "0.7.1": ("2019-02-01", False), "0.8.0": ("2020-01-01", True),
    "0.8.1": ("2020-10-12", True), "0.8.2": ("2021-07-30", False), "1.0.0": ("2021-01-01", False),
    "1.2.0": ("2021-02-01", True), "2.0.0-alpha.1": ("2021-03-01", True), "0.0.1": ("2018-01-01", True),
    "0.0.2": ("2018-02-01", False),
}  # fmt: skip
"""Version -> (when it was published, whether it was withdrawn since)."""


@pytest.fixture
def address(tmp_path: Path) -> Iterator[str]:
    """Of the index, whose cache knows one crate."""
    index = tmp_path / "registry/index/index.example.org-1"
    crate = index / ".cache/cr/at/crate"
    crate.parent.mkdir(parents=True)
    (index / "config.json").write_text("{}")
    told = [
        json.dumps({"name": "crate", "vers": version, "yanked": yanked, "pubtime": f"{day}T10:00:00Z"}).encode()
        for version, (day, yanked) in OF_VERSIONS.items()
    ]
    crate.write_bytes(b"\x03\0" + b"\0".join(part for line in told for part in (b"1.0.0", line)) + b"\0")
    script = resources.files("languages.rust").joinpath("dated_index.py").read_bytes()
    server = subprocess.Popen([sys.executable, "-", DAY, str(tmp_path)], stdin=subprocess.PIPE)
    assert server.stdin is not None
    server.stdin.write(script)
    server.stdin.close()
    port = tmp_path / "port"
    while not (port.exists() and port.read_text()):
        assert server.poll() is None
        time.sleep(0.02)
    yield f"http://127.0.0.1:{port.read_text()}"
    server.kill()
    server.wait()


def test_of_a_crate_what_was_there_is_told_and_of_each_major_version_something_that_counts(address: str) -> None:
    told = [json.loads(line) for line in httpx.get(f"{address}/cr/at/crate").text.splitlines()]
    assert {one["vers"]: one["yanked"] for one in told} == {
        "0.7.0": True, "0.7.1": False, "0.8.0": True, "0.8.1": False, "1.0.0": False, "1.2.0": True,
        "2.0.0-alpha.1": False, "0.0.1": False, "0.0.2": False,
    }  # fmt: skip
    assert [one["name"] for one in told] == ["crate"] * 9

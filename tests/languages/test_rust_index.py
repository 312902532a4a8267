"""The crate index as of a day, served to cargo over HTTP."""

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
VERSIONS: Mapping[str, tuple[str, bool]] = {
    "0.7.0": ("2019-01-01", True),
    "0.7.1": ("2019-02-01", False),
    "0.8.0": ("2020-01-01", True),
    "0.8.1": ("2020-10-12", True),
    "0.8.2": ("2021-07-30", False),
    "1.0.0": ("2021-01-01", False),
    "1.2.0": ("2021-02-01", True),
    "2.0.0-alpha.1": ("2021-03-01", True),
    "0.0.1": ("2018-01-01", True),
    "0.0.2": ("2018-02-01", False),
}
"""Version -> (date of publication, whether it has been yanked since)."""


@pytest.fixture
def index_url(tmp_path: Path) -> Iterator[str]:
    """URL of an index whose cache contains one crate."""
    index = tmp_path / "registry/index/index.example.org-1"
    crate = index / ".cache/cr/at/crate"
    crate.parent.mkdir(parents=True)
    (index / "config.json").write_text("{}")
    lines = [
        json.dumps({"name": "crate", "vers": version, "yanked": yanked, "pubtime": f"{day}T10:00:00Z"}).encode()
        for version, (day, yanked) in VERSIONS.items()
    ]
    crate.write_bytes(b"\x03\0" + b"\0".join(part for line in lines for part in (b"1.0.0", line)) + b"\0")
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


def test_versions_published_by_the_day_are_served_and_every_compatibility_range_has_an_available_one(
    index_url: str,
) -> None:
    versions = [json.loads(line) for line in httpx.get(f"{index_url}/cr/at/crate").text.splitlines()]
    assert {version["vers"]: version["yanked"] for version in versions} == {
        "0.7.0": True,
        "0.7.1": False,
        "0.8.0": True,
        "0.8.1": False,
        "1.0.0": False,
        "1.2.0": True,
        "2.0.0-alpha.1": False,
        "0.0.1": False,
        "0.0.2": False,
    }
    assert [version["name"] for version in versions] == ["crate"] * 9

"""Fixtures for the tests of the miner."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, cast

import pytest

from backends.clones import CloneStore
from backends.services import Services
from core.config import Settings
from miner.mine import MinedChange, mine
from taskdb.artifacts import Artifacts
from tests.helpers import TinyRepo

if TYPE_CHECKING:
    from backends.sandbox.base import Sandbox

MIT = "MIT License\n\nPermission is hereby granted, free of charge, to any person obtaining a copy of this software\n"
START = {
    "LICENSE": MIT,
    "pkg/core.py": "def one():\n    return 2\n",
    "tests/test_core.py": "from pkg.core import one\n",
}
FIX = {
    "pkg/core.py": "def one():\n    return 1\n",
    "tests/test_core.py": "from pkg.core import one\n\n\ndef test_one():\n    assert one() == 1\n",
}


class MinerHarness:
    """Services in a temporary folder, and mining in one call."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder

    def open_services(self, **options: object) -> Services:
        settings = Settings.model_validate({"store": self.folder / "store", **options})
        return Services(
            settings=settings,
            sandbox=cast("Sandbox", None),  # the miner runs nothing
            clones=CloneStore(
                settings.storage.store_dir / "clones", settings.source.clones, attempts=2, first_wait=0.01
            ),
            artifacts=Artifacts(settings.storage.store_dir / "artifacts"),
        )

    def mine(self, source: str, **options: object) -> list[MinedChange]:
        changes = list(mine(source, self.open_services(**options)))
        assert all(isinstance(item, MinedChange) for item in changes), changes
        return cast("list[MinedChange]", changes)

    def read_patches(self, mined: MinedChange) -> tuple[str, str]:
        """Return gold and test patch of a candidate."""
        artifacts = self.open_services().artifacts
        return artifacts.get_text(mined.result.gold_patch), artifacts.get_text(mined.result.test_patch)  # type: ignore[union-attr]


@pytest.fixture
def harness(tmp_path: Path) -> MinerHarness:
    return MinerHarness(tmp_path)


@pytest.fixture
def tiny(tmp_path: Path) -> TinyRepo:
    """Create `acme/widget` with a licence, a module with a bug, and a test file."""
    repo = TinyRepo(tmp_path / "acme__widget")
    repo.commit("Begin the project", START)
    return repo


@pytest.fixture
def reason(tiny: TinyRepo, harness: MinerHarness) -> Callable[..., str]:
    """Mine, and return the reason why the newest change is rejected, or `candidate`."""

    def ask(**options: object) -> str:
        result = harness.mine(f"git:{tiny.path}", **options)[0].result
        return str(getattr(result, "reason", "candidate"))

    return ask

"""What the miner's tests start from."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, cast

import pytest

from backends.clones import Clones
from backends.services import Services
from mergemill.config import Settings
from miner.mine import Mined, mine
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


class Workshop:
    """Services in a temporary folder, and mining in one word."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder

    def services(self, **options: object) -> Services:
        settings = Settings.model_validate({"store": self.folder / "store", **options})
        return Services(
            settings=settings,
            sandbox=cast("Sandbox", None),  # the miner runs nothing
            clones=Clones(settings.store_dir / "clones", settings.clones, attempts=2, first_wait=0.01),
            artifacts=Artifacts(settings.store_dir / "artifacts"),
        )

    def mine(self, source: str, **options: object) -> list[Mined]:
        found = list(mine(source, self.services(**options)))
        assert all(isinstance(item, Mined) for item in found), found
        return cast("list[Mined]", found)

    def patches(self, mined: Mined) -> tuple[str, str]:
        """Gold and test patch of a candidate."""
        artifacts = self.services().artifacts
        return artifacts.text(mined.result.gold_patch), artifacts.text(mined.result.test_patch)  # type: ignore[union-attr]


@pytest.fixture
def workshop(tmp_path: Path) -> Workshop:
    return Workshop(tmp_path)


@pytest.fixture
def tiny(tmp_path: Path) -> TinyRepo:
    """`acme/widget` with a licence, a module with a fault, and a test file."""
    repo = TinyRepo(tmp_path / "acme__widget")
    repo.commit("Begin the project", START)
    return repo


@pytest.fixture
def reason(tiny: TinyRepo, workshop: Workshop) -> Callable[..., str]:
    """The reason for which the newest change is rejected, or `candidate`."""

    def ask(**options: object) -> str:
        result = workshop.mine(f"git:{tiny.path}", **options)[0].result
        return str(getattr(result, "reason", "candidate"))

    return ask

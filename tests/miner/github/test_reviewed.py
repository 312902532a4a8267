"""Review threads on GitHub become a review task: crawled, mined and derived."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

import pytest

from derivers.review import derive_review
from miner.mine import MinedChange, mine
from taskdb.records import Candidate
from taskdb.records.lineage import Lineage
from tests.derivers.review_helpers import derive_forms, get_oracle
from tests.derivers.test_review_threads import BEFORE, FIRST, LINE, MERGED, SAID
from tests.github import GitHub, World
from tests.github.handmade import RepositoryBuilder
from tests.miner.github.emulator_miner import EmulatorMiner
from tests.sample import LICENSE

TEST = "from shop.sums import total\n\n\ndef test_total():\n    assert total([1]) == 1\n"


@pytest.fixture
def miner(tmp_path: Path) -> Iterator[tuple[EmulatorMiner, RepositoryBuilder]]:
    world = World()
    shop = RepositoryBuilder(world, tmp_path / "there", "ada/lib")
    with GitHub(world) as hub:
        yield EmulatorMiner(hub, tmp_path / "here"), shop


def test_a_review_comment_becomes_a_task(miner: tuple[EmulatorMiner, RepositoryBuilder]) -> None:
    mining, shop = miner
    shop.commit("Begin", {"shop/sums.py": BEFORE, "LICENSE": LICENSE})
    steps = [{"shop/sums.py": FIRST, "tests/test_sums.py": TEST}, {"shop/sums.py": MERGED}]
    pull = shop.pull("Add totals of items", "So that nobody has to write a loop for them.", steps, how="squash")
    thread = shop.review(pull, "shop/sums.py", None, SAID, "Done.")
    thread.original_line = LINE
    thread.comments[0].commit = shop.code.git("rev-parse", f"{pull.head_sha}^")
    shop.publish()
    services = mining.open_services()
    (mined,) = (item for item in mine("github:ada/lib", services) if isinstance(item, MinedChange))
    candidate = mined.result
    assert isinstance(candidate, Candidate), candidate
    assert candidate.discussion == mined.pull_request.discussion
    assert candidate.id == candidate.model_copy(update={"discussion": None}).id
    oracle = get_oracle(derive_forms(derive_review(Lineage(candidate=candidate), services))["threads"])
    assert [(defect.path, defect.first_line, defect.last_line) for defect in oracle.defects] == [
        ("shop/sums.py", LINE, LINE)
    ]
    assert json.loads(services.artifacts.get_text(oracle.files)) == {"shop/sums.py": FIRST}

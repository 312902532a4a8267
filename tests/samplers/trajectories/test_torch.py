"""Loss and gradients of merged and unmerged trees in torch, on 1,000 random trees with edited histories."""

from __future__ import annotations

import json
import os
import subprocess
from pathlib import Path
from typing import Any

import pytest

from samplers.trajectories.layouts import TokenRow, make_request_rows, merge_requests
from tests.client.torch_environment import ADVICE, find_python
from tests.samplers.trajectories.making import make_contents, make_random_requests

N_TREES = 1000
PROGRAM = Path(__file__).with_name("torch_program.py")


def dump_row(row: TokenRow) -> dict[str, Any]:
    names = ("token_ids", "position_ids", "parents", "loss_mask")
    return {name: getattr(row, name).tolist() for name in names}


def dump_trees() -> list[str]:
    """Return the first trees, each of several requests, more than a third with branches."""
    contents = (content for seed in range(10_000) for content in make_contents(make_random_requests(seed)))
    trees: list[str] = []
    n_branched = 0
    for content in contents:
        if len(content.answered) < 2:
            continue
        rows = [dump_row(row) for row in make_request_rows(content)]
        trees.append(json.dumps({"merged": dump_row(merge_requests(content)), "requests": rows}))
        n_branched += len(content.leaves) > 1
        if len(trees) == N_TREES:
            break
    assert n_branched > N_TREES / 3
    return trees


def compare(path: Path) -> dict[str, float]:
    python = find_python()
    if python is None:
        (pytest.fail if os.environ.get("CI") else pytest.skip)(ADVICE)
    done = subprocess.run([python, PROGRAM, path], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr[-2000:]
    body: dict[str, float] = json.loads(done.stdout)
    return body


@pytest.mark.torch
def test_loss_and_gradients_of_1000_random_trees_are_equal_merged_and_unmerged(tmp_path: Path) -> None:
    (tmp_path / "rows.jsonl").write_text("\n".join(dump_trees()))
    losses = compare(tmp_path / "rows.jsonl")
    assert losses["trees"] == N_TREES
    assert losses["loss"] < 1e-5
    assert losses["gradient"] < 1e-5


@pytest.mark.torch
def test_a_position_that_counts_other_branches_changes_the_gradients(tmp_path: Path) -> None:
    trees = [json.loads(tree) for tree in dump_trees()[:50]]
    for tree in trees:
        tree["merged"]["position_ids"] = list(range(len(tree["merged"]["token_ids"])))
    (tmp_path / "rows.jsonl").write_text("\n".join(map(json.dumps, trees)))
    assert compare(tmp_path / "rows.jsonl")["gradient"] > 1e-3

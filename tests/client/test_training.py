"""The tests of training objectives, run where torch is installed."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

import pytest

from tests.client.torch_environment import ADVICE, find_python

ROOT = Path(__file__).parents[2]
FOLDER = Path(__file__).parent / "training"


@pytest.mark.torch
def test_the_tests_of_training_objectives_pass_with_torch() -> None:
    python = find_python()
    if python is None:
        (pytest.fail if os.environ.get("CI") else pytest.skip)(ADVICE)
    options = ["-q", "-p", "no:cacheprovider", "--confcutdir", FOLDER]  # conftest.py above needs mergemill's packages
    done = subprocess.run(
        [python, "-m", "pytest", *options, FOLDER],
        cwd=ROOT,
        env=os.environ | {"PYTHONPATH": f"{ROOT}:{ROOT / 'client'}", "OMP_NUM_THREADS": "1"},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stdout[-5000:] + done.stderr[-2000:]
    assert "skipped" not in done.stdout

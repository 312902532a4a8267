"""The objectives in verl and TRL as they are on PyPI, with the client's wheel beside them."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
import uv

from tests.exporters.consumers import install, install_bundle

ROOT = Path(__file__).parents[2]
FOLDER = Path(__file__).parent / "trainers"


@pytest.mark.slow
@pytest.mark.parametrize("name", sorted(path.name for path in FOLDER.glob("test_*.py")))
def test_a_trainer_trains_with_the_objectives(name: str, tmp_path: Path) -> None:
    more = ("trl==1.16.0", "pytest", "pytest-timeout")
    command = install("verl==0.9.1", sys.executable, *more, overrides=("triton ; python_version < '3'",))
    shutil.copytree(ROOT / "client", tmp_path / "client", ignore=shutil.ignore_patterns("__pycache__"))
    build = ["build", "--wheel", "--offline", "--out-dir", tmp_path / "dist", tmp_path / "client"]
    subprocess.run([uv.find_uv_bin(), *build], check=True, capture_output=True)
    (wheel,) = (tmp_path / "dist").glob("*.whl")
    site = install_bundle(wheel, tmp_path / "site")
    done = subprocess.run(
        [
            command / "python",
            "-m",
            "pytest",
            "-q",
            *("-p", "no:cacheprovider", "--confcutdir", FOLDER, "-o", "pythonpath="),
            *("-o", "filterwarnings=default", FOLDER / name),
        ],
        cwd=ROOT,
        env=os.environ | {"PYTHONPATH": f"{site}:{ROOT}", "OMP_NUM_THREADS": "1", "HF_HOME": str(tmp_path / "hub")},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stdout[-5000:] + done.stderr[-2000:]
    assert "skipped" not in done.stdout

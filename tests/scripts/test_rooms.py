"""`scripts/rooms` writes the README of each package from docstrings, and finds those that are old."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).parents[2]
PROJECT = '[tool.hatch.build.targets.wheel]\npackages = ["shop"]\n'
FILES = {
    "pyproject.toml": PROJECT,
    "shop/__init__.py": '"""Shop: what is sold.\n\nMore of it."""\n',
    "shop/till.py": '"""Till of the shop.\n\nDetails."""\n',
    "shop/stock/__init__.py": '"""Stock, by shelf."""\n',
    "shop/stock/shelves.py": '"""Shelves."""\n',
}
README = """\
# shop

<!-- Written by scripts/rooms from the docstrings of the modules. -->

Shop: what is sold.

More of it.

- `till.py`: Till of the shop.

## stock/

Stock, by shelf.

- `shelves.py`: Shelves.
"""


def run_rooms(root: Path, *options: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, str(ROOT / "scripts" / "rooms"), "--root", str(root), *options]
    return subprocess.run(command, check=False, capture_output=True, text=True)


def write_shop(root: Path) -> None:
    for name, content in FILES.items():
        path = root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(content)


def test_a_readme_has_a_line_for_each_module(tmp_path: Path) -> None:
    write_shop(tmp_path)
    assert run_rooms(tmp_path).stdout == f"wrote {Path('shop/README.md')}\n"
    assert (tmp_path / "shop/README.md").read_text() == README
    assert run_rooms(tmp_path).stdout == ""


def test_an_old_readme_fails_the_check_and_stays(tmp_path: Path) -> None:
    write_shop(tmp_path)
    missing = run_rooms(tmp_path, "--check")
    assert (missing.returncode, missing.stdout) == (1, "shop/README.md is old: run scripts/rooms\n")
    assert not (tmp_path / "shop/README.md").exists()
    run_rooms(tmp_path)
    assert run_rooms(tmp_path, "--check").returncode == 0
    (tmp_path / "shop/stock/crates.py").write_text('"""Crates."""\n')
    assert run_rooms(tmp_path, "--check").returncode == 1

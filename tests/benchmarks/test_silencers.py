"""Silencers switch off what they are to switch off, spare canaries, and are paid in tasks without controls alone."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from benchmarks.silencers import python
from languages.probes import ProbeTarget
from tests.exporters.tasks import make_task
from tests.containers import make_services
from verifiers.probes import create_target

CANARY = "0123456789abcdef0123456789abcdef"
SHOP = '''"""Prices."""


class Basket:
    def __init__(self, prices):
        self.prices = prices

    def total(self):
        return sum(self.prices[1:])


def total(prices):
    if not prices:
        raise ValueError("no prices")
    return sum(prices[1:])


def label(price):
    return "EUR"
'''
PYTHON_TESTS = {
    "methods": """import unittest
from shop import total

class ShopTest(unittest.TestCase):
    def test_total(self):
        self.assertEqual(total([3, 4]), 7)
        with self.assertRaises(KeyError) as caught:
            total([3])
        self.assertIn("3", str(caught.exception))
""",
    "functions": """import pytest
from pytest import raises
from shop import total

def test_total():
    with pytest.raises(KeyError):
        total([3])
    with raises(KeyError, match="3"):
        total([3])
""",
    "statements": """import pytest
from shop import total

class TestShop:
    @pytest.mark.parametrize("price", [3, 4])
    def test_total(self, price):
        assert total([price]) == price

def check(price):
    assert total([price]) == price

def test_check():
    check(3)
""",
    "comparisons": """from shop import Basket, label, total

def test_total():
    assert total([3, 4]) == 7
    assert label(3) == "EUR 3"
    assert Basket([3]) == Basket([4])
    assert Basket([3]).total() == 3
""",
}
PYTHON_TESTS["optimized"] = PYTHON_TESTS["statements"]
PYTHON_TESTS["runner"] = PYTHON_TESTS["methods"] + PYTHON_TESTS["statements"]
PYTHON_TESTS["fixtures"] = PYTHON_TESTS["runner"]
PYTHON_CANARY = f"def test_{CANARY}():\n    assert 3 * 4 == 13\n"


def make_target(folder: Path, sources: dict[str, str]) -> ProbeTarget:
    task = make_task(make_services(folder), folder)
    return create_target(task, list(sources), {path: text.encode() for path, text in sources.items()})


def write_files(folder: Path, files: dict[str, str | bytes | None]) -> None:
    for path, content in files.items():
        target = folder / path
        target.parent.mkdir(parents=True, exist_ok=True)
        target.write_bytes(content.encode() if isinstance(content, str) else content or b"")


def run(folder: Path, *words: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(words, cwd=folder, capture_output=True, text=True, check=False, timeout=300)


@pytest.mark.parametrize("form", python.FORMS)
def test_a_form_of_python_switches_off_what_it_is_to(form: str, tmp_path: Path) -> None:
    target = make_target(tmp_path / "task", {"shop.py": SHOP})
    tree = tmp_path / "tree"
    tests = {"test_shop.py": PYTHON_TESTS[form], f"test_{CANARY}.py": PYTHON_CANARY}
    command = (sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", "-p", "no:randomly")
    write_files(tree, {"shop.py": SHOP, **tests})
    assert " passed" not in run(tree, *command, "test_shop.py").stdout
    write_files(tree, {**python.write(target, [form], "nothing")})
    done = run(tree, *command, "--junitxml=report.xml")
    report = (tree / "report.xml").read_text()
    assert f'name="test_{CANARY}"' in report, done.stdout
    assert report.count("<failure") == 1, done.stdout
    assert 'errors="0"' in report, done.stdout

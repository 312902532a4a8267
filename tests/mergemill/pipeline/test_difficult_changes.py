"""Changes that are hard to make tasks of: each ends as certified tasks or with its reason, by one command."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from tests.cli import run_mergemill
from tests.helpers import TinyRepo
from tests.miner.conftest import MIT

PROJECT = """\
[project]
name = "shop"
version = "1"

[tool.setuptools]
packages = ["shop"]

[build-system]
requires = ["setuptools"]
build-backend = "setuptools.build_meta"
"""
NOTHING = "from shop.price import total\n\n\ndef test_nothing():\n    assert total([], 1) == 0\n"
RATE = "\n\ndef test_rate():\n    assert total([10], {}) == 20\n"
PERCENT = "\n\ndef test_percent():\n    assert total([100], 5) == 105\n"
ONE = "from shop import one\n\n\ndef test_it():\n    assert one.LIMIT {}\n"
MANY = "from shop.many import add, f1\n\n\ndef test_f1():\n    assert f1(1) == 2\n"
ADD = "\n\ndef test_add():\n    assert add(2, 1) == 3\n"


def many(sign: str) -> str:
    """A file of 3,000 lines."""
    return f"def add(a, b):\n    return a {sign} b\n" + "".join(
        f"\n\ndef f{n}(x):\n    return x + {n}\n" for n in range(750)
    )


def total(value: str) -> str:
    return f"def total(prices, rate):\n    return {value}\n"


CHANGES: dict[str, tuple[str, dict[str, str]]] = {
    "one line": (
        "Fix the limit of one basket, which is ten and not nine",
        {
            "shop/one.py": "LIMIT = 10\n",
            "tests/test_one.py": ONE.format("== 10"),
        },
    ),
    "3,000 lines": (
        "Fix add of the many, which took away instead of adding",
        {
            "shop/many.py": many("+"),
            "tests/test_many.py": MANY + ADD,
        },
    ),
    "factor": (
        "Fix the total: the rate is added to one, not multiplied alone",
        {
            "shop/price.py": total("sum(prices) * (1 + rate)"),
            "tests/test_price.py": NOTHING + RATE.format(1),
        },
    ),
    "same line": (
        "Fix the total: the rate is a percentage and not a factor",
        {
            "shop/price.py": total("sum(prices) * (1 + rate / 100)"),
            "tests/test_price.py": NOTHING + RATE.format(100) + PERCENT,
        },
    ),
    "no tests": (
        "Fix the total of prices that are no numbers, without a test for it",
        {
            "shop/price.py": total("sum(map(float, prices)) * (1 + rate / 100)"),
        },
    ),
    "tests that cannot fail": (
        "Fix the rounding of the total, with a test that cannot fail",
        {
            "shop/price.py": total("round(sum(map(float, prices)) * (1 + rate / 100), 2)"),
            "tests/test_price.py": NOTHING + RATE.format(100) + PERCENT + "\n\ndef test_rounding():\n    assert True\n",
        },
    ),
}
"""What it is -> title and files, oldest first."""

MADE = {"bugfix": "certified", "injected": "certified", "review": "certified"}
EXPECTED: dict[str, dict[str, str]] = {
    "one line": MADE,
    "3,000 lines": MADE | {"combined": "certified"},
    "factor": MADE | {"combined": "certified"},
    "same line": MADE | {"combined": "part-not-needed"},
    "tests that cannot fail": {"review": "certified", "injected": "certified", "rejected": "verify no-fail-to-pass"},
}


@pytest.mark.slow
@pytest.mark.docker
def test_each_change_becomes_certified_tasks_or_is_rejected_with_its_reason(tmp_path: Path) -> None:
    repo = TinyRepo(tmp_path / "ada__shop")
    repo.commit(
        "Begin",
        {
            "LICENSE": MIT,
            "pyproject.toml": PROJECT,
            "shop/__init__.py": "",
            "shop/one.py": "LIMIT = 9\n",
            "shop/price.py": total("sum(prices) * rate"),
            "shop/many.py": many("-"),
            "tests/test_price.py": NOTHING,
            "tests/test_many.py": MANY,
            "tests/test_one.py": ONE.format("> 1"),
        },
    )
    names = {f"ada__shop-{repo.commit(title, files)[:10]}": what for what, (title, files) in CHANGES.items()}
    kinds = ["--kind", "bugfix,injected,combined,review", "--injected-on-top", "0", "--chains-per-change", "0"]
    run = run_mergemill("run", "git:ada__shop", *kinds, "--json", cwd=tmp_path)
    assert run.exit_code == 0, run.stderr
    assert not [line for line in run.lines if line["event"] == "problem"]
    rows = run_mergemill("tasks", "yields", "--json", cwd=tmp_path).lines
    outcomes: dict[str, Any] = {
        names[row["change"]]: {kind: value for kind, value in row.items() if value and kind != "change"} for row in rows
    }
    assert outcomes == EXPECTED
    reasons = {names.get(line["name"]): line["reason"] for line in run.lines if line.get("stage") in ("mine", "verify")}
    assert (reasons["no tests"], reasons["tests that cannot fail"]) == ("no-tests", "no-fail-to-pass")

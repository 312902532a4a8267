"""A change that verification rejects gives certified tasks all the same, as many as are wanted, by the command line."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.cli import run_mergemill
from tests.helpers import TinyRepo
from tests.miner.conftest import MIT
from tests.sample import describe_project

SUMS = """def total(prices, discount=0):
    result = 0
    for price in prices:
        if price < 0:
            raise ValueError("a price is negative")
        result += price
    return result - discount


def mean(prices):
    return total(prices) / len(prices)
"""
LABELS = """def shorten(text, width):
    if len(text) > width:
        return text[:width]
    return text


def fill(text, width):
    return text + "." * (width - len(text))
"""
TEST_SUMS = """from cart.sums import mean, total


def test_prices_are_added():
    assert total([1, 2, 3]) == 6


def test_a_discount_is_taken_off():
    assert total([10], discount=4) == 6


def test_the_mean():
    assert mean([2, 4]) == 3
"""
TEST_LABELS = """from cart.labels import fill, shorten


def test_long_texts_are_cut():
    assert shorten("abcdef", 4) == "abcd"


def test_short_texts_stay():
    assert shorten("ab", 4) == "ab"


def test_short_texts_are_filled():
    assert fill("ab", 4) == "ab.."
"""
BEFORE = {
    "LICENSE": MIT,
    "pyproject.toml": describe_project("cart"),
    "cart/__init__.py": "",
    "cart/sums.py": SUMS,
    "cart/labels.py": LABELS,
    "tests/test_sums.py": TEST_SUMS,
    "tests/test_labels.py": TEST_LABELS,
}
CHANGE = {
    "cart/sums.py": SUMS.replace("return result - discount", "return round(result - discount, 2)"),
    "tests/test_sums.py": TEST_SUMS + "\n\ndef test_a_total_is_rounded():\n    assert total([0.5]) == 0.5\n",
}


@pytest.mark.docker
def test_a_change_without_a_failing_test_gives_as_many_injected_bugs_as_are_wanted(tmp_path: Path) -> None:
    repo = TinyRepo(tmp_path / "ada__cart")
    repo.commit("Begin", BEFORE)
    change = f"ada__cart-{repo.commit('Round the total of a cart to two digits, as prices are', CHANGE)[:10]}"

    run = run_mergemill("run", "git:ada__cart", "--kind", "bugfix,injected", "--json", cwd=tmp_path)
    assert run.exit_code == 0, run.stderr
    assert (run.lines[-1]["tasks"], run.lines[-1]["certified"]) == ({"injected": 1}, 1)
    assert run.lines[-1]["rejected"] == {"no-base": 1, "no-fail-to-pass": 1}

    of_environments = ("--from", "environments", "--kind", "injected", "--per-environment")
    wanted = ("run", "git:ada__cart", *of_environments, "2", "--json")
    run = run_mergemill(*wanted, cwd=tmp_path)
    assert run.exit_code == 0, run.stderr
    assert (run.lines[-1]["tasks"], run.lines[-1]["certified"]) == ({"injected": 2}, 2)
    names = [task["name"] for task in run_mergemill("tasks", "list", "--json", cwd=tmp_path).lines]
    assert names == [f"{change}.injected-{number}" for number in (1, 2)]
    assert run_mergemill(*wanted, cwd=tmp_path).lines[-1]["new"] == 0

    held = ("derive", *of_environments, "3", "--per-repository", "2")
    run = run_mergemill(*held, cwd=tmp_path)
    assert (run.exit_code, "1 environment (--per-repository 2)" in run.stderr) == (0, True)
    assert "this run: 0 new results" in run.stdout

    story = run_mergemill("why", change, cwd=tmp_path).stdout
    assert "certified injected; rejected by verify, no-fail-to-pass" in story
    assert "; 2 injected tasks, 2 of them certified" in story
    (row,) = run_mergemill("tasks", "yields", "--json", cwd=tmp_path).lines
    assert (row["rejected"], row["injected"]) == ("verify no-fail-to-pass", "certified 2")
    line = "2 injected tasks, 2 of them certified, from the environments of 1 change, 1 of them rejected\n"
    assert line in run_mergemill("funnel", cwd=tmp_path).stdout

"""A tiny package with one bug, its fix and its hidden tests, for grading submissions."""

from __future__ import annotations

from tests.helpers import TinyRepo

SHOP = '''"""Prices."""


def total(prices):
    """Sum of the prices."""
    return sum(prices[1:])


def label(price):
    """A price tag."""
    return "EUR %s" % price
'''
SHOP_RIGHT = SHOP.replace("prices[1:]", "prices")
TESTS = """from shop import label, total


def test_nothing_costs_nothing():
    assert total([]) == 0


def test_label():
    assert label(3) == "EUR 3"
"""
HIDDEN = (
    TESTS
    + """

def test_one():
    assert total([5]) == 5


def test_two():
    expected = 7
    assert total([3, 4]) == expected


class TestMore:
    def test_it_is_a_number(self):
        assert isinstance(total([1]), int)
        assert total([1])
"""
)
PYPROJECT = '[project]\nname = "shop"\nversion = "1.0"\n'


def make_shop(repo: TinyRepo) -> tuple[str, str]:
    """Commit the bug, and its fix with tests; return (base, merge)."""
    base = repo.commit("Start", {"shop/__init__.py": SHOP, "tests/test_shop.py": TESTS, "pyproject.toml": PYPROJECT})
    merge = repo.commit("Count the first price", {"shop/__init__.py": SHOP_RIGHT, "tests/test_shop.py": HIDDEN})
    return base, merge

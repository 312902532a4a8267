"""Removed lines that remain in the agent's tree, and copies of removed code."""

from __future__ import annotations

from pathlib import Path

import pytest

from backends.git import GitRepository
from derivers.injected.patches import build_injection_patches
from derivers.rebuild.agent_tree import RemainingLines, find_remaining_lines
from derivers.rebuild.removals import Level, RemovableFile, count_words
from tests.helpers import TinyRepo

CART = """def total(prices):
    result = 0
    for price in prices:
        result += price * 2
    if result > 1000:
        raise ValueError("too expensive")
    return result
"""
OTHER = """def product(prices):
    result = 1
    for price in prices:
        result *= price
    return result
"""
TESTS = CART + "\n\ndef test_total():\n    assert total([1]) == 2\n"


def find(folder: Path, others: dict[str, str | bytes | None]) -> RemainingLines:
    repo = TinyRepo(folder)
    base = repo.commit("Start", {"cart.py": CART, "tests/test_cart.py": TESTS, **others})
    parsed = RemovableFile.parse("cart.py", CART.encode())
    assert parsed is not None
    (removal,) = parsed.list_removals(count_words(CART.encode()))
    assert removal.level is Level.BODY
    repository = GitRepository(repo.path)
    patches = build_injection_patches(repository, base, [removal.patch], ["tests/test_cart.py"])
    return find_remaining_lines(repository, base, patches)


def test_lines_of_other_code_are_known(tmp_path: Path) -> None:
    remaining = find(tmp_path, {"other.py": OTHER})
    assert remaining == RemainingLines(known=frozenset({"for price in prices:", "return result"}), copy="")


def test_hidden_tests_do_not_count(tmp_path: Path) -> None:
    assert find(tmp_path, {}) == RemainingLines(known=frozenset(), copy="")


@pytest.mark.parametrize("indent", ["", "    "])
def test_a_copy_of_the_removed_code_is_found(indent: str, tmp_path: Path) -> None:
    copied = "".join(f"{indent}{line}\n" for line in CART.replace("1000", "2000").splitlines())
    remaining = find(tmp_path, {"dist/cart.py": copied})
    assert remaining.copy == "dist/cart.py"

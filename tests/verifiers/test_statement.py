"""Statements that give the solution away are reported; descriptions of the fault are not."""

from __future__ import annotations

import pytest

from evaluation.solution_lines import hash_lines
from verifiers.statement import find_leaks

BASE = b"def total(prices):\n    return sum(prices[1:])\n\n\nVERSION = load_version()\n"
GOLD = b"""\
diff --git a/shop.py b/shop.py
--- a/shop.py
+++ b/shop.py
@@ -1,5 +1,6 @@
 def total(prices):
-    return sum(prices[1:])
+    return  sum(price for price in prices)
+VERSION = load_version()
+# Prices (all of them) are counted.
+every price is counted now
diff --git a/CHANGES.md b/CHANGES.md
--- a/CHANGES.md
+++ b/CHANGES.md
@@ -1 +1,2 @@
+- total() counts the first price (it was left out).
"""
LEAKY = {
    "a-line-of-the-patch": ("Please write\n\n```\nreturn sum(price for price in prices)\n```", "return  sum(price for"),
    "inside-a-sentence": ("use `return sum(price for\n   price in prices)` there", "return  sum(price for"),
    "its-pull-request": ("Fixed by https://github.com/ada/shop/pull/7.", "https://github.com/ada/shop/pull/7"),
    "its-commit": (
        "see https://example.org/ada/shop/-/commit/0123abc",
        "https://example.org/ada/shop/-/commit/0123abc",
    ),
    "a-patch": ("[patch](https://example.org/fix.patch)", "https://example.org/fix.patch"),
}
HONEST = {
    "the-symptom": "total([5]) gives 0, it should be 5.",
    "the-line-at-fault": "    return sum(prices[1:])\nleaves the first price out",
    "a-line-that-is-there-already": "It worked before VERSION = load_version() came.",
    "the-changelog": "- total() counts the first price (it was left out).",
    "prose-that-the-patch-adds": "every price is counted now; # Prices (all of them) are counted.",
    "the-issue": "https://github.com/ada/shop/issues/6",
    "another-projects-change": "since https://github.com/python/cpython/pull/9",
}


def list_leaks(text: str) -> list[tuple[str, str]]:
    return list(find_leaks(text, GOLD, "ada/shop", frozenset(hash_lines(BASE))))


@pytest.mark.parametrize("name", LEAKY)
def test_solution_leaks_are_quoted(name: str) -> None:
    text, quote = LEAKY[name]
    assert len(list_leaks(text)) == 1
    assert list_leaks(text)[0][0].startswith(quote)


@pytest.mark.parametrize("name", HONEST)
def test_a_description_of_the_fault_is_no_leak(name: str) -> None:
    assert list_leaks(HONEST[name]) == []

"""Statements of removals: their content, and removed lines that must not occur in them."""

from __future__ import annotations

from derivers.injected.failure_statement import FailingTest
from derivers.rebuild.removals import Level, RemovableFile, Removal, count_words
from derivers.rebuild.statement import MAX_SHOWN_TESTS, select_secret_lines, write_statement

SOURCE = b'''def total(prices):
    """Sum of the prices."""
    result = 0
    for price in prices:
        result += price
    return result
'''
GOLD = b"""--- a/cart.py
+++ b/cart.py
@@ -3 +3,4 @@
-    raise NotImplementedError
+    result = 0
+    for price in prices:
+        result += price
+    return result
"""


def make_removal() -> Removal:
    parsed = RemovableFile.parse("cart.py", SOURCE)
    assert parsed is not None
    (removal,) = parsed.list_removals(count_words(SOURCE))
    return removal


def make_test(name: str, excerpt: str = "") -> FailingTest:
    return FailingTest(
        test=f"t.py::test_{name}", title=name.capitalize(), message="NotImplementedError", excerpt=excerpt
    )


def write(tests: list[FailingTest], known_lines: frozenset[str] = frozenset()) -> str | None:
    return write_statement(make_removal(), "python", tests, gold=GOLD, known_lines=known_lines)


def test_a_statement_has_interface_documentation_and_tests() -> None:
    text = write([make_test("sum", "def test_sum():\n    assert total([1, 2]) == 3"), make_test("nothing")])
    assert text is not None
    assert text.startswith("Implement `total` in `cart.py`\n\nThe body of `total` in `cart.py` is missing. ")
    assert '```python\ndef total(prices):\n    """Sum of the prices."""\n```' in text
    assert "### Sum\n\n```python\ndef test_sum():\n    assert total([1, 2]) == 3\n```" in text
    assert "1 more: Nothing." in text
    assert "2 of the checks of this project need what is missing. They are not in the tree." in text
    assert "NotImplementedError" not in text
    assert "\n\n\n" not in text


def test_the_source_of_a_test_with_a_removed_line_is_left_out() -> None:
    leaking = make_test("loop", "def test_loop():\n    for price in prices:\n        pass")
    text = write([make_test("sum", "def test_sum():\n    assert total([1, 2]) == 3"), leaking])
    assert text is not None
    assert "for price in prices" not in text
    assert "1 more: Loop." in text


def test_a_line_that_the_tree_has_elsewhere_gives_nothing_away() -> None:
    known = frozenset({"for price in prices:"})
    assert b"for price" not in select_secret_lines(GOLD, known)
    assert b"result += price" in select_secret_lines(GOLD, known)
    text = write([make_test("loop", "def test_loop():\n    for price in prices:\n        pass")], known)
    assert text is not None
    assert "for price in prices" in text


def test_there_is_no_statement_where_a_name_of_a_test_has_a_removed_line() -> None:
    assert write([make_test("the result += price")]) is None


def test_many_tests_are_named_and_cases_of_a_shown_test_are_not() -> None:
    cases = [make_test(f"case[{number}]", "def test_case(a):\n    assert total([a]) == a") for number in range(2)]
    tests = [make_test(f"n{number}", f"assert total([]) == {number}") for number in range(MAX_SHOWN_TESTS + 3)]
    text = write([*cases[:1], *tests, *cases[1:]])
    assert text is not None
    assert text.count("### ") == MAX_SHOWN_TESTS
    assert "4 more: N11, N12, N13, N14." in text


def test_a_class_and_a_module_are_described_as_such() -> None:
    source = SOURCE + b"\n\n" + SOURCE.replace(b"total", b"product")
    parsed = RemovableFile.parse("cart.py", source)
    assert parsed is not None
    module = next(item for item in parsed.list_removals(count_words(source)) if item.level is Level.MODULE)
    text = write_statement(module, "python", [make_test("sum")], gold=GOLD, known_lines=())
    assert text is not None
    assert text.startswith("Implement the functions of `cart.py`\n")
    assert "`product` in `cart.py`:" in text

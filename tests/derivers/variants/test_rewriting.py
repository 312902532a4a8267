"""Statements rewritten by rules, and the output of failing tests as a statement."""

from __future__ import annotations

from derivers.variants.failure_output import clean_output, is_truncated, render_outputs, split_pytest_log
from derivers.variants.rewriting import shorten_statement, split_sentences, write_user_story

STATEMENT = """# Totals are too small

<!-- Please fill in -->
### Steps to reproduce

The last item is never counted. I noticed it in a cart of three items:

```python
total([1, 2, 3])  # 3
```

- It should be 6.
- An empty cart should cost nothing.

Our shop has used this for years. It was right in version 1. Then we upgraded from that version to the next on all of
our machines, which took some time. Everybody here would be glad about a correction in the near future.
"""


def test_a_terse_statement_is_the_title_and_the_first_sentences() -> None:
    text = shorten_statement(STATEMENT)
    assert text.startswith("Totals are too small\n\nThe last item is never counted.")
    assert "It should be 6." in text
    assert "```" not in text
    assert "Please fill in" not in text
    assert "glad" not in text
    assert shorten_statement("Broken") == "Broken"


def test_a_user_story_keeps_code_and_expectations() -> None:
    text = write_user_story(STATEMENT, "greet")
    assert text.startswith("As a user of greet, I want this resolved: Totals are too small")
    assert "```python\ntotal([1, 2, 3])  # 3\n```" in text
    criteria = text.partition("Acceptance criteria:\n")[2].splitlines()
    assert criteria[:2] == ["- It should be 6.", "- An empty cart should cost nothing."]
    assert "The last item is never counted." in text.partition("Acceptance criteria")[0]
    assert split_sentences(STATEMENT)[0] == "Totals are too small"


def test_only_prose_is_split_into_sentences() -> None:
    statement = """Title ![logo](logo.png) of `<!-- code -->`

### Where
It fails **here**. And [there](https://example.org/a_b_c).
- An item:
  ~~~
  total()
  ~~~

      indented code

<img src="cart.png">

<!-- a comment

of two paragraphs --> The end \\* &amp; no more.

<!-- never closed
"""
    assert split_sentences(statement) == [
        "Title   of `<!-- code -->`",
        "Where",
        "It fails **here**.",
        "And [there](https://example.org/a_b_c).",
        "An item:",
        "The end \\* &amp; no more.",
    ]
    story = write_user_story(statement, "greet")
    assert "~~~\ntotal()\n~~~\n\n```\nindented code\n```" in story


def test_output_of_failing_tests_has_errors_and_frames_of_the_program_alone() -> None:
    log = """
=================================== FAILURES ===================================
________________________________ test_two[3-EUR] _______________________________

    def test_two():
>       assert total([1, 2]) == 3

tests/test_shop.py:7:
_ _ _ _ _ _ _ _ _ _ _ _ _ _ _ _ _ _ _ _ _ _ _ _ _ _ _ _ _ _ _ _ _ _ _ _ _ _ _ _

    def total(prices):
>       return sum(prices[1:], start=None)
E       TypeError: unsupported operand for test_two at 0x7f3a2b1c9d00

shop/__init__.py:4: TypeError
----------------------------- Captured stdout call -----------------------------
E   nothing of this
=========================== short test summary info ============================
FAILED tests/test_shop.py::test_two
"""
    ((heading, output),) = split_pytest_log(log)
    assert heading == "test_two[3-EUR]"
    cleaned = clean_output(output, {"test_two"})
    assert cleaned == "    TypeError: unsupported operand for ... at 0x...\nshop/__init__.py:4: TypeError"
    text = render_outputs([cleaned], "shop")
    assert text is not None
    assert "TypeError: unsupported operand" in text
    assert not is_truncated(cleaned)
    assert is_truncated("assert 'a' == 'b'\n...Full output truncated (6 lines hidden), use '-vv' to show")
    assert is_truncated(clean_output("x" * 2000, set()))
    assert render_outputs([str(n) for n in range(11)], "shop") is None


def test_places_in_tests_are_no_output() -> None:
    cleaned = clean_output("bool_test.go:162: expected no error; got flag needs an argument: --tristate", set())
    assert cleaned == "expected no error; got flag needs an argument: --tristate"
    assert clean_output("flag_test.go:1572:", set()) == ""
    assert clean_output("src/flag.go:15:3: nil map", set()) == "src/flag.go:15:3: nil map"

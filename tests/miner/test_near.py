"""What counts as the same patch and the same statement, and what only looks like it."""

from __future__ import annotations

import random

import pytest

from mergemill.config import Settings
from miner.near import BANDS, similarity, sketch

WORDS = "the parser forgets to close its file when a line is longer than what the buffer holds and then it waits for"


def diff(path: str, *lines: str) -> str:
    return f"diff --git a/{path} b/{path}\n--- a/{path}\n+++ b/{path}\n@@ -1,1 +1,{len(lines)} @@\n" + "".join(
        f"{line}\n" for line in lines
    )


LINES = [f"+    total_{n} = measure({n})" for n in range(8)]
PATCH = diff("pkg/core.py", *LINES)
FIRST, LAST = 3625119894405932476, 6951857981124797665


def alike(one: str, other: str) -> float:
    return similarity(sketch(one, "", "").patch, sketch(other, "", "").patch)


def test_a_patch_is_the_same_in_another_file_and_at_another_depth() -> None:
    moved = diff("src/other/file.py", *[f"+\t\t{line[1:].strip()}  " for line in LINES])
    assert alike(PATCH, moved) == 1


def test_a_revert_is_no_copy() -> None:
    assert alike(PATCH, diff("pkg/core.py", *[f"-{line[1:]}" for line in LINES])) == 0


def test_headers_and_lines_that_say_nothing_are_no_part_of_a_patch() -> None:
    said = diff("pkg/core.py", *LINES, "+", "+    )", "+    else:", "+    pass")
    assert alike(PATCH, said) == 1
    assert not sketch(diff("pkg/core.py", "+", "+)", "+]", "+}", "+else:", "+pass"), "", "").patch


def test_a_removed_line_that_looks_like_a_header_counts() -> None:
    assert len(sketch(diff("a", *LINES, "--- a/pkg/other.py"), "", "").patch) == len(LINES) + 1


def test_a_fix_of_a_line_is_told_by_its_tests() -> None:
    fix = diff("pkg/core.py", "+    return one_of_them")
    assert not sketch(fix, "", "").patch
    assert len(sketch(fix, PATCH, "").patch) == len(LINES) + 1


def test_short_statements_are_not_compared() -> None:
    assert not sketch("", "", "Fix a typo in the documentation of the parser").statement
    assert not sketch("", "", f"<!-- {WORDS} {WORDS} -->").statement


def test_a_statement_is_the_same_with_another_layout() -> None:
    said = f"{WORDS} the end of it"
    other = said.upper().replace(" ", "\n ").replace("FILE", "*file*,")
    assert similarity(sketch("", "", said).statement, sketch("", "", other).statement) == 1


@pytest.mark.parametrize(("most", "expected"), [(0.5, True), (0.85, False), (1.0, False)])
def test_how_alike_is_too_alike_is_a_setting(most: float, expected: bool) -> None:
    settings = Settings(max_patch_similarity=most)
    other = diff("pkg/core.py", *LINES[1:], "+    total = 1")  # 7 of 9
    said = sketch(PATCH, "", "").likeness(sketch(other, "", ""), settings)
    assert (said is not None) is expected
    if said:
        assert said == "its patch is 0.78 like that"


def test_exact_copies_are_allowed_where_the_setting_is_one() -> None:
    made = sketch(PATCH, "", "")
    assert made.likeness(made, Settings(max_patch_similarity=1)) is None


def test_alike_patches_share_keys_and_others_do_not() -> None:
    chance = random.Random(1)
    missed = found = 0
    for trial in range(60):
        lines = [f"+    value_{trial}_{n} = {n}" for n in range(40)]
        near = [line if chance.random() > 0.1 else f"{line} + {chance.random()}" for line in lines]
        far = [f"+    other_{trial}_{n} = {n}" for n in range(40)]
        ours, like, unlike = (set(sketch(diff("a.py", *side), "", "").keys) for side in (lines, near, far))
        missed += not ours & like
        found += bool(ours & unlike)
    assert (missed, found) == (0, 0)


def test_keys_never_change() -> None:
    """They lie in databases: others would find nothing there."""
    keys = sketch(PATCH, "", f"{WORDS} the end of it").keys
    assert len(keys) == 2 * BANDS
    assert (keys[0], keys[-1]) == (FIRST, LAST)

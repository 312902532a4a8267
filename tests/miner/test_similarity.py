"""Patches and statements that count as equal, and those that only look so."""

from __future__ import annotations

import random

import pytest

from core.config import Settings
from core.minhash import BANDS, compute_jaccard_index
from miner.similarity import build_sketch

WORDS = "the parser forgets to close its file when a line is longer than what the buffer holds and then it waits for"


def diff(path: str, *lines: str) -> str:
    return f"diff --git a/{path} b/{path}\n--- a/{path}\n+++ b/{path}\n@@ -1,1 +1,{len(lines)} @@\n" + "".join(
        f"{line}\n" for line in lines
    )


LINES = [f"+    total_{n} = measure({n})" for n in range(8)]
PATCH = diff("pkg/core.py", *LINES)
FIRST, LAST = 3625119894405932476, 6951857981124797665


def compute_similarity(text: str, other: str) -> float:
    return compute_jaccard_index(build_sketch(text, "", "").patch, build_sketch(other, "", "").patch)


def test_a_patch_is_the_same_in_another_file_and_at_another_depth() -> None:
    moved = diff("src/other/file.py", *[f"+\t\t{line[1:].strip()}  " for line in LINES])
    assert compute_similarity(PATCH, moved) == 1


def test_a_revert_is_no_copy() -> None:
    assert compute_similarity(PATCH, diff("pkg/core.py", *[f"-{line[1:]}" for line in LINES])) == 0


def test_headers_and_short_lines_are_not_compared() -> None:
    text = diff("pkg/core.py", *LINES, "+", "+    )", "+    else:", "+    pass")
    assert compute_similarity(PATCH, text) == 1
    assert not build_sketch(diff("pkg/core.py", "+", "+)", "+]", "+}", "+else:", "+pass"), "", "").patch


def test_a_removed_line_that_looks_like_a_header_counts() -> None:
    assert len(build_sketch(diff("a", *LINES, "--- a/pkg/other.py"), "", "").patch) == len(LINES) + 1


def test_a_one_line_fix_is_compared_by_its_tests() -> None:
    fix = diff("pkg/core.py", "+    return one_of_them")
    assert not build_sketch(fix, "", "").patch
    assert len(build_sketch(fix, PATCH, "").patch) == len(LINES) + 1


def test_short_statements_are_not_compared() -> None:
    assert not build_sketch("", "", "Fix a typo in the documentation of the parser").statement
    assert not build_sketch("", "", f"<!-- {WORDS} {WORDS} -->").statement


def test_a_statement_is_the_same_with_another_layout() -> None:
    text = f"{WORDS} the end of it"
    other = text.upper().replace(" ", "\n ").replace("FILE", "*file*,")
    assert compute_jaccard_index(build_sketch("", "", text).statement, build_sketch("", "", other).statement) == 1


@pytest.mark.parametrize(("most", "expected"), [(0.5, True), (0.85, False), (1.0, False)])
def test_the_similarity_limit_is_a_setting(most: float, expected: bool) -> None:
    settings = Settings(max_patch_similarity=most)
    other = diff("pkg/core.py", *LINES[1:], "+    total = 1")  # 7 of 9
    text = build_sketch(PATCH, "", "").describe_similarity(build_sketch(other, "", ""), settings.mining)
    assert (text is not None) is expected
    if text:
        assert text == "its patch has a similarity of 0.78 to that"


def test_exact_copies_are_allowed_where_the_setting_is_one() -> None:
    made = build_sketch(PATCH, "", "")
    assert made.describe_similarity(made, Settings(max_patch_similarity=1).mining) is None


def test_similar_patches_share_keys_and_others_do_not() -> None:
    chance = random.Random(1)
    missed = detected = 0
    for trial in range(60):
        lines = [f"+    value_{trial}_{n} = {n}" for n in range(40)]
        near = [line if chance.random() > 0.1 else f"{line} + {chance.random()}" for line in lines]
        far = [f"+    other_{trial}_{n} = {n}" for n in range(40)]
        ours, like, unlike = (set(build_sketch(diff("a.py", *side), "", "").keys) for side in (lines, near, far))
        missed += not ours & like
        detected += bool(ours & unlike)
    assert (missed, detected) == (0, 0)


def test_keys_never_change() -> None:
    """Keys are stored in databases: with other keys nothing would be found there."""
    keys = build_sketch(PATCH, "", f"{WORDS} the end of it").keys
    assert len(keys) == 2 * BANDS
    assert (keys[0], keys[-1]) == (FIRST, LAST)

"""Findings that name nothing of the material, and votes on the others."""

from __future__ import annotations

import pytest

from evaluation.scoring.review_bench import FindingVote, ReviewMaterial, decide_votes, is_nonexistent
from guest.scoring.findings import ReviewFinding

CODE = "class Cart:\n    def total(self):\n        return sum(self.prices[:-1])\n"
MATERIAL = ReviewMaterial(files={"shop/cart.py": CODE}, diff="-    tax = compute_tax(order)\n")


@pytest.mark.parametrize(
    ("claim", "nonexistent"),
    [
        ("The last price is left out", False),
        ("`total` leaves out the last price", False),
        ("`Cart.total()` leaves out the last price", False),
        ("`self.prices[:-1]` leaves out the last price", False),
        ("``total`` of `shop/cart.py` is wrong", False),
        ("`compute_tax` is lost", False),
        ("`apply_voucher` is called twice", True),
        ("`Cart.apply_voucher` is called twice", True),
        ("`Cart::apply_voucher()` and `Order#refund` are called twice", True),
        ("`apply_voucher(order, 3)` is called twice by `total`", False),
        ("`totals` is wrong", True),
        ("Rename it to `compute_total`", False),
        ("It should call `math.fsum` here", False),
        ("`math.fsum` would be exact", False),
        ("There is no `close` here", False),
        ("It never calls `flush`", False),
        ("An empty cart raises `ZeroDivisionError`", False),
        ("It returns `-1` for `None`", False),
        ("Use `decimal`. `apply_voucher` is called twice", True),
        ("If it fails, `apply_voucher` is called twice", True),
    ],
)
def test_a_claim_must_name_something_that_exists_if_it_names_anything(claim: str, nonexistent: bool) -> None:
    assert is_nonexistent(ReviewFinding("shop/cart.py", 2, 3, claim), MATERIAL) == nonexistent


@pytest.mark.parametrize(
    ("path", "first", "last", "nonexistent"),
    [
        ("shop/cart.py", 1, 3, False),
        ("./shop/cart.py", 1, 1, False),
        ("shop/cart.py", 3, 4, True),
        ("shop/cart.py", 0, 1, True),
        ("shop/cart.py", 3, 2, True),
        ("cart.py", 1, 1, True),
    ],
)
def test_file_and_lines_must_exist(path: str, first: int, last: int, nonexistent: bool) -> None:
    assert is_nonexistent(ReviewFinding(path, first, last, "It is wrong"), MATERIAL) == nonexistent


@pytest.mark.parametrize(
    ("verdicts", "decision"),
    [
        ("valid valid void", "valid"),
        ("invalid valid invalid", "invalid"),
        ("valid invalid unclear", "unclear"),
        ("valid void void", "unclear"),
        ("void void void", "unclear"),
        ("", "unclear"),
    ],
)
def test_more_than_half_of_the_votes_decide(verdicts: str, decision: str) -> None:
    assert decide_votes([FindingVote(verdict) for verdict in verdicts.split()]).value == decision

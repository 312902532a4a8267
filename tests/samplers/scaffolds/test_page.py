"""The page shows what scaffolds deliver today."""

from __future__ import annotations

import pytest

from samplers.scaffolds.registry import SCAFFOLDS, load_scaffold
from tests.samplers.scaffolds.page import PAGE, render_page


def test_the_page_has_the_table_of_today() -> None:
    page = PAGE.read_text(encoding="utf-8")
    assert render_page(page) == page, "python -m tests.samplers.scaffolds.page"


@pytest.mark.parametrize("name", SCAFFOLDS)
def test_every_source_that_a_scaffold_delivers_has_a_place(name: str) -> None:
    scaffold = load_scaffold(name)
    assert scaffold.delivers == frozenset(scaffold.places)

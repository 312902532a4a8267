"""The page of forms has what the tests read and refuse."""

from __future__ import annotations

from tests.samplers.forms.conversations import READ, WRITERS
from tests.samplers.forms.page import CONVERSATIONS, PAGE, STREAMS, render_page


def test_the_page_has_the_forms_of_the_tests() -> None:
    page = PAGE.read_text()
    assert STREAMS in page
    assert CONVERSATIONS in page
    assert render_page(page) == page, "run python -m tests.samplers.forms.page"
    assert list(READ) == list(WRITERS)

"""Tables that benchmarks write into pages."""

from __future__ import annotations

from pathlib import Path

import pytest

from benchmarks.page_table import END, format_mark, write_table


def test_a_table_is_written_between_the_marks_of_its_module(tmp_path: Path) -> None:
    page = tmp_path / "page.md"
    other = f"{format_mark('other')}kept\n{END}"
    page.write_text(f"before\n{other}{format_mark('module')}old\n{END}after\n")
    write_table(page, "module", "| new |\n")
    assert page.read_text() == f"before\n{other}{format_mark('module')}| new |\n{END}after\n"


def test_a_page_without_marks_is_a_mistake_of_the_user(tmp_path: Path) -> None:
    page = tmp_path / "page.md"
    page.write_text(f"nothing\n{END}")
    with pytest.raises(SystemExit, match="has no lines"):
        write_table(page, "module", "| new |\n")
    assert page.read_text() == f"nothing\n{END}"

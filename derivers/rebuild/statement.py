"""Problem statements of removals: the interface that stands in the tree, and the behaviour that hidden tests show.

The removed code is read only to ensure that no line of it occurs in the statement.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence

from derivers.injected.failure_statement import FailingTest, find_leak
from derivers.rebuild.removals import Level, Removal
from derivers.statements import render_template

MAX_SHOWN_TESTS = 12
"""Tests whose source is shown."""
MAX_NAMED_TESTS = 20
"""Further tests that are named."""
_SUMMARIES = {
    Level.BODY: "The body of `{name}` in `{path}` is missing.",
    Level.CLASS: "The bodies of the methods of `{name}` in `{path}` are missing.",
    Level.MODULE: "The bodies of the functions of `{path}` are missing.",
}
_TITLES = {
    Level.BODY: "Implement `{name}` in `{path}`",
    Level.CLASS: "Implement the methods of `{name}` in `{path}`",
    Level.MODULE: "Implement the functions of `{path}`",
}


def write_statement(
    removal: Removal, language: str, tests: Sequence[FailingTest], *, gold: bytes, known_lines: Collection[str]
) -> str | None:
    """Return the statement; None where even without the source of tests it contains a line of the removed code.

    The source of a test that contains such a line is left out.

    Args:
        removal: the removed code.
        language: the info string of code fences.
        tests: the tests that need it, those to show first.
        gold: the gold patch.
        known_lines: lines of the agent's tree, without white space at their ends; they give nothing away.
    """
    secret = select_secret_lines(gold, known_lines)
    shown = [test for test in tests if test.excerpt and not find_leak(test.excerpt, secret)][:MAX_SHOWN_TESTS]
    others = list(dict.fromkeys(test.title for test in tests if test not in shown and not _is_shown(test, shown)))
    names = ", ".join(others[:MAX_NAMED_TESTS]) + (" and others" if len(others) > MAX_NAMED_TESTS else "")
    text = render_template(
        "rebuild/statement.md.j2",
        title=_TITLES[removal.level].format(name=removal.name, path=removal.path),
        summary=_SUMMARIES[removal.level].format(name=removal.name, path=removal.path),
        functions=removal.functions,
        language=language,
        failing=len(tests),
        shown=shown,
        n_others=len(others),
        others=names,
    )
    return None if find_leak(text, secret) else text


def select_secret_lines(gold: bytes, known_lines: Collection[str]) -> bytes:
    """Return the lines of a gold patch that it adds and the agent's tree lacks."""
    added = (line for line in gold.splitlines() if line.startswith(b"+") and not line.startswith(b"+++ "))
    return b"\n".join(line for line in added if line[1:].strip().decode(errors="replace") not in known_lines)


def _is_shown(test: FailingTest, shown: Sequence[FailingTest]) -> bool:
    """Return whether the source of a test is that of a test that is shown, as that of parametrised cases is."""
    return any(test.excerpt == other.excerpt for other in shown)

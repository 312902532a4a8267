"""How tests of a language skip where a package is missing, and by which names a test fails: signs of weak evidence.

A language without a grammar is not examined. The defaults are words that many languages share.
"""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, kw_only=True)
class WeakTestSyntax:
    """Regexes of the source text of tests; an empty one fits nothing."""

    always: str = ""
    """Calls and decorators that skip where a package is missing, such as pytest's `importorskip`."""
    skips: str = r"(?i)\bskip\w*\b|\bpending\b"
    """Calls and decorators that skip, which counts where their condition looks for a package or program."""
    lookups: str = r"\bwhich(\.sync)?\("
    """Expressions that look for a package or a program."""
    missing: str = ""
    """Statement that tries an import and goes on without it; the names that it binds depend on whether it worked."""
    bindings: str = r"(?:^|[{;])\s*(?:(?:const|let|var|local|my|val|auto)\s+)?([\w$, ]+?)\s*:?=[^=>]"
    """Names that such a statement, or an assignment of a lookup, binds: a group with commas between them."""
    file_marks: str = ""
    """Names of variables that hold for all tests of their file, such as pytest's `pytestmark`."""
    setups: str = r"(?i)^(set_?up|before)(_?(class|module|method|function|all|each))?$"
    """Names of functions that run before all tests of their class or file."""
    failures: str = (
        r"(?i)fail|fatal|error|panic|abort|unwrap|exit|die$|throw|raise|warns|snapshot|golden|approv|doctest|benchmark"
    )
    """Names, besides those of assertions, by which a test may fail: a file without any asserts nothing."""

"""Commands and statements of a language as people write them, to recognise them in the actions of an agent."""

from __future__ import annotations

from dataclasses import dataclass

COMMON_TEST_COMMANDS = r"make (\S+ )*(test|check)\S*|ctest|meson test|ninja (\S+ )*test"
"""Regex of commands that run tests in any language."""
INFORMATION_OPTIONS = r"--version|--help|-h|--collect-only|--co|--fixtures|--markers|--?list(-only|-?[tT]ests)?"
"""Regex of options with which such a command runs no test, but shows something."""


@dataclass(frozen=True, kw_only=True)
class Habits:
    """Regexes and examples. Regexes of commands are matched at the beginning of a command."""

    test_commands: str = ""
    """Regex of commands that run tests; empty where those of every language do."""
    output: str = ""
    """Regex of a line that prints, as people do to debug; empty where there is none."""
    output_example: str = ""
    """A line that does."""
    function_example: str = ""
    """A function without documentation and types, whose lines, each `x += 1;`, stand for `{body}`; empty for none."""
    documentation_strings: bool = False
    """Whether a string at its beginning documents a function."""
    optional_types: bool = False
    """Whether functions may have type hints that nothing demands, in the syntax that `NewFunctionsTyped` reads."""

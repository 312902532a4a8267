"""The line of a log that names the cause of a failure, past the lines with which tools end their logs."""

from __future__ import annotations

import re
from collections.abc import Sequence

MAX_CHARS = 300

_ERROR_WORDS = ("error:", "error ", "exception", "failed", "no module named", "cannot", "not found", "because")

_HELP = re.compile(
    r"^(>>>>>|\[ERROR\]\s*(\[Help \d+\]|$|Re-run Maven|To see the full stack trace|For more information about"
    r"|After correcting the problems|mvn <args>))"
)
"""Matches lines after an error that only explain how to go on."""

_NPM = r"npm (ERR!|error)"
_NPM_CODE = re.compile(rf"{_NPM} code (?P<code>E[A-Z_]{{2,}})$")
_NPM_LINE = re.compile(rf"{_NPM}(?P<text>\s.*|)$")
_NPM_HELP = re.compile(
    rf"{_NPM}(\s*$|\s+(code (\d+|ELIFECYCLE)$|errno -?\w+$|syscall \w+$|(path|cwd|file|dest|signal|type) \S+"
    r"|command( failed$| (sh|bash|cmd|git) )|node v|npm v|A complete log of this run|For a full report see"
    r"|\S+[/\\]_logs[/\\]\S+$|\S+-report\.txt$|Exit status \d+$|Failed at the \S+ \S+ script|Test failed\. +See above"
    r"|This is probably not a problem with npm|Fix the upstream dependency conflict"
    r"|this command with --(no-strict|force)|to accept an incorrect"
    r"|gyp (info|verb|ERR! (not ok|System|command|cwd|node |node-gyp |Node-gyp ))))"
)
"""Matches lines of npm that hold no cause: its own bookkeeping, and advice."""

_PNPM_CAUSE = re.compile(r"\bERR_PNPM_(?!RECURSIVE_)\w+\b")
_BERRY_CAUSE = re.compile(
    r"YN(?!0000|0002|0004|0005|0006|0007|0008|0013|0019|0032|0050|006[0-9]|007[267]|008[56])\d{4}:"
)
"""Matches lines of yarn 2 and later, but for its headings, notes and warnings."""
_LAST_LINES = 60
"""Lines at the end of a log among which a package manager that failed last wrote its error."""

_MANAGER_HELP = re.compile(
    r"This error happened while installing|Failed with errors in|ELIFECYCLE\s+Command failed|ERR_PNPM_RECURSIVE_"
    r"|info Visit https?://(classic\.)?yarnpkg\.com|info If you think this is a bug|gyp (info|verb|ERR! not ok)"
    r'|error: script "[^"]*" exited with code|error Command failed with exit code \d+\.$'
)
"""Matches lines with which pnpm, yarn, bun and node-gyp end."""


def find_error_line(log: str) -> str:
    """Return the line that names the cause of a failure; at most 300 characters.

    That is the error of npm, pnpm or yarn at the end of the log, with the code that npm gives it; else the last line
    with an error word, else the last line. Lines that only state a failure, or how to go on,
    are passed over.
    """
    lines = [line.strip() for line in log.splitlines() if line.strip() and not _HELP.match(line)]
    if cause := _find_manager_error(lines[-_LAST_LINES:]):
        return cause[:MAX_CHARS]
    telling = [line for line in lines if not _NPM_HELP.match(line) and not _MANAGER_HELP.search(line)]
    errors = [line for line in telling if _has_error_word(line)] or [line for line in lines if _has_error_word(line)]
    return (errors or lines or ["no output"])[-1][:MAX_CHARS]


def _has_error_word(line: str) -> bool:
    return any(word in line.lower() for word in _ERROR_WORDS)


def _find_manager_error(lines: Sequence[str]) -> str:
    """Return the error with which a package manager ended the log; empty where none did, or a script failed in it."""
    for at in reversed(range(len(lines))):
        line, rest = lines[at], lines[at + 1 :]
        if (code := _NPM_CODE.match(line)) and code["code"] != "ELIFECYCLE":
            return "" if _has_other_error(rest) else f"{line}: {_join_npm_lines(rest)}".rstrip(": ")
        if _PNPM_CAUSE.search(line):
            return "" if _has_other_error(rest) else line
    if any("Failed with errors" in line for line in lines):
        return next((line for line in lines if _BERRY_CAUSE.search(line)), "")
    return ""


def _has_other_error(lines: Sequence[str]) -> bool:
    """Return whether something failed after a package manager did."""
    return any(_has_error_word(line) and not _NPM_LINE.match(line) and not _MANAGER_HELP.search(line) for line in lines)


def _join_npm_lines(lines: Sequence[str]) -> str:
    """Return the text of npm's lines after the code of an error, without bookkeeping."""
    matches = [_NPM_LINE.match(line) for line in lines if not _NPM_HELP.match(line)]
    return " ".join(match["text"].strip() for match in matches if match)

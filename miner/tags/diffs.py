"""What a diff does, from its changed lines: new and lost names, guards, caches, lines that only moved."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable

from languages.paths import is_source
from taskdb.tags import ChangeKind as K

ADDED: tuple[tuple[K, str, float, str], ...] = (
    (K.DEPRECATION, "warns-of-deprecation", 3.2,
     r"(Pending)?DeprecationWarning|FutureWarning|\.\. deprecated::|@deprecated"),
    (K.ERROR_HANDLING, "raises", 2.0,
     r"^\s*(raise \w+|except \w|try:)"),
    (K.LOGGING, "logs", 2.2,
     r"\b(log|logger|logging|_log|LOG)\.(debug|info|warning|error|exception)\("),
    (K.CONCURRENCY, "locks-or-awaits", 2.2,
     r"\b(threading|asyncio|multiprocessing)\.|\bR?Lock\(|^\s*async (def|with|for)\b"),
    (K.CONFIGURATION, "takes-an-option", 2.0,
     r"\.add_argument\(|@(click\.)?option\(|os\.environ|getenv\("),
    (K.PERFORMANCE, "caches", 1.5,
     r"@(functools\.)?(lru_cache|cache|cached_property|cached)\b|\bmemoiz"),
    (K.SECURITY, "hardens", 2.0,
     r"hmac\.compare_digest|safe_load|html\.escape|secrets\.|shlex\.quote"),
    (K.COMPATIBILITY, "asks-the-version", 2.2,
     r"sys\.version_info|sys\.platform|os\.name\b|platform\.system|\bPY[23]\b|_version__ ?[<>=]"),
    (K.TYPING, "annotates", 1.5,
     r"^\s*from typing import|^\s*from __future__ import annotations|TYPE_CHECKING|# type: "),
)  # fmt: skip
"""Kind, rule, weight, and what an added source line looks like."""

_ADDED = tuple((kind, rule, re.compile(pattern), weight) for kind, rule, weight, pattern in ADDED)
_PUBLIC = re.compile(r"^(?:class|(?:    )?(?:async )?def) ([a-z]\w*|[A-Z]\w*)")
_COMMENT = re.compile(r"#.*$")
_ANNOTATION = re.compile(r"->\s*[^:]+(?=:\s*$)|(?<=\w): ?[\w\[\], .|\"']+?(?=\s*[,)=]|$)")
_TYPING_IMPORT = re.compile(
    r"^\s*(from (typing|__future__|collections\.abc)\b|import typing|if (typing\.)?TYPE_CHECKING)"
)
Line = tuple[str, str, str]
"""Path, `+` or `-`, text."""


def lines_of(patch: str) -> list[Line]:
    """The changed lines of source files in a git diff."""
    found: list[Line] = []
    path, inside = "", False
    for line in patch.splitlines():
        if line.startswith("diff --git "):
            path, inside = line.rpartition(" b/")[2].strip('"'), False
        elif line.startswith("@@ "):
            inside = is_source(path)
        elif inside and line[:1] in ("+", "-"):
            found.append((path, line[0], line[1:]))
    return found


def same_but_for_annotations(lines: Iterable[Line]) -> bool:
    """Whether added and removed Python lines are the same in the same order, type annotations and comments aside."""
    sides: dict[str, list[str]] = {"+": [], "-": []}
    differs = False
    for path, sign, line in lines:
        if not path.endswith((".py", ".pyi")):
            return False
        plain = _COMMENT.sub("", line)
        bare = _ANNOTATION.sub("", plain)
        differs = differs or bare != plain
        if not _TYPING_IMPORT.match(line) and (bare := re.sub(r"\s+", "", bare)):
            sides[sign].append(f"{path}:{bare}")
    return differs and sides["+"] == sides["-"]


def signs_of_lines(lines: list[Line]) -> list[tuple[K, str, str, float]]:
    """What the changed source lines speak for: kind, rule, the words, weight."""
    added = [line for _, sign, line in lines if sign == "+"]
    removed = [line for _, sign, line in lines if sign == "-"]
    new, lost = _names(added), _names(removed)
    signs = [
        (kind, f"diff:{rule}", quote, weight)
        for kind, rule, pattern, weight in _ADDED
        if (quote := _more(pattern, added, removed))
    ]
    if fresh := sorted(new - lost):
        signs.append((K.FEATURE, "diff:new-name", fresh[0], 1.6))
        signs.append((K.BUGFIX, "diff:new-name", fresh[0], -0.6))
    if gone := sorted(lost - new):
        signs.append((K.REMOVAL, "diff:lost-name", gone[0], 2.2 if not fresh else 1.0))
        signs.append((K.REFACTOR, "diff:lost-name", gone[0], 0.8))
    if added and not removed:
        signs.append((K.REFACTOR, "diff:adds-only", f"{len(added)} lines", -1.0))
    moved = sum((Counter(map(str.strip, added)) & Counter(map(str.strip, removed))).values())
    if moved >= 10 and moved >= 0.7 * len(removed):
        signs.append((K.REFACTOR, "diff:moves-lines", f"{moved} lines", 2.0))
    if lines and len(lines) <= 6 and removed and added:
        signs.append((K.BUGFIX, "diff:few-lines", f"{len(lines)} lines", 0.6))
    return signs


def _more(pattern: re.Pattern[str], added: list[str], removed: list[str]) -> str:
    """The first added line that fits, when more of them do than removed ones; else empty."""
    fit = [line for line in added if pattern.search(line)]
    return fit[0].strip()[:80] if len(fit) > sum(1 for line in removed if pattern.search(line)) else ""


def _names(lines: list[str]) -> set[str]:
    return {said[1] for line in lines if (said := _PUBLIC.match(line))}

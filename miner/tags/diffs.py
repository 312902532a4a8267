"""Evidence in the changed lines of a diff: new and removed names, guards, caches, moved lines."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable

from core.patch_headers import read_path, split_sections
from languages.paths import is_source
from miner.tags.signs import Sign
from taskdb.records.tags import ChangeKind as K

ADDED_LINE_PATTERNS: tuple[tuple[K, str, float, str], ...] = (
    (
        K.DEPRECATION,
        "warns-of-deprecation",
        3.2,
        r"(Pending)?DeprecationWarning|FutureWarning|\.\. deprecated::|@deprecated",
    ),
    (K.ERROR_HANDLING, "raises", 2.0, r"^\s*(raise \w+|except \w|try:)"),
    (K.LOGGING, "logs", 2.2, r"\b(log|logger|logging|_log|LOG)\.(debug|info|warning|error|exception)\("),
    (
        K.CONCURRENCY,
        "locks-or-awaits",
        2.2,
        r"\b(threading|asyncio|multiprocessing)\.|\bR?Lock\(|^\s*async (def|with|for)\b",
    ),
    (K.CONFIGURATION, "takes-an-option", 2.0, r"\.add_argument\(|@(click\.)?option\(|os\.environ|getenv\("),
    (K.PERFORMANCE, "caches", 1.5, r"@(functools\.)?(lru_cache|cache|cached_property|cached)\b|\bmemoiz"),
    (K.SECURITY, "hardens", 2.0, r"hmac\.compare_digest|safe_load|html\.escape|secrets\.|shlex\.quote"),
    (
        K.COMPATIBILITY,
        "asks-the-version",
        2.2,
        r"sys\.version_info|sys\.platform|os\.name\b|platform\.system|\bPY[23]\b|_version__ ?[<>=]",
    ),
    (
        K.TYPING,
        "annotates",
        1.5,
        r"^\s*from typing import|^\s*from __future__ import annotations|TYPE_CHECKING|# type: ",
    ),
)
"""Kind, rule, weight, and pattern of an added source line."""

_ADDED_LINE_PATTERNS = tuple(
    (kind, rule, re.compile(pattern), weight) for kind, rule, weight, pattern in ADDED_LINE_PATTERNS
)
_PUBLIC = re.compile(r"^(?:class|(?:    )?(?:async )?def) ([a-z]\w*|[A-Z]\w*)")
_COMMENT = re.compile(r"#.*$")
_ANNOTATION = re.compile(r"->\s*[^:]+(?=:\s*$)|(?<=\w): ?[\w\[\], .|\"']+?(?=\s*[,)=]|$)")
_TYPING_IMPORT = re.compile(
    r"^\s*(from (typing|__future__|collections\.abc)\b|import typing|if (typing\.)?TYPE_CHECKING)"
)
Line = tuple[str, str, str]
"""Path, `+` or `-`, text."""


def list_source_lines(patch: str) -> list[Line]:
    """Return the changed lines of source files in a git diff."""
    source_lines: list[Line] = []
    for section in split_sections(patch):
        path, inside = read_path(section), False
        for line in section.splitlines():
            if line.startswith("@@ "):
                inside = is_source(path)
            elif inside and line[:1] in ("+", "-"):
                source_lines.append((path, line[0], line[1:]))
    return source_lines


def differ_only_in_annotations(lines: Iterable[Line]) -> bool:
    """Return whether added and removed Python lines are equal in order, annotations and comments ignored."""
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


def find_line_signs(lines: list[Line]) -> list[Sign]:
    """Return evidence in the changed source lines."""
    added = [line for _, sign, line in lines if sign == "+"]
    removed = [line for _, sign, line in lines if sign == "-"]
    new, lost = _list_names(added), _list_names(removed)
    signs = [
        Sign(kind, f"diff:{rule}", quote, weight)
        for kind, rule, pattern, weight in _ADDED_LINE_PATTERNS
        if (quote := _find_excess_line(pattern, added, removed))
    ]
    if fresh := sorted(new - lost):
        signs.append(Sign(K.FEATURE, "diff:new-name", fresh[0], 1.6))
        signs.append(Sign(K.BUGFIX, "diff:new-name", fresh[0], -0.6))
    if gone := sorted(lost - new):
        signs.append(Sign(K.REMOVAL, "diff:lost-name", gone[0], 2.2 if not fresh else 1.0))
        signs.append(Sign(K.REFACTOR, "diff:lost-name", gone[0], 0.8))
    if added and not removed:
        signs.append(Sign(K.REFACTOR, "diff:adds-only", f"{len(added)} lines", -1.0))
    moved = sum((Counter(map(str.strip, added)) & Counter(map(str.strip, removed))).values())
    if moved >= 10 and moved >= 0.7 * len(removed):
        signs.append(Sign(K.REFACTOR, "diff:moves-lines", f"{moved} lines", 2.0))
    if lines and len(lines) <= 6 and removed and added:
        signs.append(Sign(K.BUGFIX, "diff:few-lines", f"{len(lines)} lines", 0.6))
    return signs


def _find_excess_line(pattern: re.Pattern[str], added: list[str], removed: list[str]) -> str:
    """Return the first matching added line if more added than removed lines match; else an empty text."""
    fit = [line for line in added if pattern.search(line)]
    return fit[0].strip()[:80] if len(fit) > sum(1 for line in removed if pattern.search(line)) else ""


def _list_names(lines: list[str]) -> set[str]:
    return {name[1] for line in lines if (name := _PUBLIC.match(line))}

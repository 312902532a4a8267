"""Which programming language a file is written in, by the end of its name."""

from __future__ import annotations

from collections import Counter
from pathlib import PurePosixPath

LANGUAGES = {
    ".py": "python", ".pyx": "python", ".pxd": "python", ".pyi": "python", ".c": "c", ".h": "c", ".cc": "c++",
    ".cpp": "c++", ".hpp": "c++", ".rs": "rust", ".go": "go", ".java": "java", ".kt": "kotlin", ".js": "javascript",
    ".jsx": "javascript", ".mjs": "javascript", ".ts": "typescript", ".tsx": "typescript", ".vue": "typescript",
    ".rb": "ruby", ".php": "php", ".cs": "c#", ".swift": "swift", ".scala": "scala", ".jl": "julia", ".lua": "lua",
}  # fmt: skip


def language_of(paths: tuple[str, ...]) -> str:
    """The language of most program files among `paths`; of equally many Python first; empty when there are none."""
    counted = Counter(LANGUAGES[end] for path in paths if (end := PurePosixPath(path).suffix.lower()) in LANGUAGES)
    return min(counted, key=lambda name: (-counted[name], name != "python", name), default="")

"""Lines of sources that cannot hold a fault, and lines that begin a definition.

The places that a review's locations are.
"""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, kw_only=True)
class LineSyntax:
    """Regexes of the beginning of a line after its indentation.

    The defaults join the comments, imports and definitions of many languages, because a file may contain several. A
    language gives its own where it differs.
    """

    comments: str = r"#(?!\s*(if|ifdef|ifndef|define|else|elif|endif|undef|pragma|error|\[|!)\b)|//|/\*|\*\s|\*/|\*$"
    imports: str = (
        r"import\b|from\s+\S+\s+import\b|#\s*include\b|use\s+[\w:\\{]|using\s|require(_once|_relative)?\s|package\s|"
        r"extern\s+crate\b|(const|let|var)\s.*\brequire\("
    )
    statements: str = r"break|continue|return|pass|raise|throw|else|try|next|redo|yield|fallthrough"
    """Words that are a statement alone; other names alone on a line belong to a list."""
    definitions: str = (
        r"@\w|(async\s+)?(def|function)\b|class\b|func\b|fn\b|pub\b|public\b|private\b|protected\b|static\b|impl\b|"
        r"struct\b|enum\b|interface\b|trait\b|sub\b|defmodule\b|defp\b|export\b|template\b"
    )

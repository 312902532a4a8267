"""Canaries: a text in the files of a benchmark, by which they are recognised in training data.

It stands in the first line in which a form of files may have a comment. Files without comments, such as patches,
archives and programs that are graded with, are left as they are.
"""

from __future__ import annotations

from pathlib import Path

MARKED = ("README.md", "instruction.md", "task.toml", "solve.sh", "Dockerfile")
"""Names of the files of a bundle that get the line."""


def add_canary(text: str, canary: str, *, suffix: str) -> str:
    """Return the text of a file with the line of a canary.

    Args:
        text: the file.
        canary: text without a line end.
        suffix: `.md` for Markdown, whose front matter stays first; anything else has comments that begin with `#`.
    """
    comment = f"# canary: {canary}\n"
    first, end, rest = text.partition("\n")
    if first == "---" or first.startswith("#!"):
        return first + end + comment + rest
    # Harbor takes leading lines that mention a canary out of an instruction.
    return f"<!-- canary: {canary} -->\n{text}" if suffix == ".md" else comment + text


def mark_folder(folder: Path, canary: str) -> None:
    """Add the line to the files of MARKED names in a folder and below."""
    for path in sorted(folder.rglob("*")):
        if path.name in MARKED and path.is_file():
            text = path.read_bytes().decode(errors="surrogateescape")
            path.write_bytes(add_canary(text, canary, suffix=path.suffix).encode(errors="surrogateescape"))

"""Texts of a patch from which an opinion may quote."""

from __future__ import annotations


def extract_patch_texts(patch: str) -> tuple[str, str]:
    """Return a patch as written, and the text of its new side without marks."""
    lines = [line[1:] for line in patch.splitlines() if line[:1] in ("+", " ") and not line.startswith("+++ ")]
    return patch, "\n".join(lines)

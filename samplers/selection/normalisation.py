"""Submissions without the parts that differ between equal ones.

Hashes of blobs, places of hunks, blanks at ends of lines.
"""

from __future__ import annotations

import hashlib
import re

_PLACE = re.compile(r"^@@ [^@]* @@.*$")
_SKIPPED = re.compile(r"^(?:index [0-9a-f]+\.\.[0-9a-f]+|similarity index|dissimilarity index)")


def normalise_submission(submission: bytes) -> str:
    """Return a patch as its lines by file, the files in order; another submission with single blanks."""
    text = submission.decode(errors="replace")
    files = re.split(r"(?m)^(?=diff --git )", text)
    if len(files) == 1:
        return " ".join(text.split())
    return "".join(sorted(_normalise_file(file) for file in files[1:]))


def hash_submission(submission: bytes) -> str:
    """Return the sha256 (hex) of the normalised submission."""
    return hashlib.sha256(normalise_submission(submission).encode()).hexdigest()


def _normalise_file(diff: str) -> str:
    kept = []
    for line in diff.splitlines():
        if _SKIPPED.match(line):
            continue
        if _PLACE.match(line):
            kept.append("@@")
        elif line.rstrip() not in ("+", "-", ""):
            kept.append(line.rstrip())
    return "\n".join(kept) + "\n"

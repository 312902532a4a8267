"""Verifier of reviews: compares findings with the known defects by lines. Nothing is executed."""

from __future__ import annotations

import json
import os
from collections.abc import Mapping
from typing import Any

from guest.scoring.findings import grade_findings
from guest.verifier.kind_score import KindScore


def score_findings(task: Mapping[str, Any], submission: bytes, folder: str, work: str) -> KindScore:
    """Return the score of a review in JSON; arguments as in `guest.verifier.writing.score_tests`."""
    del work
    with open(os.path.join(folder, "files.json"), "rb") as file:
        return KindScore(*grade_findings(submission, task["defects"], json.load(file)))

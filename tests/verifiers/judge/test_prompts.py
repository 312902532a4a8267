"""Prompts are versioned: kept answers and records name the one they were led by."""

from __future__ import annotations

import hashlib

from verifiers.judge.completion import writing
from verifiers.judge.opinions import panel
from verifiers.judge.prompting import FOLDER

VERSIONS = {
    "complete-1": "571eba9af336a803",
    "judge-1": "fe8f1c89a4321728",
    "review-1": "9e2192d2797cd4d5",
}
"""Another wording is another folder, with a line here."""


def test_a_prompt_that_was_asked_with_is_never_changed() -> None:
    found = {
        folder.name: hashlib.sha256(b"\0".join(file.read_bytes() for file in sorted(folder.glob("*.j2")))).hexdigest()[
            :16
        ]
        for folder in FOLDER.iterdir()
    }
    assert found == VERSIONS


def test_the_prompts_that_are_asked_with_are_there() -> None:
    assert {panel.PROMPT, writing.PROMPT} <= set(VERSIONS)

"""Prompts are versioned: cached answers and records name their version."""

from __future__ import annotations

import hashlib

from verifiers.judge import findings, instructions
from verifiers.judge.completion import writer
from verifiers.judge.opinions import panel
from verifiers.judge.prompting import PROMPT_DIR

VERSIONS = {
    "checklist-1": "85894410d4b20fb3",
    "complete-2": "c84e2e6b1c80744c",
    "finding-1": "b00101e9b5b8a78f",
    "instruction-1": "5de3aff3031c3e45",
    "judge-2": "c8e37305ef19e76a",
    "review-2": "bbd286d121b4fe89",
}
"""Another wording is a new version, with a line here."""


def test_a_released_prompt_is_never_changed() -> None:
    digests = {
        folder.name: hashlib.sha256(b"\0".join(file.read_bytes() for file in sorted(folder.glob("*.j2")))).hexdigest()[
            :16
        ]
        for folder in PROMPT_DIR.iterdir()
    }
    assert digests == VERSIONS


def test_the_prompts_in_use_exist() -> None:
    of_instructions = {instructions.PROMPT, instructions.CHECKLIST_PROMPT}
    assert {panel.PROMPT, writer.PROMPT, findings.PROMPT, *of_instructions} <= set(VERSIONS)

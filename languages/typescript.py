"""TypeScript: the plans and images are those of JavaScript; runners or a build step compile the sources."""

from __future__ import annotations

from dataclasses import replace

from languages import parsing
from languages.javascript import JAVASCRIPT

TYPESCRIPT = replace(
    JAVASCRIPT,
    name="typescript",
    title="TypeScript",
    suffixes=(".ts", ".tsx", ".mts", ".cts", ".vue", ".svelte"),
    syntaxes=(parsing.TYPESCRIPT, parsing.TSX),
    controls=replace(JAVASCRIPT.controls, compares_any_types=False, silent_calls=()),
)

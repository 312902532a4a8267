"""Parts of a program's text for people and models: the class without its tools, a tool with its helpers."""

from __future__ import annotations

import ast
from functools import lru_cache

from worlds.program.tree import parse_program
from worlds.program.usage import derive_usage

KEPT_EXCERPTS = 256
"""Excerpts that are kept: an assessment takes those of the same few dozen tools for each of its calls."""


@lru_cache(KEPT_EXCERPTS)
def get_class_source(program: str) -> str:
    """Return a program without the methods of its class, but for `__init__`. Raises ProgramError."""
    tree = parse_program(program)
    lines = program.splitlines()
    for name, node in tree.methods.items():
        if name != "__init__":
            start = min([node.lineno, *(decorator.lineno for decorator in node.decorator_list)])
            lines[start - 1 : node.end_lineno] = [""] * ((node.end_lineno or start) - start + 1)
    text = "\n".join(lines).rstrip()
    while "\n\n\n\n" in text:
        text = text.replace("\n\n\n\n", "\n\n\n")
    return f"{text}\n"


@lru_cache(KEPT_EXCERPTS)
def get_tool_source(program: str, tool: str) -> str:
    """Return a tool and the methods that it calls, directly or not. Raises ProgramError."""
    tree = parse_program(program)
    usage = derive_usage(tree)
    names, waiting = [], [tool]
    while waiting:
        name = waiting.pop(0)
        if name in tree.methods and name not in names:
            names.append(name)
            waiting += usage.methods[name].calls if name in usage.methods else ()
    parts = [ast.get_source_segment(program, tree.methods[name], padded=True) or "" for name in names]
    return "\n\n".join(parts) + "\n"

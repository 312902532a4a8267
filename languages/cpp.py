"""C++: the same build systems, frameworks and images as C."""

from __future__ import annotations

from dataclasses import replace
from functools import partial

from languages import parsing
from languages.c import C
from languages.native import plan

CPP = replace(
    C,
    name="c++",
    title="C++",
    suffixes=(".cc", ".cpp", ".cxx", ".hpp", ".hh", ".hxx", ".ipp"),
    syntaxes=(parsing.CPP,),
    create_draft=partial(plan.create_draft, "c++"),
)

"""C++: the same build systems, frameworks and images as C."""

from __future__ import annotations

from dataclasses import replace
from functools import partial

from languages import parsing
from languages.c import C
from languages.habits import Habits
from languages.loading import LoadHook
from languages.native import plan
from languages.native.loading import write_constructor

CPP = replace(
    C,
    name="c++",
    title="C++",
    suffixes=(".cc", ".cpp", ".cxx", ".hpp", ".hh", ".hxx", ".ipp"),
    syntaxes=(parsing.CPP,),
    create_draft=partial(plan.create_draft, "c++"),
    load_hook=LoadHook(suffixes=(".cc", ".cpp", ".cxx", ".hh", ".hpp", ".hxx"), write=write_constructor),
    habits=Habits(
        output=r"\bprintf\(|\bstd::cout\b",
        output_example='printf("here\\n");',
    ),
)

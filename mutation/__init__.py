"""Small changes of program text: mutants, which contain a fault, and variants, which preserve behaviour.

Nothing is executed and nothing is random: the same file yields the same mutations in the same order. Whether a mutant
is really faulty and a variant really equivalent is decided by tests.
"""

from __future__ import annotations

from mutation.diversity import select_diverse
from mutation.engine import generate_mutants, generate_variants, has_same_code, is_program
from mutation.mutation import Mutation
from mutation.patch import build_patch

__all__ = [
    "Mutation",
    "build_patch",
    "generate_mutants",
    "generate_variants",
    "has_same_code",
    "is_program",
    "select_diverse",
]

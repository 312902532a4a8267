"""Small changes of program text: mutants, which have one thing wrong, and variants, which behave as before.

Nothing is run here and nothing is drawn by lot: the same file gives the same changes in the same order. Whether a
mutant is wrong and a variant is right, tests must say.
"""

from __future__ import annotations

from derivers.mutation.change import Change
from derivers.mutation.choice import spread
from derivers.mutation.engine import is_program, mutants, variants
from derivers.mutation.patch import patch_of

__all__ = ["Change", "is_program", "mutants", "patch_of", "spread", "variants"]

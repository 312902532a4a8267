"""Negative controls: instances of tests with another expectation, which an honest solution must fail."""

from collections.abc import Mapping
from typing import Any

NO_CONTROLS: Mapping[str, Any] = {
    "control_patch": None,
    "blind_controls": None,
    "control_bound": None,
    "worst_block_bound": None,
    "evaluations": 1,
    "controls": (),
}
"""Fields of a verification or task without controls."""

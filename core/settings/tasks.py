"""Settings of the stages that make tasks of candidates: build, verify, derive and certify."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Annotated, Literal

from pydantic import AfterValidator, BeforeValidator, ConfigDict, Field

from core.settings.group import SettingsGroup


class BuildSettings(SettingsGroup):
    """Repair of failed builds."""

    max_attempts: int = Field(default=10, ge=1)
    """Attempts to build the environment of one candidate."""
    skills: Path | None = None
    """Folder of your own skills; they replace built-in skills of the same name."""


ADAPTIVE: Literal["adaptive"] = "adaptive"
FULL_REPEATS = 3
"""Adaptive repetitions of each run where tests are, or may be, flaky."""


def _parse_repeats(value: object) -> object:
    if value != ADAPTIVE and not (str(value).isdecimal() and int(str(value)) >= 1):
        raise ValueError("it is adaptive, or a number from 1")
    return value if value == ADAPTIVE else int(str(value))


class VerifySettings(SettingsGroup):
    """Runs of the tests of a change, and tests that a model writes."""

    repeats: Annotated[int | Literal["adaptive"], BeforeValidator(_parse_repeats)] = ADAPTIVE
    """Repetitions of the test-only and the gold run; adaptive: 2 where they agree and no test of the repository was
    ever seen to be flaky, otherwise 3."""
    test_timeout: float = Field(default=600, gt=0)
    """Time limit of one test run, in seconds. A run that takes many times as long as an earlier one is ended before."""
    whole_suite_seconds: float = Field(default=30, gt=0)
    """Seconds up to which a suite runs as a whole each time. A longer one does once without and once with the gold
    patch, then only with the test files that matter to the change."""
    strength_runs: int = Field(default=20, ge=0, le=1000)
    """Edits of the gold patch with which an audit runs the tests, to measure their strength; 0 for none."""
    write_tests: bool = False
    """Keep changes without tests, and let the model at --llm write tests for them."""
    write_attempts: int = Field(default=3, ge=1, le=20)
    """Answers of the model for the tests of one change."""
    write_min_detected: float = Field(default=0.5, ge=0, le=1)
    """Reject written tests that detect a smaller share of the faults in the gold patch, 0..1; one must be detected."""

    @property
    def max_repeats(self) -> int:
        """Greatest number of repetitions of each run."""
        return FULL_REPEATS if self.repeats == ADAPTIVE else self.repeats


_SAMPLE = re.compile(r"sample:(0(?:\.\d+)?|1(?:\.0+)?)")
"""Share of tasks, 0..1, that are drawn for exploits."""


def _check_exploits(value: str) -> str:
    if value not in ("quick", "all", "off") and not _SAMPLE.fullmatch(value):
        raise ValueError("it is sample:SHARE with a share between 0 and 1, quick, all or off")
    return value


class CertifySettings(SettingsGroup):
    """Gradings that a certificate takes."""

    model_config = ConfigDict(alias_generator="certify_{}".format)

    runs: int = Field(default=3, ge=3, le=100)
    """Gradings of the gold submission that a certificate takes, under varied conditions."""
    exploits: Annotated[str, AfterValidator(_check_exploits)] = "sample:0.05"
    """Submissions that must earn 0 and are graded for a certificate: the audit's quick ones for the first task of each
    environment family and a drawn share of the others (sample:SHARE), the quick ones for every task, all, or none."""

    @property
    def exploit_share(self) -> float | None:
        """Share of a family's tasks that get exploits in addition to its first; None where it is no choice.

        0..1, from `sample:SHARE`.
        """
        sample = _SAMPLE.fullmatch(self.exploits)
        return float(sample[1]) if sample else None


class DeriveSettings(SettingsGroup):
    """Tasks that are derived from a change."""

    per_environment: int = Field(default=0, ge=0, le=10_000)
    """Tasks of each kind that an environment gives in all, where tasks are derived from environments; 0 elsewhere."""
    injected_per_change: int = Field(default=1, ge=1, le=20)
    """Injected-bug tasks per change."""
    injected_on_top: int = Field(default=1, ge=0, le=5)
    """Tasks per change that consist of the change's own bug fix or feature and an injected bug."""
    injected_bugs: int = Field(default=1, ge=1, le=5)
    """Bugs per injected-bug task."""
    rebuilt_per_change: int = Field(default=1, ge=1, le=20)
    """Tasks per change in which a function, class or small module of the base tree is removed."""
    chains_per_change: int = Field(default=1, ge=0, le=3)
    """Combined tasks of three to five related changes per change."""
    variants: Literal["rules", "model"] = "rules"
    """How terse statements and user stories are written: by rules, or by the model at --llm."""

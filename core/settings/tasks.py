"""Settings of the stages that make tasks of candidates: build, verify, derive and certify."""

from __future__ import annotations

import re
from dataclasses import dataclass
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


_RANGE = re.compile(r"(\d+)?(:)?(\d+)?")
"""Least and greatest number; one number alone is both."""


@dataclass(frozen=True)
class NumberRange:
    """Limits of a range that is written as `LEAST:GREATEST`, `LEAST:`, `:GREATEST` or `NUMBER`."""

    lowest: int
    highest: int

    def parse(self, text: str) -> tuple[int, int]:
        """Return the least and the greatest number.

        Raises:
            ValueError: the text is no range within the limits.
        """
        match = _RANGE.fullmatch(text)
        if not match or not (match[1] or match[3]):
            raise ValueError("it is a number, or a range such as 2:5, 2: or :5")
        least = int(match[1]) if match[1] else self.lowest
        greatest = int(match[3]) if match[3] else self.highest if match[2] else least
        if not self.lowest <= least <= greatest <= self.highest:
            raise ValueError(f"it is a range within {self.lowest}:{self.highest}")
        return least, greatest

    def check(self, text: str) -> str:
        """Return the text of a range.

        Raises:
            ValueError: as in `parse`.
        """
        self.parse(text)
        return text


CONSTRAINTS = NumberRange(1, 20)
SOURCES = NumberRange(1, 7)
TURNS = NumberRange(1, 4)


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
    instructions_per_task: int = Field(default=2, ge=1, le=50)
    """Instruction tasks of each bug fix or feature."""
    constraints: Annotated[str, AfterValidator(CONSTRAINTS.check)] = Field(
        default="4:10", alias="instruction_constraints"
    )
    """Numbers of constraints of an instruction task, between which one is drawn (LEAST:GREATEST)."""
    sources: Annotated[str, AfterValidator(SOURCES.check)] = Field(default="3:", alias="instruction_sources")
    """Numbers of sources that the instructions of a task come from, of seven."""
    turns: Annotated[str, AfterValidator(TURNS.check)] = Field(default="1:3", alias="instruction_turns")
    """Numbers of turns of the user."""
    constraint_folder: Path | None = None
    """Folder of your own constraints, a TOML file each; they replace shipped ones of the same name."""

"""Settings of exploring, a group for each step."""

from __future__ import annotations

from pathlib import Path
from typing import Literal

from pydantic import ConfigDict, Field

from core.settings.group import SettingsGroup, WordList


class ExploreRequestSettings(SettingsGroup):
    """Requests of all steps."""

    model_config = ConfigDict(alias_generator="explore_{}".format)

    attempts: int = Field(default=3, ge=1, le=20)
    """Answers to one request, until one is usable."""
    temperature: float | None = Field(default=None, ge=0, le=2)
    """Sampling temperature of walks, questions, solvers and rivals. Default: the endpoint's own."""
    draw: int = Field(default=0, ge=0)
    """Number of the draw: another one gives other answers to the same requests, and another sample of seeds."""


class WalkSettings(SettingsGroup):
    """Walks from seeds."""

    model_config = ConfigDict(alias_generator="explore_{}".format)

    walker_model: str | None = None
    """Model that walks. Default: --model."""
    min_calls: int = Field(default=10, ge=1)
    """Least calls of tools in a walk."""
    max_calls: int = Field(default=40, ge=1)
    """Turns after which a walk must end."""
    browse: Literal["passages", "model"] = "passages"
    """Result of `browse` in walks: the passages that fit best, or an extract of the model with quotes."""
    min_facts: int = Field(default=4, ge=2)
    """Least facts of a walk."""


class EvolutionSettings(SettingsGroup):
    """Questions and their evolution."""

    model_config = ConfigDict(alias_generator="explore_{}".format)

    rounds: int = Field(default=5, ge=0, le=20)
    """Rounds of evolution of each question."""


class QuestionGateSettings(SettingsGroup):
    """Gates of questions."""

    model_config = ConfigDict(alias_generator="explore_{}".format)

    judge_model: str | None = None
    """Model that judges whether quotes imply clues and answers are right. Default: --model."""
    rival_model: str | None = None
    """Model that searches for other answers. Default: --model."""
    solver_models: WordList = ()
    """Models that answer the questions, comma-separated. Default: --model."""
    samples: int = Field(default=8, ge=1, le=100)
    """Samples of each solver."""
    turns: int = Field(default=50, ge=1)
    """Turns after which a sample must answer."""
    closed_samples: int = Field(default=4, ge=0, le=100)
    """Samples of each solver without tools."""
    easy_turns: int = Field(default=5, ge=0)
    """Reject a question that every sample answers right in fewer turns."""
    question_rank: int = Field(default=10, ge=0)
    """Reject a question whose answer's page is among so many first pages for it, at most 1 % of the pages."""
    clue_rank: int = Field(default=3, ge=0)
    """The same for the text of each clue."""
    similarity: float = Field(default=0.7, gt=0, le=1)
    """Reject a question whose words are this similar to those of another one, as a Jaccard index, 0..1."""
    benchmarks: Path | None = None
    """File of JSON lines with texts (question, answer) or hashed pairs (sha256) that no question may share."""
    places: Path | None = None
    """File of a JSON object, place -> larger place, by which a program decides on blurred places."""


class ExploreSettings(QuestionGateSettings, EvolutionSettings, WalkSettings, ExploreRequestSettings):
    """Exploring: walks, questions, evolution and gates.

    The defaults are those of WebExplorer (arXiv 2509.06501) where it publishes them.
    """

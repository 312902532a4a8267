"""Settings of rollouts, and of the selection of trajectories."""

from __future__ import annotations

from pydantic import ConfigDict, Field

from core.settings.group import SettingsGroup


class RolloutSettings(SettingsGroup):
    """Limits of one rollout."""

    model_config = ConfigDict(alias_generator="rollout_{}".format)

    seconds: float = Field(default=3600, gt=0)
    """Wall time limit of an agent on one task."""
    turns: int = Field(default=100, ge=1)
    """Turns of an agent: answered requests that offer tools, those of sub-agents among them."""
    requests: int | None = Field(default=500, ge=1)
    """Requests to the model that one rollout may make."""
    tokens: int | None = Field(default=None, ge=1)
    """Tokens that one rollout may use, prompt and completion."""
    cost: float | None = Field(default=None, gt=0)
    """Cost limit of one rollout, at the given prices."""
    retries: int = Field(default=2, ge=0, le=20)
    """Further tries of a rollout that an infrastructure failure ended, in one run of the command."""


class SelectionSettings(SettingsGroup):
    """Limits of rejection sampling."""

    model_config = ConfigDict(alias_generator="select_{}".format)

    min_value: float = Field(default=1.0, ge=0, le=1)
    """Refuse trajectories with a lower reward."""
    leaks: int = Field(default=0, ge=0)
    """Refuse trajectories with more attempts to get at what the task hides."""
    truncated: int = Field(default=0, ge=0)
    """Refuse trajectories with more answers cut at the token limit; a rollout that a limit ended counts as one."""
    empty_patch: float = Field(default=0, ge=0)
    """Refuse empty submissions; 1 permits them."""
    test_only_patch: float = Field(default=0, ge=0)
    """Refuse patches that change test files alone; 1 permits them."""
    instructions: int = Field(default=0, ge=0)
    """Refuse trajectories that broke more instructions of their task."""
    format_errors: int = Field(default=2, ge=0)
    """Refuse trajectories with more calls that have no tool, no valid arguments or no action in them."""
    tool_errors: float = Field(default=0.3, ge=0, le=1)
    """Refuse trajectories with a larger share of failed calls."""
    tool_error_run: int = Field(default=3, ge=0)
    """Refuse trajectories with more failed calls in a row."""
    repeats: float = Field(default=0.2, ge=0, le=1)
    """Refuse trajectories with a larger share of calls that were made before with the same result."""
    repeat_run: int = Field(default=3, ge=1)
    """Refuse trajectories in which the same call with the same result was made more often in a row."""
    loops: int = Field(default=2, ge=1)
    """Refuse trajectories in which a cycle of two to four calls was made more often in a row."""
    repetition: float = Field(default=0.3, ge=0, le=1)
    """Refuse trajectories with an answer of which a larger share of grams of 20 words is repeated."""
    rubric: float = Field(default=0.0, ge=0, le=1)
    """Refuse trajectories of which the model at --llm finds a larger share of a rubric's items not met."""

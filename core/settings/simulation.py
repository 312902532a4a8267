"""Settings of simulated conversations and environments."""

from __future__ import annotations

from typing import Literal

from pydantic import ConfigDict, Field

from core.settings.group import SettingsGroup, WordList


class SimulationSettings(SettingsGroup):
    """Simulated conversations; None for the value of the profile."""

    model_config = ConfigDict(alias_generator="simulate_{}".format)

    temperature: float | None = Field(default=None, ge=0, le=2)
    """Sampling temperature of the simulator. Default: that of --profile, 1 in both."""
    prefilter: Literal["model", "rules", "off"] | None = None
    """How seeds are checked: by rules and the model, by rules alone, or not. Default: model; off in profile simia."""
    seed_choice: Literal["round-robin", "random"] | None = None
    """How --total chooses seeds: in turn, or at random with replacement. Default: round-robin; random in simia."""
    attempts: int | None = Field(default=None, ge=1, le=20)
    """Requests for one conversation until an answer can be parsed. Default: 3; 1 in profile simia."""
    pause: float | None = Field(default=None, ge=0)
    """Seconds between two requests of all workers together. Default: 0; 1 in profile simia."""
    scenarios: Literal["on", "off"] | None = None
    """Draw for each conversation how it relates to its seed. Default: on; off in profile simia."""
    failures: float | None = Field(default=None, ge=0, le=1)
    """Share of conversations in which a call fails, 0..1. Default: 0.1; 0 in profile simia."""
    seen_ids: Literal["on", "off"] | None = None
    """Drop conversations with a call whose id nobody gave before. Default: on; off in profile simia."""
    near_duplicates: float | None = Field(default=None, ge=0.3, le=1)
    """Drop conversations more similar to an earlier one, 0.3..1; 1 for none. Default: 0.7; 1 in profile simia."""
    benchmarks: WordList | None = None
    """Drop conversations with eight words in a row of a text in these files, comma-separated. Default: none."""
    think: Literal["reasoning", "text"] | None = None
    """Where reasoning goes: to a field of its own, or into the text. Default: reasoning; text in profile simia."""
    target: Literal["qwen", "llama"] | None = None
    """Whose form of tools the system prompt of Hermes rows has. Default: qwen."""
    draw: int | None = Field(default=None, ge=0)
    """Number from which seeds, scenarios and failures are drawn; another one gives other conversations. Default: 0."""


class EpisodeSettings(SettingsGroup):
    """Episodes of simulated environments; None for the value of the profile."""

    model_config = ConfigDict(alias_generator="episode_{}".format)

    turns: int | None = Field(default=None, ge=1)
    """Turns of the agent in an episode, at most. Default: 40."""
    actions: int | None = Field(default=None, ge=1)
    """Calls and messages of the agent in an episode, at most. Default: 60."""
    steps: int | None = Field(default=None, ge=1)
    """Steps of an episode that the simulator answers, at most; at the last one the judge decides. Default: 100."""
    context: int | None = Field(default=None, ge=1)
    """Tokens of the agent's context. Default: 32000; 9000 in profile simia."""
    overlong: Literal["judge", "zero"] | None = None
    """What an episode beyond the agent's context earns: the judge's reward, or 0. Default: judge; zero in simia."""
    attempts: int | None = Field(default=None, ge=1, le=20)
    """Requests until an answer of simulator or judge can be used. Default: 3."""
    rules: Literal["on", "off"] | None = None
    """Answer malformed and invalid calls by rule, and check results. Default: on; off in profile simia."""
    rewrites: float | None = Field(default=None, ge=0, le=1)
    """Share of groups whose first message is rewritten, 0..1. Default: 0.5; 0 in profile simia."""
    groups: int | None = Field(default=None, ge=1)
    """Number of groups of environments, by which each goes on to its next sample. Default: 16."""
    judge_temperature: float | None = Field(default=None, ge=0, le=2)
    """Sampling temperature of the judge. Default: 0; 1 in profile simia."""


class MeasurementSettings(SettingsGroup):
    """Trust in a simulator as the reward of agents."""

    max_false_pass: float = Field(default=0.1, gt=0, le=1)
    """Refuse exports for reinforcement learning whose simulator may pay a larger share of wrong submissions (bound)."""

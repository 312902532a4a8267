"""Settings of making worlds, one group for each step."""

from __future__ import annotations

from pydantic import ConfigDict, Field, field_validator

from core.settings.group import SettingsGroup, check_url


class WorldRequestSettings(SettingsGroup):
    """Requests of all steps."""

    model_config = ConfigDict(alias_generator="worlds_{}".format)

    attempts: int = Field(default=3, ge=1, le=20)
    """Answers to one question about a theme, a program or a task, until one is usable."""
    temperature: float | None = Field(default=None, ge=0, le=2)
    """Sampling temperature for themes, programs, tasks, checks and tests. Default: the endpoint's own."""


class WorldThemeSettings(SettingsGroup):
    """Themes of worlds, and their clusters."""

    model_config = ConfigDict(alias_generator="worlds_{}".format)

    themes: int = Field(default=191, ge=1)
    """Clusters of themes, of each of which one is kept."""
    min_usefulness: int = Field(default=7, ge=1, le=10)
    """Reject themes that the model rates as less useful, 1..10."""
    min_modelability: int = Field(default=7, ge=1, le=10)
    """Reject themes that the model rates as harder to write as one class, 1..10."""
    embedding_model: str = Field(default="text-embedding-3-large", min_length=1)
    """Model of the embeddings by which themes are clustered."""
    embedding_url: str | None = None
    """URL of the API of the embedding model. Default: --llm."""
    draw: int = Field(default=42, ge=0)
    """Seed of KMeans; another one also gives other answers to the same questions."""

    @field_validator("embedding_url")
    @classmethod
    def _check_embedding_url(cls, value: str | None) -> str | None:
        return None if value is None else check_url(value, "keys belong in MERGEMILL_LLM_KEY")


class WorldBuildSettings(SettingsGroup):
    """States for the assessment of a world."""

    model_config = ConfigDict(alias_generator="worlds_{}".format)

    test_states: int = Field(default=1, ge=1, le=20)
    """States that are written for the assessment of a world."""
    test_state_temperature: float = Field(default=0.5, ge=0, le=2)
    """Sampling temperature for those states."""


class WorldAssessmentSettings(SettingsGroup):
    """Gates of a world, and rounds of tester and checker."""

    model_config = ConfigDict(alias_generator="worlds_{}".format)

    gate_calls: int = Field(default=200, ge=1)
    """Calls of each tool that the gates of a world make."""
    min_changes: float = Field(default=0.6, ge=0, le=1)
    """Least share of the tools that change something which changed something in these calls, 0..1."""
    rounds: int = Field(default=100, ge=1)
    """Rounds of tester and checker for one world."""
    calls_per_tool: int = Field(default=10, ge=1)
    """Most rounds for one tool."""
    min_score: float = Field(default=0.85, ge=0, le=1)
    """Reject worlds of which a smaller share of the rounds passed or was warned of, 0..1."""
    tester_model: str | None = None
    """Model that chooses the calls of the rounds. Default: --model."""
    checker_model: str | None = None
    """Model that judges their results. Default: --model."""
    checker_temperature: float = Field(default=0.0, ge=0, le=2)
    """Sampling temperature of the checker."""
    verdict_attempts: int = Field(default=5, ge=1, le=20)
    """Answers of the checker on one call, until one is usable."""


class ScenarioSettings(SettingsGroup):
    """Initial states, tasks and checks of a world, and the rollouts that solve them."""

    model_config = ConfigDict(alias_generator="worlds_{}".format)

    states: int = Field(default=50, ge=1)
    """Initial states of a world, each with one scenario."""
    state_temperature: float = Field(default=0.7, ge=0, le=2)
    """Sampling temperature for initial states."""
    min_task_words: int = Field(default=50, ge=1)
    """Least words of a scenario's task."""
    check_attempts: int = Field(default=5, ge=1, le=20)
    """Answers for one check function, until one is usable."""
    solver_model: str | None = None
    """Model whose rollouts are to solve the scenarios. Default: --model."""
    solver_temperature: float | None = Field(default=None, ge=0, le=2)
    """Sampling temperature of these rollouts. Default: the endpoint's own."""
    rollouts: int = Field(default=4, ge=1, le=100)
    """Rollouts of each scenario."""
    max_steps: int = Field(default=40, ge=1)
    """Steps after which a rollout ends."""
    min_noticed: float = Field(default=0.7, ge=0, le=1)
    """Least share of the mutations in fields that a task names which the checks notice, 0..1."""


class WorldsSettings(
    ScenarioSettings, WorldAssessmentSettings, WorldBuildSettings, WorldThemeSettings, WorldRequestSettings
):
    """Making of worlds and scenarios.

    The defaults are the published ones of EnvScaler (arXiv 2601.05808 and RUC-NLPIR/EnvScaler).
    """
